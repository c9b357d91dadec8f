// DeviceMemory: the memory of an emulated GPU of RDNA3 by the names that its processors and its
// page tables have for it, and whether what the host wrote through BAR 0 has arrived. Used by what
// is in the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "emu/kernel/pages.h"

namespace tuff::emu::amd {

using Told = std::function<void(const std::string& mistake)>;

class DeviceMemory {
 public:
  // Where processors have it (MC_VM_FB_LOCATION_BASE) and tables' entries (MC_VM_FB_OFFSET).
  static constexpr uint64_t kBegin = 0x80'0000'0000, kEntryOffset = 1ull << 30;
  DeviceMemory(uint64_t size_bytes, Told told)
      : pages_(Pages::make(size_bytes, std::make_shared<PageFile>())), told_(std::move(told)) {}
  const Pages& pages() const { return pages_; }
  uint64_t size_bytes() const { return pages_.size_bytes(); }
  // By a processor's address; null, and told, where there is none.
  std::byte* at(uint64_t address, uint64_t size_bytes, const char* who) const {
    if (std::byte* const found = find(address - kBegin, size_bytes)) return found;
    told_(std::string(who) + " is led to an address where the GPU has no memory");
    return nullptr;
  }
  // By an address in an entry of a page table; null where there is none.
  std::byte* of_entry(uint64_t address, uint64_t size_bytes) const {
    return find(address - kEntryOffset, size_bytes);
  }
  void flush() { flushed_ = true; }
  // Once for each thing that the host has put there for `who`. Stores through a mapping cannot be
  // seen, so one flush has to come before each.
  void use(const char* who) {
    if (!flushed_) told_(std::string(who) + " reads what the host has written and not flushed");
    flushed_ = false;
  }

 private:
  std::byte* find(uint64_t offset, uint64_t size_bytes) const {
    const bool inside = offset <= pages_.size_bytes() && size_bytes <= pages_.size_bytes() - offset;
    return inside ? pages_.data() + offset : nullptr;
  }
  const Pages pages_;
  const Told told_;
  bool flushed_ = false;
};

}  // namespace tuff::emu::amd
