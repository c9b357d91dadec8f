// insert_barriers (order.h): byte-range hazard tracking, O(n log n) in the number of accesses.
#include <map>
#include <unordered_map>

#include "hcq/order.h"

namespace tuff::hcq {
namespace {

// A set of bytes per block as disjoint intervals; overlapping ones are joined when added.
class ByteSet {
 public:
  void add(const Span& s) {
    if (s.size_bytes == 0) return;
    auto& ranges = blocks_[s.block];
    size_t begin = s.offset, end = s.offset + s.size_bytes;
    auto it = ranges.upper_bound(begin);
    if (it != ranges.begin() && std::prev(it)->second >= begin) --it;
    while (it != ranges.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ranges.erase(it);
    }
    ranges.emplace_hint(it, begin, end);
  }
  bool overlaps(const Span& s) const {
    auto block = blocks_.find(s.block);
    if (block == blocks_.end() || s.size_bytes == 0) return false;
    auto it = block->second.lower_bound(s.offset + s.size_bytes);
    return it != block->second.begin() && std::prev(it)->second > s.offset;
  }
  void clear() { blocks_.clear(); }

 private:
  std::unordered_map<const MemoryBlock*, std::map<size_t, size_t>> blocks_;
};

class Tracker {
 public:
  bool conflicts(const Command& c) const {
    for (const Access& a : c.accesses)
      if (written_.overlaps(a.span) || (a.write && read_.overlaps(a.span))) return true;
    return false;
  }
  void add(const Command& c) {
    for (const Access& a : c.accesses) (a.write ? written_ : read_).add(a.span);
  }
  void clear() {
    read_.clear();
    written_.clear();
  }

 private:
  ByteSet read_, written_;  // since the last barrier
};

}  // namespace

void insert_barriers(CommandList& list) {
  Tracker since_barrier;
  std::vector<Command> result;
  result.reserve(list.commands.size() * 3 / 2 + 1);
  for (Command& c : list.commands) {
    if (std::holds_alternative<BarrierCmd>(c.body)) {
      since_barrier.clear();
    } else if (since_barrier.conflicts(c)) {
      result.push_back({BarrierCmd{}, {}, {}});
      since_barrier.clear();
    }
    since_barrier.add(c);
    result.push_back(std::move(c));
  }
  list.commands = std::move(result);
}

}  // namespace tuff::hcq
