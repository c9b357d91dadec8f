// The profile of kernels: counts that follow from their text, caches on walks of known size, and
// the order of times that is known. What is counted changes nothing of what is executed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "emu/amd/mock.h"
#include "emu/llvm_tools.h"
#include "emu/profile/profiler.h"
#include "emu/rdna/code_object.h"

namespace tuff::emu::profile {
namespace {

using emu_api::KernelProfile;

constexpr uint64_t kCode = 0x100000000, kKernarg = 0x200000000, kFirst = 0x300000000,
                   kSecond = 0x400000000;
constexpr char kSource[] = TUFF_SOURCE_DIR "/tests/emu/profile_kernels.c";

// s[4:5], s[6:7]: two buffers; s8: the workgroup; v0: the lane; v1: the item; v2: its offset.
std::string assembly(const std::string& body, uint32_t lds_bytes = 0) {
  return testing::kernel_assembly(R"(
  s_mov_b32 s8, s2
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshl_add_u32 v1, s8, 5, v0
  v_lshlrev_b32 v2, 2, v1
  s_waitcnt lgkmcnt(0)
)" + body, lds_bytes, 40);
}

class Program {
 public:
  Program(const std::vector<uint8_t>& file, const std::string& name, size_t bytes = 4096)
      : first(bytes), second(bytes), object_(file, kCode), kernel_(object_.kernel(name)) {
    std::iota(first.begin(), first.end(), uint8_t(1));
    memory_.map(kCode, object_.image(), false);
    memory_.map(kKernarg, kernarg_, false);
    memory_.map(kFirst, first);
    memory_.map(kSecond, second);
    set(0, kFirst);
    set(8, kSecond);
  }
  explicit Program(const std::string& body, size_t bytes = 4096, uint32_t lds_bytes = 0)
      : Program(testing::assemble(assembly(body, lds_bytes)), "kernel", bytes) {}

  template <class T>
  void set(size_t at, T value) {
    std::memcpy(kernarg_.data() + at, &value, sizeof value);
  }
  rdna::Launch launch(uint32_t groups, uint32_t lanes = 32) const {
    rdna::Launch out = launch_of(kernel_, kKernarg);
    out.groups = {groups, 1, 1};
    out.group_size = {lanes, 1, 1};
    out.seed = 5;
    return out;
  }
  rdna::Outcome plain(const rdna::Launch& launch, rdna::Counters* counters = nullptr) {
    return rdna::run(launch, memory_, counters);
  }
  // Checks what holds of every profile.
  KernelProfile profile(Profiler& profiler, const rdna::Launch& launch) {
    const auto recording = profiler.record(launch);
    outcome = rdna::run(launch, memory_, &recording->counters());
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(rdna::to_text(outcome.findings), "");
    KernelProfile out = recording->profile(true);
    check(out);
    return out;
  }
  KernelProfile profile(uint32_t groups, uint32_t lanes = 32, const std::string& chip = "") {
    Profiler profiler({chip, true, {}});
    return profile(profiler, launch(groups, lanes));
  }

  std::vector<uint8_t> first, second;
  rdna::Outcome outcome;

 private:
  void check(const KernelProfile& p) const {
    uint64_t by_class = 0, by_row = 0;
    for (const auto& c : p.classes) by_class += c.instructions;
    for (const auto& i : p.instructions) {
      by_row += i.executed;
      EXPECT_LE(i.least_lines, i.lines) << i.text;
      EXPECT_LE(i.conflict_cycles, i.lds_cycles) << i.text;
    }
    EXPECT_EQ(by_class, outcome.instructions);
    EXPECT_EQ(by_row, outcome.instructions);
    EXPECT_GE(p.time_us, p.launch_us);
    EXPECT_LE(p.l0_misses, p.l1_hits + p.l1_misses);  // the scalar cache's come in addition
  }

