#include "devices/address_ranges.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices {

AddressRanges::AddressRanges(std::string owner, uint64_t first, uint64_t end,
                             uint64_t unused_behind)
    : owner_(std::move(owner)),
      first_(first),
      end_(end),
      unused_behind_(unused_behind),
      next_(first) {}

// The next that are free behind those given out last: what was freed is used late again, so that a
// stray access to it is a fault; of memory, where that is no fault, the first that are free.
uint64_t AddressRanges::reserve(uint64_t size_bytes, uint64_t alignment) {
  std::lock_guard lock(mutex_);
  for (const uint64_t from : {next_, first_}) {
    uint64_t at = align_up(from, alignment);
    auto after = used_.lower_bound(at);
    if (after != used_.begin()) at = std::max(at, align_up(std::prev(after)->second, alignment));
    while (after != used_.end() && after->first < at + size_bytes) {
      at = align_up(after->second, alignment);
      ++after;
    }
    if (size_bytes > end_ || at > end_ - size_bytes) continue;
    used_[at] = at + size_bytes + unused_behind_;
    if (unused_behind_ > 0) next_ = used_[at];
    return at;
  }
  fail<OutOfMemory>("{}: no addresses are left for {} bytes", owner_, size_bytes);
}

void AddressRanges::give_back(uint64_t address) noexcept {
  std::lock_guard lock(mutex_);
  used_.erase(address);
}

}  // namespace tuff::devices
