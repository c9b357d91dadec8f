// Registers of an emulated Navi 31 by their place in BAR 5, of the table that the driver's start by
// PCI has too, and those of its memory hubs. Where blocks begin is the sample discovery table's.
// Sources: registers.def's; hubs: Linux, drivers/gpu/drm/amd/include/asic_reg, gc_11_0_0_offset.h
// and mmhub_3_0_0_offset.h, as gfxhub_v3_0.c and mmhub_v3_0.c use them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emu/amd/pci/sample_discovery.h"

namespace tuff::emu::amd {

enum class Block : uint16_t { Mp1 = 1, Smuio = 4, Gc = 11, Mmhub = 34, Nbif = 108, Mp0 = 255 };

// In bytes; ~0 where the GPU has not the segment.
inline uint64_t register_place(Block block, size_t segment, uint32_t offset) {
  static const std::vector<samples::SampleBlock> blocks = samples::navi31_blocks();
  for (const samples::SampleBlock& b : blocks)
    if (b.hw_id == uint16_t(block) && segment < b.bases.size())
      return 4 * (b.bases[segment] + offset);
  return ~uint64_t{};
}

namespace place {
#define AMD_PCI_REGISTER(name, block, segment, offset) \
  inline const uint64_t name = register_place(Block::block, segment, offset);
#include "devices/amd/pci/registers.def"
inline constexpr uint64_t kMmIndex = 0, kMmData = 4, kMmIndexHigh = 24, kConfigMemsize = 4 * 0xde3;
}  // namespace place

}  // namespace tuff::emu::amd
