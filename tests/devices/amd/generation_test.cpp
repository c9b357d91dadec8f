#include "devices/amd/generation.h"

#include <gtest/gtest.h>

#include <set>

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

TEST(AmdGeneration, EveryRowIsFoundByNameAndVersion) {
  std::set<std::string_view> names;
  for (const Generation& g : generations()) {
    EXPECT_EQ(find_generation(g.name), &g);
    EXPECT_EQ(find_generation(g.target_version), &g);
    // "gfx1036" is 10.3.6: the version's digits in decimal pairs, the name's in hexadecimal.
    const uint32_t major = g.target_version / 10000, minor = g.target_version / 100 % 100,
                   stepping = g.target_version % 100;
    EXPECT_EQ(g.name, fmt::format("gfx{}{:x}{:x}", major, minor, stepping));
    EXPECT_TRUE(names.insert(g.name).second);
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(find_generation("gfx1010"), nullptr);
  EXPECT_EQ(find_generation(90010u), nullptr);
}

// Worked by hand from kfd_queue_ctx_save_restore_size().
TEST(AmdGeneration, QueueSizesAreTheKernels) {
  // RX 7900 XTX: 96 CUs. 3,072 waves of 12 bytes; per CU 0x60000 + 0x4000 + 0x10000 + 0x1000.
  const Topology navi31{.simd_count = 192,
                        .simd_per_cu = 2,
                        .max_waves_per_simd = 16,
                        .array_count = 12,
                        .simd_arrays_per_engine = 2,
                        .max_slots_scratch_cu = 32};
  QueueSizes s = queue_sizes(*find_generation("gfx1100"), navi31);
  EXPECT_EQ(s.eop_bytes, 4096u);
  EXPECT_EQ(s.control_stack_bytes, 0xa000u);
  EXPECT_EQ(s.save_area_bytes, 0xa000u + 96 * 0x75000u);
  EXPECT_EQ(s.debug_bytes, 3072u * 32);
  EXPECT_EQ(s.mapping_bytes, 0xa000u + 96 * 0x75000u + 0x18000u);

  // RX 6800 XT: 72 CUs; the control stack would be 0x7000 (27,696 bytes).
  Topology navi21 = navi31;
  navi21.simd_count = 144;
  EXPECT_EQ(queue_sizes(*find_generation("gfx1030"), navi21).control_stack_bytes, 0x7000u);
  // RX 6900 XT: 80 CUs; 30,768 bytes, and the hardware's limit.
  navi21.simd_count = 160;
  s = queue_sizes(*find_generation("gfx1030"), navi21);
  EXPECT_EQ(s.control_stack_bytes, 0x7000u);
  EXPECT_EQ(s.save_area_bytes, 0x7000u + 80 * 0x55000u);

  // MI300X: 304 CUs in 8 XCCs; 1,520 waves each, of 8 bytes.
  const Topology mi300{.simd_count = 1216,
                       .simd_per_cu = 4,
                       .max_waves_per_simd = 8,
                       .array_count = 32,
                       .simd_arrays_per_engine = 1,
                       .max_slots_scratch_cu = 32,
                       .xccs = 8};
  s = queue_sizes(*find_generation("gfx942"), mi300);
  EXPECT_EQ(s.control_stack_bytes, 0x3000u);
  EXPECT_EQ(s.save_area_bytes, 0x3000u + 38 * 0x95000u);
  EXPECT_EQ(s.debug_bytes, 1520u * 32);
  EXPECT_EQ(s.mapping_bytes, (8ull * (0x3000 + 38 * 0x95000 + 1520 * 32) + 4095) / 4096 * 4096);
}

TEST(AmdGeneration, ScratchHoldsEveryWave) {
  const Topology t{.simd_count = 192,
                   .simd_per_cu = 2,
                   .max_waves_per_simd = 16,
                   .array_count = 12,
                   .simd_arrays_per_engine = 2,
                   .max_slots_scratch_cu = 32};
  for (const Generation& g : generations()) {
    for (uint32_t bytes : {4u, 16u, 100u, 4096u}) {
      const ScratchSize s = scratch_size(g, t, bytes);
      EXPECT_GE(s.bytes_per_lane, bytes);
      const uint64_t wave_bytes = uint64_t(s.tmpring >> 12) * g.scratch_unit_bytes;
      EXPECT_EQ(wave_bytes, uint64_t(s.bytes_per_lane) * 64);
      const uint32_t waves = (s.tmpring & 0xfff) * (g.scratch_waves_per_engine ? 6 : 1);
      EXPECT_LE(wave_bytes * waves, s.size_bytes) << g.name;
      EXPECT_EQ(waves, 3072u) << g.name;
    }
    EXPECT_EQ(scratch_size(g, t, 0).size_bytes, 0u);
    EXPECT_THROW(scratch_size(g, t, 1u << 23), Unsupported);
  }
  EXPECT_EQ(scratch_size(*find_generation("gfx1100"), t, 16).tmpring, 512u | 4u << 12);
  EXPECT_EQ(scratch_size(*find_generation("gfx1030"), t, 16).tmpring, 3072u | 1u << 12);
}

// The register has 12 bits for waves; those of all engines have to be equally many.
TEST(AmdGeneration, ScratchOfMoreWavesThanTheRegisterHolds) {
  Topology t{.simd_count = 512,
             .simd_per_cu = 2,
             .max_waves_per_simd = 16,
             .array_count = 12,
             .simd_arrays_per_engine = 2,
             .max_slots_scratch_cu = 32};
  const ScratchSize s = scratch_size(*find_generation("gfx1030"), t, 16);
  EXPECT_EQ(s.tmpring & 0xfff, 4092u);
  EXPECT_EQ(s.size_bytes, 4092u * 1024);
}

}  // namespace
}  // namespace tuff::devices::amd
