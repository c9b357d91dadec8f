#include "engine/outcome.h"

#include <algorithm>

#include <tuff/error.h>

namespace tuff::engine {

void Outcome::fail(uint64_t replay, const std::string& reason, Cause cause) {
  std::lock_guard lock(mutex_);
  if (reason_.empty()) {
    reason_ = reason;
    cause_ = cause;
  }
  if (replay < failed_from_) failed_from_ = replay;
}

void Outcome::require(uint64_t replay) const {
  if (!has_failed()) return;
  std::lock_guard lock(mutex_);
  if (replay < failed_from_) return;
  if (cause_ == Cause::File) throw IoError(reason_);
  throw DeviceLost(reason_);
}

Origin::Origin(std::shared_ptr<Outcome> outcome, uint64_t replay)
    : parts_(std::make_shared<const std::vector<Part>>(1, Part{std::move(outcome), replay})) {}

bool Origin::holds(const Origin& other) const {
  return std::ranges::all_of(*other.parts_, [&](const Part& p) {
    return std::ranges::any_of(
        *parts_, [&](const Part& q) { return q.outcome == p.outcome && q.replay >= p.replay; });
  });
}

Origin Origin::with(const Origin& other) const {
  if (!other || parts_ == other.parts_) return *this;
  if (!parts_) return other;
  if (holds(other)) return *this;
  if (other.holds(*this)) return other;
  std::vector<Part> all = *parts_;
  for (const Part& p : *other.parts_) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const Part& q) { return q.outcome == p.outcome; });
    if (known == all.end())
      all.push_back(p);
    else
      known->replay = std::max(known->replay, p.replay);
  }
  Origin out;
  out.parts_ = std::make_shared<const std::vector<Part>>(std::move(all));
  return out;
}

void Origin::look(const hcq::Queue& queue, uint64_t reached) const {
  if (!parts_) return;
  for (const Part& p : *parts_) p.outcome->look(queue, reached);
}

Origin Origin::unsettled(const hcq::Queue& queue, uint64_t value) const {
  const auto open = [&](const Part& p) { return !p.outcome->is_settled(queue, value); };
  if (!parts_ || std::ranges::all_of(*parts_, open)) return *this;
  Origin out;
  for (const Part& p : *parts_)
    if (open(p)) out = out.with(Origin(p.outcome, p.replay));
  return out;
}

void Origin::require() const {
  if (!parts_) return;
  for (const Part& p : *parts_) p.outcome->require(p.replay);
}

}  // namespace tuff::engine