  std::vector<uint8_t> kernarg_ = std::vector<uint8_t>(64);
  rdna::CodeObject object_;
  rdna::Kernel kernel_;
  RangeMemory memory_;
};

const KernelProfile::Class& class_of(const KernelProfile& p, const std::string& name) {
  for (const auto& c : p.classes) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("no class " + name);
}

uint64_t instructions(const KernelProfile& p, const std::string& name) {
  return class_of(p, name).instructions;
}

const KernelProfile::Instruction& row(const KernelProfile& p, const std::string& text) {
  for (const auto& i : p.instructions) {
    if (i.text.starts_with(text)) return i;
  }
  throw std::runtime_error("no instruction " + text);
}

class Profiles : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
};

constexpr char kCopy[] = R"(
  global_load_b32 v3, v2, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v2, v3, s[6:7]
)";
constexpr char kStridedCopy[] = R"(
  v_lshlrev_b32 v2, 7, v1
  global_load_b32 v3, v2, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v2, v3, s[6:7]
)";

// ---- counts

TEST_F(Profiles, CopyOfNeighboursTouchesTheLeastLines) {
  Program p(kCopy);
  const KernelProfile k = p.profile(16);
  EXPECT_EQ(k.waves, 16u);
  EXPECT_EQ(k.workgroups, 16u);
  EXPECT_EQ(k.vgprs, 40u);
  EXPECT_EQ(k.bytes_loaded, 16u * 128);
  EXPECT_EQ(k.bytes_stored, 16u * 128);
  EXPECT_EQ(k.lines_loaded, 16u);
  EXPECT_EQ(k.least_lines_loaded, 16u);
  EXPECT_EQ(k.lines_stored, 16u);
  EXPECT_EQ(k.lines64, 64u);
  EXPECT_EQ(k.least_lines64, 64u);
  EXPECT_EQ(instructions(k, "vmem_load"), 16u);
  EXPECT_EQ(instructions(k, "vmem_store"), 16u);
  EXPECT_EQ(instructions(k, "smem"), 16u);
  EXPECT_EQ(instructions(k, "valu"), 32u);
  EXPECT_EQ(instructions(k, "wait"), 32u);
  EXPECT_EQ(row(k, "global_load_b32").lanes, 16u * 32);
  EXPECT_EQ(k.flops, 0);
  EXPECT_EQ(k.least_dram_bytes, 16u * 128 * 2 + 16);  // and the arguments
}

TEST_F(Profiles, StridedCopyTouchesALineForEachLane) {
  Program p(kStridedCopy, 64 * 1024);
  const KernelProfile k = p.profile(8);
  EXPECT_EQ(k.lines_loaded, 8u * 32);
  EXPECT_EQ(k.least_lines_loaded, 8u);
  EXPECT_EQ(k.lines_stored, 8u * 32);
  EXPECT_EQ(k.least_lines_stored, 8u);
  EXPECT_EQ(k.bytes_loaded, 8u * 128);
}

TEST_F(Profiles, LanesThatSharedBytesAreOneLineAndInactiveOnesNone) {
  Program same("  v_mov_b32 v2, 0\n  global_load_b128 v[4:7], v2, s[4:5]\n");
  const KernelProfile k = same.profile(1);
  EXPECT_EQ(k.bytes_loaded, 512u);
  EXPECT_EQ(k.lines_loaded, 1u);
  EXPECT_EQ(k.least_dram_bytes, 32u);  // and the arguments
  Program few(std::string("  s_mov_b32 exec_lo, 7\n") + kStridedCopy, 64 * 1024);
  const KernelProfile f = few.profile(1);
  EXPECT_EQ(f.bytes_loaded, 12u);
  EXPECT_EQ(f.lines_loaded, 3u);
  EXPECT_EQ(f.least_lines_loaded, 1u);
  EXPECT_EQ(row(f, "global_load_b32").lanes, 3u);
  // Across a border between lines.
  Program across("  global_load_b32 v3, v2, s[4:5] offset:64\n");
  EXPECT_EQ(across.profile(1).lines_loaded, 2u);
}

uint64_t lds_cycles(const std::string& address, const std::string& instruction,
                    uint64_t* conflicts) {
  Program p(address + "\n  " + instruction + "\n  s_waitcnt lgkmcnt(0)", 4096, 8192);
  const KernelProfile k = p.profile(1);
  *conflicts = k.lds_conflict_cycles;
  return k.lds_cycles;
}

