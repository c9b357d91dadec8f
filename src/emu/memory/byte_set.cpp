#include "emu/memory/byte_set.h"

#include <algorithm>

namespace tuff::emu {

ByteSet::Page& ByteSet::page(uint64_t number) {
  auto& found = pages_[number];
  if (!found) found = std::make_unique<Page>();
  return *found;
}

const ByteSet::Page* ByteSet::find(uint64_t number) const {
  const auto found = pages_.find(number);
  return found == pages_.end() ? nullptr : found->second.get();
}

uint64_t ByteSet::add(uint64_t address, uint32_t bytes, const ByteSet* without) {
  uint64_t added = 0;
  while (bytes > 0) {
    const uint32_t at = uint32_t(address % kPageBytes), part = std::min(bytes, kPageBytes - at);
    Page& own = page(address / kPageBytes);
    const Page* other = without ? without->find(address / kPageBytes) : nullptr;
    for (uint32_t k = at; k < at + part; ++k) {
      if (own[k]) continue;
      own[k] = true;
      added += !other || !(*other)[k];
    }
    address += part;
    bytes -= part;
  }
  return added;
}

}  // namespace tuff::emu
