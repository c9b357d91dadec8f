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
  // Of [first, end). `owner` begins its errors.
  AddressRanges(std::string owner, uint64_t first, uint64_t end);
  // That nothing has; OutOfMemory. A page behind it stays free. `alignment` is a power of two.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment);
  void give_back(uint64_t address) noexcept;

 private:
  const std::string owner_;
  const uint64_t first_, end_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> used_;  // ends, by address
  uint64_t next_;
};

}  // namespace tuff::devices