TEST_F(Profiles, BanksOfLds) {
  uint64_t conflicts = 0;
  const char* kStride1 = "  v_lshlrev_b32 v4, 2, v0";
  const char* kStride32 = "  v_lshlrev_b32 v4, 7, v0";
  const char* kStride33 = "  v_mul_u32_u24 v4, 0x84, v0";
  EXPECT_EQ(lds_cycles(kStride1, "ds_load_b32 v5, v4", &conflicts), 1u);
  EXPECT_EQ(conflicts, 0u);
  EXPECT_EQ(lds_cycles(kStride32, "ds_load_b32 v5, v4", &conflicts), 32u);
  EXPECT_EQ(conflicts, 31u);
  EXPECT_EQ(lds_cycles(kStride32, "ds_store_b32 v4, v0", &conflicts), 32u);
  EXPECT_EQ(lds_cycles(kStride33, "ds_load_b32 v5, v4", &conflicts), 1u);
  EXPECT_EQ(conflicts, 0u);
  // Wide ones pass in parts.
  EXPECT_EQ(lds_cycles("  v_lshlrev_b32 v4, 3, v0", "ds_load_b64 v[6:7], v4", &conflicts), 2u);
  EXPECT_EQ(conflicts, 0u);
  EXPECT_EQ(lds_cycles("  v_lshlrev_b32 v4, 4, v0", "ds_load_b128 v[8:11], v4", &conflicts), 4u);
  EXPECT_EQ(conflicts, 0u);
  EXPECT_EQ(lds_cycles("  v_lshlrev_b32 v4, 5, v0", "ds_load_b128 v[8:11], v4", &conflicts), 8u);
  EXPECT_EQ(conflicts, 4u);
  // One dword goes to all who read it, and changes for one after the other.
  EXPECT_EQ(lds_cycles("  v_mov_b32 v4, 0", "ds_load_b32 v5, v4", &conflicts), 1u);
  EXPECT_EQ(lds_cycles("  v_mov_b32 v4, 0", "ds_add_u32 v4, v0", &conflicts), 32u);
  EXPECT_EQ(conflicts, 31u);
  EXPECT_EQ(lds_cycles(kStride1, "ds_load_2addr_b32 v[6:7], v4 offset1:32", &conflicts), 2u);
  EXPECT_EQ(lds_cycles(kStride1, "ds_bpermute_b32 v5, v4, v0", &conflicts), 1u);
}

TEST_F(Profiles, ClassesAndFloats) {
  Program p(R"(
  v_dual_mov_b32 v4, 1.0 :: v_dual_mov_b32 v5, 1.0
  v_dual_mov_b32 v6, 1.0 :: v_dual_mov_b32 v7, 1.0
  v_dual_fmac_f32 v4, v6, v6 :: v_dual_add_f32 v5, v7, v7
  v_fma_f32 v8, v4, v4, v4
  v_pk_fma_f16 v9, v4, v4, v4
  v_rcp_f32 v10, v4
  v_mul_lo_u32 v11, v4, v5
  v_cvt_f64_f32 v[12:13], v4
  v_fma_f64 v[12:13], v[12:13], v[12:13], v[12:13]
  v_max_f32 v14, v4, v5
  s_branch next
next:
)");
  const KernelProfile k = p.profile(1);
  EXPECT_EQ(instructions(k, "dual"), 3u);
  EXPECT_EQ(instructions(k, "valu_trans"), 1u);
  EXPECT_EQ(instructions(k, "valu_f64"), 2u);
  EXPECT_EQ(instructions(k, "valu"), 2u + 4);
  EXPECT_EQ(instructions(k, "branch"), 1u);
  EXPECT_EQ(k.mad_instructions, 4u);
  EXPECT_EQ(k.flops, 32.0 * (2 + 1 + 2 + 4 + 1 + 2));
  const auto cycles = [&](const std::string& name) { return class_of(k, name).issue_cycles; };
  EXPECT_EQ(cycles("valu"), 5 + 4);  // a product of 32 bits takes four
  EXPECT_EQ(cycles("valu_trans"), 4);
  EXPECT_EQ(cycles("valu_f64"), 32);
}

