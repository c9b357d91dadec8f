#include "devices/nv/pci/chip.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/os_nvrm.h"

namespace tuff::devices::nv {
namespace {

namespace nvrm = os::nvrm;

constexpr uint64_t kPmuBytes = 0x1820000;

constexpr ChipFamily kGa10x = {"ga10x", "ga102", MmuVersion::V2, 0x1704, GspStarter::Booter,
                              {0xc56f, 0xc7c0, 0xc7b5, 0xc561}};
constexpr ChipFamily kAd10x = {"ad10x", "ad102", MmuVersion::V2, 0x1704, GspStarter::Booter,
                              {0xc56f, 0xc9c0, 0xc7b5, 0xc561}};
constexpr ChipFamily kGh100 = {"gh100", "gh100", MmuVersion::V3, 0xb80f60, GspStarter::Fsp,
                              {0xc86f, 0xcbc0, 0xc8b5, 0xc661},
                              {0x200bc, 1, 2u << 20, 0}};
constexpr ChipFamily kGb10x = {"gb10x", "gb100", MmuVersion::V3, 0xb80f60, GspStarter::Fsp,
                              {0xc96f, 0xcdc0, 0xc9b5, 0xc661},
                              {0x200bc, 2, 2u << 20, kPmuBytes}};
constexpr ChipFamily kGb20x = {"gb20x", "gb202", MmuVersion::V3, 0xb80f60, GspStarter::Fsp,
                              {0xc96f, 0xcec0, 0xcab5, 0xc661},
                              {0xad00bc, 2, 2u << 20, kPmuBytes},
                              nvrm::kRunlistDoorbell};

// GB20x lists newer classes of channels and doorbells too (0xca6f, 0xc761), of which nothing is
// needed. Turing and GA100 are left out: their programs for falcons are loaded otherwise. GB10B is
// part of a system on a chip, which has no video memory of its own.
constexpr Chip kPciChips[] = {
    {"GA102", 0x172, &kGa10x}, {"GA103", 0x173, &kGa10x}, {"GA104", 0x174, &kGa10x},
    {"GA106", 0x176, &kGa10x}, {"GA107", 0x177, &kGa10x}, {"AD102", 0x192, &kAd10x},
    {"AD103", 0x193, &kAd10x}, {"AD104", 0x194, &kAd10x}, {"AD106", 0x196, &kAd10x},
    {"AD107", 0x197, &kAd10x}, {"GH100", 0x180, &kGh100}, {"GB100", 0x1a0, &kGb10x},
    {"GB102", 0x1a2, &kGb10x}, {"GB202", 0x1b2, &kGb20x}, {"GB203", 0x1b3, &kGb20x},
    {"GB205", 0x1b5, &kGb20x}, {"GB206", 0x1b6, &kGb20x}, {"GB207", 0x1b7, &kGb20x},
};

// BOOT_0 has the highest bit of the architecture apart from the others.
uint32_t number_of_boot_0(uint32_t boot_0) {
  const uint32_t architecture = (boot_0 >> 8 & 1) << 5 | (boot_0 >> 24 & 0x1f);
  return architecture << 4 | (boot_0 >> 20 & 0xf);
}

}  // namespace

std::span<const Chip> known_chips() { return kPciChips; }

const Chip& chip_of(uint32_t boot_0, uint32_t boot_42) {
  const uint32_t number = boot_42 >> 20 & 0x3ff;
  if (boot_0 == ~0u || boot_42 == ~0u || number_of_boot_0(boot_0) != number)
    fail<DeviceLost>("NV: no chip answers: BOOT_0 has {:#x}, BOOT_42 {:#x}", boot_0, boot_42);
  const Chip* found = std::find_if(std::begin(kPciChips), std::end(kPciChips),
                                   [&](const Chip& c) { return c.number == number; });
  if (found != std::end(kPciChips)) return *found;
  std::vector<std::string> names;
  for (const Chip& c : kPciChips) names.push_back(c.name);
  fail<Unsupported>("NV: chip {:#x} (BOOT_42 has {:#x}) is not known by PCI; known are {}", number,
                    boot_42, fmt::join(names, ", "));
}

}  // namespace tuff::devices::nv
