// How the emulated GPU reads its page tables, of versions 2 and 3 of NVIDIA's MMU: an address is
// walked down anew each time, and every bit of an entry has to be one that is known. Called by what
// emulates a GPU without its kernel driver, and by tests. Shares nothing with the driver's tables.
// Source: open-gpu-kernel-modules @307159f, kernel-open/nvidia-uvm/hwref/hopper/gh100/dev_mmu.h:
// the fields of NV_MMU_VER2_* and NV_MMU_VER3_*.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tuff::emu::nv {

struct Translation {
  std::string fault;  // why nothing is there; empty: all below holds
  bool is_empty = false;  // of a fault: the entry is, as it should be
  bool is_mapped() const { return fault.empty(); }
  bool video = false;  // of the GPU's memory, else of the host's
  uint64_t physical = 0;
  uint64_t page_bytes = 0;
  bool writable = false, atomics = false, cached = false;
};

// The 8 bytes at an address in the GPU's memory, or in the host's; false: there are none.
using ReadTable = std::function<bool(bool video, uint64_t address, uint64_t& entry)>;

// Every page of a table by address, and every entry that is none and not empty.
void for_each_page(uint32_t mmu_version, const ReadTable& read, bool root_in_video, uint64_t root,
                   const std::function<void(uint64_t address, const Translation& page)>& visit);

Translation translate(uint32_t mmu_version, const ReadTable& read, bool root_in_video,
                      uint64_t root, uint64_t address);

}  // namespace tuff::emu::nv
