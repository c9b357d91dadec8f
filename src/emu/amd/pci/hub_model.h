// HubModel: a memory hub of an emulated Navi 31 (GC's or MMHUB): context 0 with its page table, a
// TLB that keeps what it has read until it is told to forget, and the registers that say what has
// faulted. Part of the GPU's function. Sources: Linux, drivers/gpu/drm/amd/amdgpu/gfxhub_v3_0.c,
// mmhub_v3_0.c, gmc_v11_0.c (invalidation). Never compared with hardware.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "emu/amd/pci/device_memory.h"
#include "emu/amd/pci/gpu_tables.h"
#include "emu/amd/pci/register_names.h"

namespace tuff::emu::amd {

class HubModel {
 public:
  HubModel(Block block, const DeviceMemory& memory, Told told);
  void power_on();
  // Whether it is one of its registers.
  bool has(uint64_t place) const;
  uint32_t read(uint64_t place);
  void write(uint64_t place, uint32_t value);
  // What an engine's access finds: none, and the fault is kept, where it is not allowed. What is
  // found in the TLB and is otherwise in the table is told.
  std::optional<GpuPage> translate(uint64_t address, bool is_write);
  uint32_t invalidations() const { return invalidations_; }
  void hang() { hung_ = true; }

 private:
  struct Groups {
    uint32_t l2, context, memory, default_page;
  };
  uint32_t& word(uint32_t offset) { return words_[offset]; }
  uint64_t pair(uint32_t offset) { return uint64_t{word(offset + 1)} << 32 | word(offset); }
  void keep_fault(uint64_t address, bool is_write, bool is_mapped);
  GpuPage walk(uint64_t address);

  const Block block_;
  const Groups at_;
  const DeviceMemory& memory_;
  const Told told_;
  std::map<uint32_t, uint32_t> words_;
  std::map<uint64_t, GpuPage> tlb_;  // by 4 KiB
  uint32_t invalidations_ = 0;
  bool has_semaphore_ = false, hung_ = false;
};

}  // namespace tuff::emu::amd
