#include "devices/nv/pci/chip.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr MmuVersion kV2 = MmuVersion::V2, kV3 = MmuVersion::V3;
constexpr GspStarter kByBooter = GspStarter::Booter, kByFsp = GspStarter::Fsp;

// Turing and GA100 are left out: their programs for falcons are loaded otherwise. GB10B is part of
// a system on a chip, which has no video memory of its own.
constexpr Chip kChips[] = {
    {"GA102", 0x172, "ga102", "ga10x", kV2, kByBooter},
    {"GA103", 0x173, "ga102", "ga10x", kV2, kByBooter},
    {"GA104", 0x174, "ga102", "ga10x", kV2, kByBooter},
    {"GA106", 0x176, "ga102", "ga10x", kV2, kByBooter},
    {"GA107", 0x177, "ga102", "ga10x", kV2, kByBooter},
    {"AD102", 0x192, "ad102", "ad10x", kV2, kByBooter},
    {"AD103", 0x193, "ad102", "ad10x", kV2, kByBooter},
    {"AD104", 0x194, "ad102", "ad10x", kV2, kByBooter},
    {"AD106", 0x196, "ad102", "ad10x", kV2, kByBooter},
    {"AD107", 0x197, "ad102", "ad10x", kV2, kByBooter},
    {"GH100", 0x180, "gh100", "gh100", kV3, kByFsp},
    {"GB100", 0x1a0, "gb100", "gb10x", kV3, kByFsp},
    {"GB102", 0x1a2, "gb100", "gb10x", kV3, kByFsp},
    {"GB202", 0x1b2, "gb202", "gb20x", kV3, kByFsp},
    {"GB203", 0x1b3, "gb202", "gb20x", kV3, kByFsp},
    {"GB205", 0x1b5, "gb202", "gb20x", kV3, kByFsp},
    {"GB206", 0x1b6, "gb202", "gb20x", kV3, kByFsp},
    {"GB207", 0x1b7, "gb202", "gb20x", kV3, kByFsp},
};

// BOOT_0 has the highest bit of the architecture apart from the others.
uint32_t number_of_boot_0(uint32_t boot_0) {
  const uint32_t architecture = (boot_0 >> 8 & 1) << 5 | (boot_0 >> 24 & 0x1f);
  return architecture << 4 | (boot_0 >> 20 & 0xf);
}

}  // namespace

std::span<const Chip> known_chips() { return kChips; }

const Chip& chip_of(uint32_t boot_0, uint32_t boot_42) {
  const uint32_t number = boot_42 >> 20 & 0x3ff;
  if (boot_0 == ~0u || boot_42 == ~0u || number_of_boot_0(boot_0) != number)
    fail<DeviceLost>("NV: no chip answers: BOOT_0 has {:#x}, BOOT_42 {:#x}", boot_0, boot_42);
  const Chip* found = std::find_if(std::begin(kChips), std::end(kChips),
                                   [&](const Chip& c) { return c.number == number; });
  if (found != std::end(kChips)) return *found;
  std::vector<std::string> names;
  for (const Chip& c : kChips) names.push_back(c.name);
  fail<Unsupported>("NV: chip {:#x} (BOOT_42 has {:#x}) is not known by PCI; known are {}", number,
                    boot_42, fmt::join(names, ", "));
}

}  // namespace tuff::devices::nv