TEST_F(Profiles, MatricesCountAsSuch) {
  std::string body = "  s_mov_b32 exec_lo, -1\n";
  for (int r = 4; r < 28; ++r) body += fmt::format("  v_mov_b32 v{}, 0\n", r);
  body += "  v_wmma_f32_16x16x16_f16 v[20:27], v[4:11], v[12:19], v[20:27]\n";
  Program p(body);
  const KernelProfile k = p.profile(3);
  EXPECT_EQ(instructions(k, "wmma"), 3u);
  EXPECT_EQ(k.mad_instructions, 3u);
  EXPECT_EQ(k.flops, 3.0 * 8192);
  EXPECT_EQ(instructions(k, "valu"), 3u * 26);
}

// ---- caches

// One wave walks over the first buffer twice.
KernelProfile walk(Profiler& profiler, uint32_t bytes) {
  Program p(fmt::format(R"(
  s_mov_b32 s10, 2
again:
  v_lshlrev_b32 v2, 2, v0
  s_mov_b32 s9, {}
more:
  global_load_b32 v3, v2, s[4:5]
  v_add_nc_u32 v2, 0x80, v2
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 more
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 again
  s_waitcnt vmcnt(0)
)",
                        bytes / 128),
            bytes);
  return p.profile(profiler, p.launch(1));
}

TEST_F(Profiles, WalksHitTheCacheThatHoldsThem) {
  struct Case {
    uint32_t kb;
    double l0, l1, l2, mall;  // hits in the second half of the walk, of all of its lines
  };
  for (const Case& c : {Case{16, 1, 0, 0, 0}, Case{32, 1, 0, 0, 0}, Case{128, 0, 1, 0, 0},
                        Case{1024, 0, 0, 1, 0}, Case{12 * 1024, 0, 0, 0, 1}}) {
    Profiler profiler({"7900xtx", true, {}});
    const KernelProfile k = walk(profiler, c.kb * 1024);
    const double lines = c.kb * 8;
    EXPECT_EQ(double(k.l0_hits), c.l0 * lines) << c.kb;
    EXPECT_EQ(double(k.l1_hits), c.l1 * lines) << c.kb;
    EXPECT_EQ(double(k.l2_hits), c.l2 * lines) << c.kb;
    EXPECT_EQ(double(k.mall_hits), c.mall * lines) << c.kb;
    EXPECT_EQ(k.dram_bytes_read, c.kb * 1024 + 128) << c.kb;  // and the arguments
    EXPECT_EQ(k.least_dram_bytes, c.kb * 1024 + 16) << c.kb;
  }
}

TEST_F(Profiles, DispatchesFindTheL2AsItWasLeft) {
  Profiler profiler({"7900xtx", true, {}});
  walk(profiler, 16 * 1024);
  const KernelProfile again = walk(profiler, 16 * 1024);
  EXPECT_EQ(again.l0_hits, 128u);  // each begins with empty caches before the L2
  EXPECT_EQ(again.l2_hits, 128u + 1);
  EXPECT_EQ(again.dram_bytes_read, 0u);
}

TEST_F(Profiles, ChipWithoutInfinityCacheGoesToMemory) {
  Profiler profiler({"780m", true, {}});
  const KernelProfile k = walk(profiler, 4 * 1024 * 1024);
  EXPECT_EQ(k.mall_hits + k.mall_misses, 0u);
  EXPECT_EQ(k.mall_us, 0);
  EXPECT_EQ(k.dram_bytes_read, 2 * 4096u * 1024 + 128);
}

TEST_F(Profiles, WrittenLinesComeToMemoryWhenTheyMakePlace) {
  Profiler profiler({"780m", true, {}});  // L2 of 2 MB
  Program p("  global_store_b32 v2, v1, s[6:7]\n", 4 * 1024 * 1024);
  const KernelProfile k = p.profile(profiler, p.launch(4 * 1024 * 1024 / 128));
  EXPECT_EQ(k.dram_bytes_written, 2u * 1024 * 1024);
  EXPECT_EQ(k.dram_bytes_read, 128u);
}

