// PciBuffer: memory of a GPU that this process drives alone, or of the host, mapped in its page
// table. Memory of the host has there the address that it has here. Made by PciSpace and its
// queues.
#pragma once

#include <optional>

#include "devices/amd/pci/pci_gpu.h"
#include "devices/amd/space.h"

namespace tuff::devices::amd {

class PciBuffer final : public Buffer {
 public:
  // OutOfMemory; Unsupported for memory that the host would write through the bar, since nothing
  // above tells when such writes have to be flushed, and for the caller's own pages.
  PciBuffer(PciGpu& gpu, size_t size_bytes, MemoryDomain domain);
  // Where the GPU cannot be made to forget it, it is reset before the memory is another's.
  ~PciBuffer() override;
  uint64_t address() const override { return address_; }
  size_t size_bytes() const override { return size_; }
  std::byte* host() const override { return system_ ? system_->host() : nullptr; }
  uint64_t handle() const override { return 0; }

 private:
  void map_vram();
  void map_system(MemoryDomain domain);
  void give_back() noexcept;
  PciGpu& gpu_;
  const size_t size_;
  uint64_t address_ = 0;
  std::optional<uint64_t> vram_;  // its offset there
  std::optional<DmaMemory> system_;
};

}  // namespace tuff::devices::amd
