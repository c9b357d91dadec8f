// A walk through the page tables of a GPU of RDNA3, as its translation caches (UTCL2) make it:
// apart from the driver's writer, with what an entry may not have. For emulated GPUs and tests.
// Reads memory through a function, so that it knows neither the memory nor the driver.
// Source: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_vm.h (AMDGPU_PTE_*, AMDGPU_PDE_PTE), as
// tinygrad @a9069c1 has it in runtime/autogen/am/am.py.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tuff::emu::amd {

struct GpuPage {
  std::string fault;  // what is wrong; empty: it is mapped
  uint64_t physical = 0, page_bytes = 0;
  bool system = false, snooped = false, readable = false, writable = false, executable = false;
  uint32_t mtype = 0;
};

// `read`: the entry at an address of the GPU's memory; false where there is no memory.
using ReadEntry = std::function<bool(uint64_t address, uint64_t& entry)>;
GpuPage walk_gpu_tables(const ReadEntry& read, uint64_t root, uint64_t address);

}  // namespace tuff::emu::amd
