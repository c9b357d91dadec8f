// Chip: which GPU it is, by its registers BOOT_0 and BOOT_42, and what the boot by PCI has to know
// of that: whose firmware it runs, what starts that, how its page tables are laid out. A table:
// reads no registers.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/swref/published/nv_ref.h
// (registers), src/nvidia/generated/g_chips2halspec_nvoc.c (numbers) and g_gpu_class_list.c
// (classes), nouveau/extract-firmware-nouveau.py (folders: a family shares files by links); Linux,
// nouveau/nvkm/subdev/fsp/{gh100,gb100,gb202}.c, gsp/rm/r570/rm.c @32cb1cc (FSP).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "devices/nv/pci/page_table.h"

namespace tuff::devices::nv {

inline constexpr uint64_t kBoot0 = 0x0, kBoot42 = 0xa00;  // in BAR 0

// Who checks and starts the GSP's firmware.
enum class GspStarter : uint8_t {
  Booter,  // programs that the host loads to falcons: FWSEC, then a booter
  Fsp,     // a processor of its own, which takes messages
};

// What is known of FSP, and what it has to be told.
struct FspRules {
  uint64_t ready_register = 0;  // in BAR 0
  uint16_t message_version = 0;
  uint64_t open_heap_bytes = 0;  // of the GSP, not protected
  uint64_t reserved_bytes = 0;   // for another processor (PMU)
};

// What chips have in common that run the same firmware.
struct ChipFamily {
  const char* name;      // by which signatures of the GSP's image are named: "ga10x"
  const char* firmware;  // the folder: "ga102"
  MmuVersion mmu;
  uint64_t aperture_register;  // in BAR 0: by which table BAR 1 goes; 0: without one
  GspStarter starter;
  std::array<uint32_t, 4> classes;  // of channels, compute, copies, doorbells
  FspRules fsp = {};
  uint32_t token_bits = 0;  // of the doorbell, beside what the firmware says
};
struct Chip {
  const char* name;
  uint32_t number;  // architecture and implementation: 0x172
  const ChipFamily* family;
};

std::span<const Chip> known_chips();
// DeviceLost where the registers cannot be read or belong to different chips. Unsupported, with the
// value, for a chip that is not known.
const Chip& chip_of(uint32_t boot_0, uint32_t boot_42);

}  // namespace tuff::devices::nv
