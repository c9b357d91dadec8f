// AddressRanges: addresses that a driver gives out itself, of a GPU's virtual memory (nv/rm) or of
// what the IOMMU translates (pci_device.h). Knows no memory. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tuff::devices {

class AddressRanges {
 public:
  static constexpr uint64_t kPageBehind = 4096;
  // Of [first, end). `owner` begins its errors. Nothing lies in the `unused_behind` bytes behind
  // what is given out: of addresses a page, so that a stray access is a fault; of memory none.
  AddressRanges(std::string owner, uint64_t first, uint64_t end,
                uint64_t unused_behind = kPageBehind);
  // That nothing has; OutOfMemory. `alignment` is a power of two.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment);
  void give_back(uint64_t address) noexcept;

 private:
  const std::string owner_;
  const uint64_t first_, end_, unused_behind_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> used_;  // ends, by address
  uint64_t next_;
};

}  // namespace tuff::devices