// ---- times

Program compiled(const std::string& name, size_t bytes) {
  static const std::vector<uint8_t> file = testing::compile_device(kSource);
  return Program(file, name, bytes);
}

KernelProfile transpose(const std::string& name, const std::string& chip) {
  constexpr uint32_t kSize = 512;
  Program p = compiled(name, kSize * kSize * 4);
  p.set(0, kSecond);
  p.set(8, kFirst);
  p.set(16, kSize);
  const KernelProfile k = p.profile(kSize * kSize / 1024, 256, chip);
  for (uint32_t at = 0; at < kSize * kSize; at += 77) {
    const uint32_t mirrored = at % kSize * kSize + at / kSize;
    EXPECT_EQ(std::memcmp(&p.first[at * 4], &p.second[mirrored * 4], 4), 0) << name;
  }
  return k;
}

TEST_F(Profiles, TilesMakeTransposesFaster) {
  for (const std::string& chip : chip_names(Vendor::Amd)) {
    const KernelProfile naive = transpose("transpose_naive", chip);
    const KernelProfile conflicts = transpose("transpose_conflicts", chip);
    const KernelProfile padded = transpose("transpose_padded", chip);
    EXPECT_EQ(naive.lines_stored, 32 * naive.least_lines_stored);
    EXPECT_EQ(padded.lines_stored, padded.least_lines_stored);
    EXPECT_EQ(padded.lds_conflict_cycles, 0u);
    EXPECT_EQ(conflicts.lds_conflict_cycles, 31u * 512 * 512 / 32);
    EXPECT_LT(padded.time_us, naive.time_us) << chip;
    // Where memory is slow it hides what conflicts take.
    EXPECT_LE(padded.time_us, conflicts.time_us) << chip;
    EXPECT_LT(10 * padded.lds_us, conflicts.lds_us) << chip;
  }
  const KernelProfile conflicts = transpose("transpose_conflicts", "7900xtx");
  EXPECT_GT(conflicts.lds_us, conflicts.dram_us);
  EXPECT_LT(transpose("transpose_padded", "7900xtx").time_us, conflicts.time_us);
}

TEST_F(Profiles, StridedCopyIsSlower) {
  for (const std::string& chip : chip_names(Vendor::Amd)) {
    Program near(kCopy, 8 * 1024 * 1024), far(kStridedCopy, 8 * 1024 * 1024);
    const KernelProfile a = near.profile(2048, 32, chip), b = far.profile(2048, 32, chip);
    EXPECT_GT(b.time_us - b.launch_us, 2 * (a.time_us - a.launch_us)) << chip;
    EXPECT_GT(b.l2_us, 20 * a.l2_us) << chip;
  }
}

TEST_F(Profiles, TilesOfRegistersMakeProductsFaster) {
  constexpr uint32_t kSize = 256;
  double last_time = 1e9;
  uint64_t last_lines = ~0ull;
  for (const uint32_t tile : {1u, 2u, 4u}) {
    Program p = compiled(fmt::format("product_{}", tile), 2 * kSize * kSize * 4);
    p.set(0, kSecond);
    p.set(8, kFirst);
    p.set(16, kFirst + kSize * kSize * 4);
    p.set(24, kSize);
    std::ranges::fill(p.first, uint8_t(0));
    const KernelProfile k = p.profile(kSize * kSize / (tile * tile) / 256, 256, "780m");
    EXPECT_LT(k.time_us, last_time) << tile;
    EXPECT_LT(k.lines_loaded, last_lines) << tile;
    // Where a workgroup's tile lies is a division, which compilers do in floats.
    EXPECT_GE(k.flops, 2.0 * kSize * kSize * kSize);
    EXPECT_LE(k.flops, 2.01 * kSize * kSize * kSize);
    last_time = k.time_us;
    last_lines = k.lines_loaded;
  }
}

