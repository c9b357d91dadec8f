// Which chip it is, by the values that registers of real ones have.
#include "devices/nv/pci/chip.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <set>

#include "base/error_of.h"

namespace tuff::devices::nv {
namespace {

// What both registers have of one chip, of revision A1.
const Chip& of(uint32_t number) {
  const uint32_t architecture = number >> 4, implementation = number & 0xf;
  const uint32_t boot_0 = (architecture & 0x1f) << 24 | implementation << 20 |
                          (architecture >> 5) << 8 | 0xa1;
  return chip_of(boot_0, number << 20 | 0xa1000);
}

TEST(NvChip, EveryRowIsFound) {
  std::set<std::string> names;
  for (const Chip& c : known_chips()) {
    EXPECT_EQ(&of(c.number), &c) << c.name;
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    const bool booter = c.family->starter == GspStarter::Booter;
    EXPECT_EQ(c.family->mmu, booter ? MmuVersion::V2 : MmuVersion::V3) << c.name;
  }
}

TEST(NvChip, AnRtx3080) {
  const Chip& c = chip_of(0xb72000a1, 0x172a1000);
  EXPECT_STREQ(c.name, "GA102");
  EXPECT_STREQ(c.family->firmware, "ga102");
  EXPECT_STREQ(c.family->name, "ga10x");
}

TEST(NvChip, WhatIsNotKnownIsRefusedWithItsValue) {
  const std::string turing = error_of<Unsupported>([] { of(0x162); });
  EXPECT_TRUE(turing.starts_with("NV: chip 0x162 (BOOT_42 has 0x162a1000) is not known by PCI; "
                                 "known are GA102, GA103, "))
      << turing;
  // The highest bit of the architecture, which BOOT_0 keeps apart.
  EXPECT_TRUE(error_of<Unsupported>([] { of(0x202); }).starts_with("NV: chip 0x202"));
}

TEST(NvChip, RegistersThatDoNotAnswerAreALostDevice) {
  EXPECT_THROW(chip_of(~0u, ~0u), DeviceLost);
  EXPECT_THROW(chip_of(0xb72000a1, ~0u), DeviceLost);
  EXPECT_EQ(error_of<DeviceLost>([] { chip_of(0xb72000a1, 0x173a1000); }),
            "NV: no chip answers: BOOT_0 has 0xb72000a1, BOOT_42 0x173a1000");
}

}  // namespace
}  // namespace tuff::devices::nv
