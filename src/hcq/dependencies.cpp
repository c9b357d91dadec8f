#include "hcq/dependencies.h"

#include <algorithm>

#include "hcq/byte_ranges.h"

namespace tuff::hcq {
namespace {

bool says_all(const Command& c) {
  return !c.accesses.empty() &&
         (std::holds_alternative<DispatchCmd>(c.body) || std::holds_alternative<CopyCmd>(c.body));
}

// Who touched each byte since the last command that everything comes after.
class Touches {
 public:
  void add_conflicts(const Access& a, std::vector<uint32_t>& out) {
    ranges_.each(a.span, [&](Touched& t) {
      if (t.writer >= 0) out.push_back(static_cast<uint32_t>(t.writer));
      if (a.write) out.insert(out.end(), t.readers.begin(), t.readers.end());
    });
  }
  void note(const Access& a, uint32_t command) {
    ranges_.each(a.span, [&](Touched& t) {
      if (a.write) {
        t.writer = command;
        t.readers.clear();
      } else if (t.writer != command) {
        t.readers.push_back(command);
      }
    });
  }
  void clear() { ranges_.clear(); }

 private:
  struct Touched {
    int64_t writer = -1;
    std::vector<uint32_t> readers;  // since it wrote
  };
  ByteRanges<Touched> ranges_;
};

class Finder {
 public:
  explicit Finder(std::span<const Command* const> commands) : commands_(commands) {
    out_.after.resize(commands.size());
    has_follower_.resize(commands.size());
    implied_by_.assign(commands.size(), UINT32_MAX);
  }
  Dependencies run() {
    for (uint32_t i = 0; i < commands_.size(); ++i)
      says_all(*commands_[i]) ? add(i, commands_[i]->accesses) : add_fence(i);
    out_.last = without_follower(static_cast<uint32_t>(commands_.size()));
    return std::move(out_);
  }

 private:
  void add(uint32_t i, const std::vector<Access>& accesses) {
    std::vector<uint32_t> before;
    for (const Access& a : accesses) touches_.add_conflicts(a, before);
    for (const Access& a : accesses) touches_.note(a, i);
    if (before.empty() && fence_ >= 0) before.push_back(static_cast<uint32_t>(fence_));
    follow(i, std::move(before));
  }
  void add_fence(uint32_t i) {
    follow(i, without_follower(i));
    touches_.clear();
    fence_ = i;
  }
  // A conflict that another conflict comes directly after is implied. What is
  // implied by way of several stays: an event too many costs less than looking for it.
  void follow(uint32_t i, std::vector<uint32_t> before) {
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (const uint32_t b : before)
      for (const uint32_t c : out_.after[b]) implied_by_[c] = i;
    std::erase_if(before, [&](uint32_t b) { return implied_by_[b] == i; });
    for (const uint32_t b : before) has_follower_[b] = true;
    out_.after[i] = std::move(before);
  }
  std::vector<uint32_t> without_follower(uint32_t end) const {
    std::vector<uint32_t> out;
    for (auto i = static_cast<uint32_t>(std::max<int64_t>(fence_, 0)); i < end; ++i)
      if (!has_follower_[i]) out.push_back(i);
    return out;
  }

  std::span<const Command* const> commands_;
  Dependencies out_;
  Touches touches_;
  int64_t fence_ = -1;  // the last command that all later ones come after
  std::vector<bool> has_follower_;
  std::vector<uint32_t> implied_by_;  // the last command that comes after it anyway
};

}  // namespace

Dependencies dependencies_of(std::span<const Command* const> commands) {
  return Finder(commands).run();
}

}  // namespace tuff::hcq
