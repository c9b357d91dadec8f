// Where in video memory the GSP's firmware lies, which the host decides on Turing to Ada: at its
// end, downwards, what follows from the sizes of the firmware and of the memory. For the boot by
// PCI; knows no registers. Hopper and later decide for themselves, from sizes.
// Sources: open-gpu-kernel-modules, kgspCalculateFbLayout_TU102 (the order), gsp_fw_heap.h of
// 570.144 (sizes of the heap); Linux, drivers/gpu/drm/nouveau/nvkm/subdev/gsp/rm/r535/gsp.c
// (alignments) and nova-core/gsp/fw.rs.
#pragma once

#include <cstdint>

namespace tuff::devices::nv {

// What is decided by whose firmware it is: of GA102 to GA107 and AD102 to AD107.
struct HeapSizes {
  uint64_t system_bytes = 22u << 20, manager_bytes = 8u << 20;
  uint64_t bytes_per_gib = 96u << 10;  // of video memory
  uint64_t clients_bytes = 96u << 20;
  uint64_t least_bytes = 88u << 20, most_bytes = 280u << 20;
};

// Of Hopper and Blackwell.
inline constexpr HeapSizes kHopperHeap = {.manager_bytes = 14u << 20};
// Of the firmware's heap.
uint64_t heap_bytes(uint64_t total_bytes, const HeapSizes& sizes);

inline constexpr uint64_t kDescriptionBytes = 256;  // of what stands at its begin

// Offsets in video memory, each region up to the next one above it, by falling address.
struct MemoryLayout {
  uint64_t total = 0;
  uint64_t screen = 0;         // what the VBIOS has reserved, to the end
  uint64_t protected_end = 0;  // of WPR2, which holds all down to `protected_begin`
  uint64_t frts = 0;           // of kFrtsBytes
  uint64_t bootloader = 0;
  uint64_t image = 0;
  uint64_t heap = 0, heap_bytes = 0;
  uint64_t protected_begin = 0;  // the description of all this, of kDescriptionBytes
  uint64_t open_heap = 0;        // of the GSP, not protected; below is what the host may use
};

// `screen_bytes` is what the VBIOS has reserved at the end of memory. InvalidArgument where memory
// is too small.
MemoryLayout memory_layout(uint64_t total_bytes, uint64_t screen_bytes, uint64_t image_bytes,
                           uint64_t bootloader_bytes, const HeapSizes& sizes = {});

}  // namespace tuff::devices::nv
