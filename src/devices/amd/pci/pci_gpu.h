// PciGpu: one GPU of RDNA3 that this process takes and starts without a kernel driver: discovery,
// reset where a driver was before, firmware, memory hubs, engines, and their end. Used by what
// gives it memory and work. Nothing is told by interrupts. Sources: Linux,
// drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c (place of the table; reading memory by index),
// amdgpu_device.c (when a GPU is reset); tinygrad @a9069c1, runtime/support/am/amdev.py (the order
// without a kernel driver).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "devices/amd/pci/engines.h"
#include "devices/amd/pci/memory_hub.h"
#include "devices/amd/pci/page_table.h"
#include "devices/amd/pci/psp.h"
#include "devices/amd/pci/smu.h"

namespace tuff::devices::amd {

// Of the GPU's memory, what the start takes for itself, from its begin on.
inline constexpr uint64_t kStartBytes = 64u << 20;
// And what is left alone at its end: the discovery table, and what firmware keeps there.
inline constexpr uint64_t kKeptBytes = 16u << 20;

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
  // What of its memory, by offsets, and of addresses for it is free.
  AddressRanges& memory() { return *memory_; }
  AddressRanges& addresses() { return addresses_; }
  uint64_t usable_bytes() const { return memory_bytes_ - kStartBytes - kKeptBytes; }
  uint64_t entry_offset() const { return entry_offset_; }  // of an offset in entries of tables
  // As PageTable does, one at a time. DeviceLost after a reset; then nothing is mapped any more.
  void map(uint64_t address, uint64_t size_bytes, uint64_t physical, PageAttributes attributes);
  void unmap(uint64_t address, uint64_t size_bytes);
  // Whatever runs there reaches no memory any more; the GPU is not used again.
  void reset(const std::string& why) noexcept;
  bool was_reset() const { return was_reset_; }
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
  uint64_t memory_bytes_ = 0, first_address_ = 0, last_address_ = 0, entry_offset_ = 0;
  std::byte* mapped_ = nullptr;
  Discovery discovery_;
  std::optional<GpuRegisters> registers_;
  std::optional<MemoryHub> graphics_, multimedia_;
  std::optional<Psp> psp_;
  std::optional<ComputeEngine> compute_;
  std::optional<CopyEngine> copies_;
  uint64_t next_table_ = 0;
  bool graphics_started_ = false;  // firmware is there: its hub may be told to forget
  std::atomic<bool> was_reset_ = false;
  std::mutex mutex_;  // of the table
  std::unique_ptr<PageTable> table_;
  std::optional<AddressRanges> memory_;
  AddressRanges addresses_;
};

}  // namespace tuff::devices::amd