// The same lines, by one wave and by many.
TEST_F(Profiles, OneWaveIsFarSlowerThanMany) {
  constexpr uint32_t kWaves = 1024;
  Program many(kCopy, kWaves * 128);
  Program one(fmt::format(R"(
  s_mov_b32 s9, {}
more:
  global_load_b32 v3, v2, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v2, v3, s[6:7]
  v_add_nc_u32 v2, 0x80, v2
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 more
)",
                          kWaves),
              kWaves * 128);
  for (const std::string& chip : chip_names(Vendor::Amd)) {
    const KernelProfile a = many.profile(kWaves, 32, chip), b = one.profile(1, 32, chip);
    EXPECT_EQ(a.bytes_loaded, b.bytes_loaded);
    EXPECT_EQ(a.dram_bytes_read, b.dram_bytes_read);
    EXPECT_GT(b.time_us, 20 * a.time_us) << chip;
    EXPECT_EQ(b.limit, "latency") << chip;
  }
}

// A wave that asks for all before it waits takes little more than one that asks once.
TEST_F(Profiles, LoadsOnTheWayTogetherTakeTheTimeOfOne) {
  std::string apart, together;
  for (int k = 0; k < 8; ++k) {
    const std::string load =
        fmt::format("  global_load_b32 v{}, v2, s[4:5] offset:{}\n", 4 + k, k * 128);
    together += load;
    apart += load + "  s_waitcnt vmcnt(0)\n";
  }
  Program a(together + "  s_waitcnt vmcnt(0)\n"), b(apart);
  EXPECT_GT(b.profile(1).latency_us, 4 * a.profile(1).latency_us);
}

TEST_F(Profiles, RegistersAndLdsBoundTheWavesOfASimd) {
  const Chip& navi31 = chip("7900xtx");
  const auto waves = [&](uint32_t vgprs, uint32_t lds, uint32_t per_group, bool wgp) {
    return Residency{vgprs, lds, per_group, wgp}.waves_per_simd(navi31);
  };
  EXPECT_EQ(waves(96, 0, 1, true), 16);
  EXPECT_EQ(waves(97, 0, 1, true), 12);  // 120 of 1536
  EXPECT_EQ(waves(256, 0, 1, true), 5);  // 264
  EXPECT_EQ(waves(32, 64 * 1024, 4, true), 2);
  EXPECT_EQ(waves(32, 64 * 1024, 4, false), 2);
  EXPECT_EQ(waves(32, 32 * 1024, 8, true), 8);
  EXPECT_EQ((Residency{64, 0, 1, true}.waves_per_simd(chip("780m"))), 16);
  EXPECT_EQ((Residency{65, 0, 1, true}.waves_per_simd(chip("780m"))), 12);  // 80 of 1024
}

// What a core does in turn overlaps in part; memory and waiting, beside it, whole.
TEST_F(Profiles, PartsOfACoreAreTheRootOfTheirSquares) {
  TimeParts t;
  t.issue = 3, t.lds = 4, t.launch = 2;
  EXPECT_DOUBLE_EQ(t.total(), 7);
  t.dram = 5.5;
  EXPECT_DOUBLE_EQ(t.total(), 7.5);
  EXPECT_STREQ(t.limit(), "dram");
  t.l0 = t.l2 = 5;
  EXPECT_DOUBLE_EQ(t.total(), 2 + std::sqrt(75));
}

TEST_F(Profiles, PartsAreNeverMoreThanTheWhole) {
  Program p(kStridedCopy, 8 * 1024 * 1024);
  const KernelProfile k = p.profile(1000);
  for (const double part : {k.issue_us, k.lds_us, k.l0_us, k.l2_us, k.mall_us, k.dram_us,
                            k.latency_us, k.launch_us}) {
    EXPECT_LE(part, k.time_us);
  }
  EXPECT_GT(k.roofline_us, 0);
  EXPECT_LE(k.roofline_us, k.time_us);
}

// ---- nothing changes

