// Discovery tables written by the sample writer: what is read of them, blocks that are fused off,
// and every byte that is damaged or cut.
#include "devices/amd/pci/discovery.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <random>

#include "base/error_of.h"
#include "emu/amd/pci/sample_discovery.h"

namespace tuff::devices::amd {
namespace {

using namespace emu::amd::samples;

TEST(AmdDiscovery, BlocksVersionsAndBases) {
  for (const uint16_t version : {3, 4}) {
    for (const bool wide : {false, true}) {
      if (wide && version < 4) continue;
      SampleTable form;
      form.version = version;
      form.wide = wide;
      if (wide) form.blocks[0].bases[3] = 0x12'3456'789a;
      const Discovery d = read_discovery(sample_discovery(form));
      ASSERT_EQ(d.blocks.size(), form.blocks.size());
      for (size_t i = 0; i < d.blocks.size(); ++i) {
        EXPECT_EQ(d.blocks[i].hw_id, form.blocks[i].hw_id);
        EXPECT_EQ(d.blocks[i].bases, form.blocks[i].bases);
        EXPECT_FALSE(d.blocks[i].harvested);
      }
      EXPECT_EQ(to_text(d.block(Hwid::Gc).version), "11.0.0");
      EXPECT_EQ(to_text(d.block(Hwid::Nbif).version), "4.3.0");
      EXPECT_EQ(d.gc.engines, 6u);
      EXPECT_EQ(d.gc.arrays_per_engine, 2u);
      EXPECT_EQ(d.gc.wgps_per_array, 4u);
      EXPECT_EQ(d.gc.wave_size, 32u);
      EXPECT_EQ(d.gc.max_waves_per_simd, 16u);
      EXPECT_EQ(d.gc.scratch_slots_per_cu, 32u);
      EXPECT_EQ(d.gc.lds_kib, 64u);
    }
  }
}

// Version 3 has no flag for wide bases: the byte there is padding.
TEST(AmdDiscovery, PaddingOfOlderVersionsSaysNothing) {
  SampleTable form;
  form.version = 3;
  Bytes t = sample_discovery(form);
  t[kSampleBlocks + 78] = 1;
  put16(t, 14, byte_sum(t, kSampleBlocks, t[kSampleBlocks + 6] | t[kSampleBlocks + 7] << 8));
  put16(t, 8, byte_sum(t, 10, t.size() - 10));
  EXPECT_EQ(read_discovery(t).block(Hwid::Gc).bases, form.blocks[0].bases);
}

TEST(AmdDiscovery, WhatIsFusedOffIsRefused) {
  SampleTable form;
  form.harvested = {{43, 0}, {150, 0}};
  const Discovery d = read_discovery(sample_discovery(form));
  EXPECT_TRUE(d.blocks[5].harvested);
  EXPECT_FALSE(d.blocks[4].harvested);
  form.harvested = {{42, 0}};
  const Discovery without = read_discovery(sample_discovery(form));
  EXPECT_NE(error_of<Unsupported>([&] { without.block(Hwid::Sdma0); }).find("SDMA0 0 is fused off"),
            std::string::npos);
  EXPECT_NE(error_of<Unsupported>([&] { without.block(Hwid::Mmhub, 1); }).find("no MMHUB 1"),
            std::string::npos);
}

// Sums cover every byte but padding between lists, of which the sample has none.
TEST(AmdDiscovery, EveryDamagedByteIsFound) {
  const Bytes whole = sample_discovery();
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i >= 6 && i < 8) continue;  // the minor version, before what is summed
    Bytes t = whole;
    t[i] ^= 0x40;
    const std::string why = error_of<IoError>([&] { read_discovery(t); });
    EXPECT_NE(why.find("discovery table"), std::string::npos) << i << ": " << why;
  }
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(read_discovery({whole.data(), size}), IoError) << size;
}

// With right sums: none may read beyond the bytes or give nonsense.
TEST(AmdDiscovery, RandomDamageWithRightSums) {
  std::mt19937 random(5);
  int read = 0;
  for (int n = 0; n < 20000; ++n) {
    Bytes t = sample_discovery();
    for (uint32_t k = random() % 3 + 1; k > 0; --k) t[random() % t.size()] = uint8_t(random());
    const auto number = [&](size_t at) { return size_t(t[at] | t[at + 1] << 8); };
    for (const size_t list : {12u, 20u, 28u}) {
      const size_t at = number(list), size = list == 12   ? number(kSampleBlocks + 6)
                                             : list == 20 ? 88
                                                          : 136;
      if (at + size <= t.size()) put16(t, list + 2, byte_sum(t, at, size));
    }
    put16(t, 10, t.size());
    put16(t, 8, byte_sum(t, 10, t.size() - 10));
    try {
      const Discovery d = read_discovery(t);
      EXPECT_LE(d.gc.engines, 64u);
      ++read;
    } catch (const IoError&) {}
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace tuff::devices::amd
