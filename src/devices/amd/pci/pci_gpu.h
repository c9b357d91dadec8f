// PciGpu: one GPU of RDNA3 that this process takes and starts without a kernel driver: discovery,
// reset where a driver was before, firmware, memory hubs, engines, and their end. Used by what
// gives it memory and work. Nothing is told by interrupts. Sources: Linux,
// drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c (place of the table; reading memory by index),
// amdgpu_device.c (when a GPU is reset); tinygrad @a9069c1, runtime/support/am/amdev.py (the order
// without a kernel driver).
#pragma once

#include <memory>
#include <optional>

#include "devices/amd/pci/engines.h"
#include "devices/amd/pci/memory_hub.h"
#include "devices/amd/pci/page_table.h"
#include "devices/amd/pci/psp.h"
#include "devices/amd/pci/smu.h"

namespace tuff::devices::amd {

// Of the GPU's memory, what the start takes for itself, from its begin on.
inline constexpr uint64_t kStartBytes = 64u << 20;

class PciGpu final : private TableMemory {
 public:
  // Throws as PciDevice does, Unsupported for a GPU that is not known or whose firmware is not
  // there, DeviceLost where it does not obey. Whatever is thrown, it is reset then.
  PciGpu(std::shared_ptr<os::Kernel> kernel, const PciFunction& function, uint64_t timeout_ms);
  ~PciGpu();
  const Discovery& discovery() const { return discovery_; }
  const GpuRegisters& registers() const { return *registers_; }
  PciDevice& device() { return device_; }
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Of what the start has taken, for engines' descriptors: as its processors have it.
  VramWindow descriptor_memory() const;
  PageTable& table() { return *table_; }
  const ComputeEngine& compute() const { return compute_.value(); }
  const CopyEngine& copies() const { return copies_.value(); }
  std::optional<HubFault> take_fault() const;

 private:
  void start(os::Kernel& kernel);
  void read_discovery_table();
  void reset_if_started();
  void start_hubs();
  void end() noexcept;
  VramWindow window(uint64_t offset, size_t size_bytes) const;
  // Of tables.
  uint64_t allocate() override;
  void free(uint64_t address) noexcept override;
  void write(uint64_t address, uint64_t entry) override;
  void publish() override;

  PciDevice device_;
  const uint64_t timeout_ms_;
  uint64_t memory_bytes_ = 0, first_address_ = 0, entry_offset_ = 0;
  std::byte* mapped_ = nullptr;
  Discovery discovery_;
  std::optional<GpuRegisters> registers_;
  std::optional<MemoryHub> graphics_, multimedia_;
  std::optional<Psp> psp_;
  std::optional<ComputeEngine> compute_;
  std::optional<CopyEngine> copies_;
  uint64_t next_table_ = 0;
  bool graphics_started_ = false;  // firmware is there: its hub may be told to forget
  std::unique_ptr<PageTable> table_;
};

}  // namespace tuff::devices::amd