TEST_F(Profiles, CountingChangesNeitherResultsNorFindings) {
  // A race between workgroups, a value nobody wrote and a missing wait.
  constexpr char kWrong[] = R"(
  global_load_b32 v3, v0, s[4:5]
  v_add_nc_u32 v4, v3, v30
  v_cmp_eq_u32 vcc_lo, v30, v0
  global_store_b32 v0, v4, s[6:7]
)";
  for (const char* body : {kCopy, kStridedCopy, kWrong}) {
    Program counted(body, 64 * 1024), plain(body, 64 * 1024);
    const rdna::Launch launch = plain.launch(4);
    const rdna::Outcome expected = plain.plain(launch);
    Profiler profiler({"", true, {}});
    const auto recording = profiler.record(launch);
    const rdna::Outcome found = counted.plain(launch, &recording->counters());
    EXPECT_EQ(to_text(found.findings), to_text(expected.findings));
    EXPECT_EQ(found.findings.empty(), body != kWrong);
    EXPECT_EQ(found.instructions, expected.instructions);
    EXPECT_EQ(found.counts, expected.counts);
    EXPECT_EQ(counted.second, plain.second);
    EXPECT_EQ(recording->profile(false).instructions.size(), 0u);
  }
}

TEST(Chips, UnknownOnesAreRefusedWithThoseKnown) {
  for (const std::string name : {"7900", "7900XTX", "rtx4090", " 780m"}) {
    try {
      chip(name, Vendor::Amd);
      FAIL() << name;
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos);
      for (const std::string& known : chip_names(Vendor::Amd)) {
        EXPECT_NE(std::string(e.what()).find(known), std::string::npos) << e.what();
      }
    }
  }
  EXPECT_EQ(chip("").name, chip_names().front());
  amd::MockOptions options;
  options.profile = {"rtx4090", false, [](const KernelProfile&) {}};
  EXPECT_THROW(amd::make_mock(options), InvalidArgument);
}

TEST(Chips, TheirNumbersAreInOrder) {
  for (const std::string& name : chip_names()) {
    const Chip& c = chip(name);
    EXPECT_EQ(c.cus % c.core.cus_per_wgp, 0u) << name;
    for (const MemoryNs& ns : {c.vector_ns, c.scalar_ns}) {
      if (c.l1_kb) {
        EXPECT_LT(ns.l0, ns.l1) << name;
      }
      EXPECT_LT(ns.l1, ns.l2) << name;
      EXPECT_LT(ns.l2, ns.dram) << name;
      if (c.mall_kb) {
        EXPECT_LT(ns.l2, ns.mall) << name;
        EXPECT_LT(ns.mall, ns.dram) << name;
      }
    }
    EXPECT_GT(c.peak_flops_per_us(FloatKind::Matrix), c.peak_flops_per_us(FloatKind::Vector));
  }
  // As AMD's product page has it: 61.4 and 122.8 TFLOPS.
  EXPECT_NEAR(chip("7900xtx").peak_flops_per_us(FloatKind::Vector) / 1e6, 61.4, 0.1);
  EXPECT_NEAR(chip("7900xtx").peak_flops_per_us(FloatKind::Matrix) / 1e6, 122.8, 0.2);
  // NVIDIA's whitepapers of GA102, Ada and H100 (whose matrices are rated at 1830 of 1980 MHz).
  const auto peaks = [](const char* name, FloatKind kind) {
    return chip(name).peak_flops_per_us(kind) / 1e6;
  };
  EXPECT_NEAR(peaks("rtx3080", FloatKind::Vector), 29.8, 0.1);
  EXPECT_NEAR(peaks("rtx3080", FloatKind::Matrix), 59.5, 0.1);
  EXPECT_NEAR(peaks("rtx4090", FloatKind::Vector), 82.6, 0.1);
  EXPECT_NEAR(peaks("rtx4090", FloatKind::Matrix), 165.2, 0.1);
  EXPECT_NEAR(peaks("h100", FloatKind::Vector), 66.9, 0.1);
  EXPECT_NEAR(peaks("h100", FloatKind::Double), 33.5, 0.1);
  EXPECT_NEAR(peaks("h100", FloatKind::Half), 133.8, 0.1);
  EXPECT_NEAR(peaks("h100", FloatKind::Matrix) * 1830 / 1980, 989.4, 0.5);
}

}  // namespace
}  // namespace tuff::emu::profile
