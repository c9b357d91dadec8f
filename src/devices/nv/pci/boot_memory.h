// BootMemory: what the boot by PCI gives to a GPU's processors: bytes in the host's memory, kept
// until all of it goes. Used by gsp.h and by those that start the GSP. Knows no meaning of them.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "devices/nv/pci/gsp_arguments.h"
#include "devices/pci_device.h"

namespace tuff::devices::nv {

class BootMemory {
 public:
  explicit BootMemory(PciDevice& device) : device_(device) {}
  // The bytes, then zeros up to the size.
  DmaRange keep(std::span<const uint8_t> bytes, size_t size_bytes = 0) {
    const size_t size = std::max(size_bytes, bytes.size());
    const DmaMemory& memory = *kept_.emplace_back(std::make_unique<DmaMemory>(device_, size));
    if (!bytes.empty()) std::memcpy(memory.host(), bytes.data(), bytes.size());
    return {memory.address(), size};
  }
  // Of the last that was kept.
  std::span<std::byte> host(size_t size_bytes) const { return {kept_.back()->host(), size_bytes}; }
  void drop_last(size_t count) { kept_.resize(kept_.size() - count); }

 private:
  PciDevice& device_;
  std::vector<std::unique_ptr<DmaMemory>> kept_;
};

}  // namespace tuff::devices::nv
