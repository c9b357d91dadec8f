// MemoryHub: one of the two places where a GPU of RDNA3 translates addresses (GC's hub for shaders,
// queues and copies; MMHUB for the rest): its apertures and caches, the page table of its context
// 0, how it forgets what it has read of that, and the faults that it keeps. Used by the start by
// PCI. Sources: Linux, drivers/gpu/drm/amd/amdgpu/gfxhub_v3_0.c, mmhub_v3_0.c (registers, values),
// gmc_v11_0.c (flush, what a fault says), include/asic_reg/gc/gc_11_0_0_{offset,sh_mask}.h and
// mmhub/mmhub_3_0_0_{offset,sh_mask}.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "devices/amd/pci/registers.h"

namespace tuff::devices::amd {

enum class Hub : uint8_t { Graphics, Multimedia };

struct HubSetup {
  uint64_t memory_begin = 0, memory_end = 0;     // as the GPU's processors have it, by 16 MiB
  uint64_t spare_page = 0;                       // physical: what accesses beyond everything reach
  uint64_t fault_page = 0;                       // physical: what accesses that fault reach
  uint64_t root = 0;                             // of the page table
  uint64_t first_address = 0, last_address = 0;  // that it is for
};

// What an access was refused for.
struct HubFault {
  uint64_t address = 0;  // of a page of 4 KiB
  bool write = false, atomic = false, mapping = false;
  uint32_t client = 0, vmid = 0, permissions = 0, walker = 0;
};
std::string to_text(const HubFault& fault);

class MemoryHub {
 public:
  MemoryHub(const GpuRegisters& registers, Hub hub) : registers_(registers), hub_(hub) {}
  // Where the GPU's memory begins and ends for its processors: begin and last byte.
  std::pair<uint64_t, uint64_t> memory() const;
  // What is added to an offset in memory in entries of page tables.
  uint64_t memory_offset() const;
  void start(const HubSetup& setup) const;
  // Forgets what it has read of the page table. DeviceLost where it does not say so.
  void flush() const;
  // The first fault since take_fault; the hub keeps the next one then.
  std::optional<HubFault> take_fault() const;

 private:
  struct Places;
  const Places& places() const;
  uint32_t read(uint32_t offset) const;
  void write(uint32_t offset, uint32_t value) const;
  void write_pair(uint32_t offset, uint64_t value) const;
  void update(uint32_t offset, uint32_t mask, uint32_t value) const;
  void start_apertures(const HubSetup& setup) const;
  void start_caches() const;
  void start_context(const HubSetup& setup) const;
  GpuRegister at(const char* name, uint32_t offset) const;
  const GpuRegisters& registers_;
  const Hub hub_;
};

}  // namespace tuff::devices::amd
