#include "devices/known_blocks.h"

#include <fmt/format.h>

#include <utility>

namespace tuff::devices {
namespace {

constexpr size_t kKnownRanges = 256;

}  // namespace

void KnownBlocks::add(uint64_t address, size_t size_bytes) {
  std::lock_guard lock(mutex_);
  blocks_[address] = size_bytes;
}

void KnownBlocks::remove(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  keep(freed_, {address, it->second, {}});
  blocks_.erase(it);
}

void KnownBlocks::add_shared(uint64_t address, size_t size_bytes, std::string owner) {
  std::lock_guard lock(mutex_);
  keep(shared_, {address, size_bytes, std::move(owner)});
}

// Keeps the last ranges alone: they serve error messages.
void KnownBlocks::keep(std::deque<Range>& ranges, Range range) {
  ranges.push_back(std::move(range));
  if (ranges.size() > kKnownRanges) ranges.pop_front();
}

std::string KnownBlocks::place_of(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin()) {
    const auto& [begin, size_bytes] = *std::prev(next);
    if (address - begin < size_bytes)
      return fmt::format("; it lies {} bytes into a block of {} bytes", address - begin,
                         size_bytes);
  }
  for (auto r = freed_.rbegin(); r != freed_.rend(); ++r) {
    if (address - r->address < r->size_bytes)
      return fmt::format("; it lies {} bytes into a block of {} bytes that was freed",
                         address - r->address, r->size_bytes);
  }
  for (auto r = shared_.rbegin(); r != shared_.rend(); ++r) {
    if (address - r->address < r->size_bytes)
      return fmt::format("; it lies {} bytes into a block of {} bytes that {} has shared",
                         address - r->address, r->size_bytes, r->owner);
  }
  return "; no block of this device was there";
}

}  // namespace tuff::devices
