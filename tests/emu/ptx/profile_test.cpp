// The profile of kernels of PTX: counts that follow from their text, caches on walks of known size,
// registers, and the order of times that is known. Nothing of it was held against hardware here.
#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "base/env.h"
#include "emu/llvm_tools.h"
#include "emu/profile/profiler.h"
#include "emu/ptx/launch.h"
#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using emu_api::KernelProfile;
using profile::Vendor;

const std::string kSource = std::string(TUFF_SOURCE_DIR) + "/tests/emu/profile_kernels.c";

class Profiled {
 public:
  explicit Profiled(const std::string& text, size_t bytes = 4096)
      : first(bytes), second(bytes), scene_(text) {
    for (size_t k = 0; k < bytes; ++k) first[k] = second[k] = uint8_t(k * 7 + k / 256);
    arguments_ = {scene_.add(first), scene_.add(second)};
  }
  Profiled& arguments(const std::vector<uint64_t>& more) {
    arguments_.insert(arguments_.end(), more.begin(), more.end());
    return *this;
  }
  // Checks what holds of every profile.
  KernelProfile run(uint32_t blocks, uint32_t threads = 32, const std::string& chip = "h100",
                    const std::string& kernel = "k") {
    KernelProfile told;
    profile::Profiler profiler({chip, true, [&](const KernelProfile& p) { told = p; }},
                               Vendor::Nvidia);
    auto& r = scene_.request;
    r.kernel = kernel;
    r.grid = {blocks, 1, 1};
    r.block = {threads, 1, 1};
    r.instruction_budget = 100'000'000;
    r.parameters.assign(arguments_.size() * 8 + 64, 0);
    std::memcpy(r.parameters.data(), arguments_.data(), arguments_.size() * 8);
    RangeMemory memory;
    const Outcome outcome = profiler.execute(r, memory);
    EXPECT_TRUE(outcome.finished);
    for (const Finding& f : outcome.findings) ADD_FAILURE() << to_text(f);
    uint64_t by_class = 0, by_row = 0;
    for (const auto& c : told.classes) by_class += c.instructions;
    for (const auto& i : told.instructions) {
      by_row += i.executed;
      EXPECT_LE(i.least_lines, i.lines) << i.text;
      EXPECT_LE(i.conflict_cycles, i.lds_cycles) << i.text;
    }
    EXPECT_EQ(by_class, outcome.instructions);
    EXPECT_EQ(by_row, outcome.instructions);
    EXPECT_GE(told.time_us, told.launch_us);
    EXPECT_LE(told.roofline_us, told.time_us);
    return told;
  }

  uint64_t second_address() const { return arguments_[1]; }

  std::vector<uint8_t> first, second;

 private:
  Scene scene_;
  std::vector<uint64_t> arguments_;
};

const KernelProfile::Class& class_of(const KernelProfile& p, const std::string& name) {
  for (const auto& c : p.classes) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("no class " + name);
}

// %rd10 and %rd11: the thread's element of both buffers, `step` bytes from the next one's.
std::string addresses(uint32_t step) {
  return fmt::format(R"(
  mul.wide.u32 %rd9, %r0, {};
  add.s64 %rd10, %rd0, %rd9;
  add.s64 %rd11, %rd1, %rd9;
)",
                     step);
}
const std::string kMove = "  ld.global.b32 %r3, [%rd10];\n  st.global.b32 [%rd11], %r3;\n";
const std::string kCopy = addresses(4) + kMove, kStridedCopy = addresses(128) + kMove;

// ---- counts

TEST(PtxProfiles, CopyOfNeighboursTouchesTheLeastLines) {
  Profiled p(kernel_of(kCopy));
  const KernelProfile k = p.run(8, 64);
  EXPECT_EQ(k.waves, 16u);
  EXPECT_EQ(k.workgroups, 8u);
  EXPECT_EQ(k.bytes_loaded, 16u * 128);
  EXPECT_EQ(k.bytes_stored, 16u * 128);
  EXPECT_EQ(k.lines_loaded, 16u);
  EXPECT_EQ(k.least_lines_loaded, 16u);
  EXPECT_EQ(k.lines_stored, 16u);
  EXPECT_EQ(k.sectors, 128u);
  EXPECT_EQ(k.least_sectors, 128u);
  EXPECT_EQ(class_of(k, "vmem_load").instructions, 16u);
  EXPECT_EQ(class_of(k, "vmem_store").instructions, 16u);
  EXPECT_EQ(class_of(k, "alu").instructions, 32u);  // two sums of 64 bits
  EXPECT_EQ(class_of(k, "fma").instructions, 32u);  // mad and mul.wide
  EXPECT_EQ(class_of(k, "branch").instructions, 16u);
  EXPECT_EQ(k.flops, 0);
  EXPECT_EQ(k.least_dram_bytes, 16u * 128 * 2);
  EXPECT_EQ(k.dram_bytes_read, 16u * 128);
}

TEST(PtxProfiles, StridedCopyTouchesALineForEachLaneAndFetchesASector) {
  Profiled p(kernel_of(kStridedCopy), 64 * 1024);
  const KernelProfile k = p.run(8);
  EXPECT_EQ(k.lines_loaded, 8u * 32);
  EXPECT_EQ(k.least_lines_loaded, 8u);
  EXPECT_EQ(k.sectors, 2 * 8u * 32);
  EXPECT_EQ(k.least_sectors, 2 * 8u * 4);
  EXPECT_EQ(k.dram_bytes_read, 8u * 32 * 32);  // a sector of each line
}

TEST(PtxProfiles, LanesThatShareBytesAreOneLineAndThoseWithoutGuardNone) {
  Profiled same(kernel_of("  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0];\n"));
  const KernelProfile k = same.run(1);
  EXPECT_EQ(k.bytes_loaded, 512u);
  EXPECT_EQ(k.lines_loaded, 1u);
  EXPECT_EQ(k.sectors, 1u);
  EXPECT_EQ(k.least_dram_bytes, 16u);
  Profiled few(kernel_of("  setp.lt.u32 %p0, %r2, 3;\n" + addresses(128) +
                         "  @%p0 ld.global.b32 %r3, [%rd10];\n"),
               64 * 1024);
  const KernelProfile f = few.run(1);
  EXPECT_EQ(f.bytes_loaded, 12u);
  EXPECT_EQ(f.lines_loaded, 3u);
  // One that no lane executes is issued all the same.
  Profiled none(kernel_of("  setp.lt.u32 %p0, %r2, 0;\n  @%p0 ld.global.b32 %r3, [%rd0];\n"));
  const KernelProfile n = none.run(1);
  EXPECT_EQ(class_of(n, "vmem_load").instructions, 1u);
  EXPECT_EQ(n.lines_loaded, 0u);
}

// %r4: the offset of a thread in shared memory.
uint64_t shared_cycles(uint32_t step, const std::string& body, uint64_t* conflicts) {
  Profiled p(kernel_of(fmt::format("  .shared .align 16 .b8 tile[8192];\n  mov.u32 %r5, tile;\n"
                                   "  mad.lo.u32 %r4, %r2, {}, %r5;\n  mov.u32 %r6, 0;\n{}",
                                   step, body)));
  const KernelProfile k = p.run(1);
  *conflicts = k.lds_conflict_cycles;
  return k.lds_cycles;
}

TEST(PtxProfiles, BanksOfSharedMemory) {
  const char* kStore = "  st.shared.b32 [%r4], %r2;\n";
  const char* kWide = "  st.shared.v4.b32 [%r4], {%r2, %r2, %r2, %r2};\n";
  uint64_t conflicts = 0;
  EXPECT_EQ(shared_cycles(4, kStore, &conflicts), 1u);
  EXPECT_EQ(conflicts, 0u);
  EXPECT_EQ(shared_cycles(128, kStore, &conflicts), 32u);
  EXPECT_EQ(conflicts, 31u);
  EXPECT_EQ(shared_cycles(132, kStore, &conflicts), 1u);
  EXPECT_EQ(conflicts, 0u);
  EXPECT_EQ(shared_cycles(16, kWide, &conflicts), 4u);  // in quarters of the warp
  EXPECT_EQ(conflicts, 0u);
  // All of one word, or of two: quarters that ask for the same pass at once.
  EXPECT_EQ(shared_cycles(0, "  and.b32 %r8, %r2, 1;\n  mad.lo.u32 %r4, %r8, 16, %r5;\n"
                             "  st.shared.v4.b32 [%r4], {%r6, %r6, %r6, %r6};\n",
                          &conflicts),
            1u);
  EXPECT_EQ(shared_cycles(4, "  shfl.sync.bfly.b32 %r7, %r2, 1, 31, -1;\n", &conflicts), 1u);
  // A word that all read comes once, one that all change for one after the other.
  const std::string first = "  @%p0 st.shared.b32 [%r4], %r2;\n  bar.sync 0;\n";
  const auto after_first = [&](const char* text) {
    return shared_cycles(0, "  setp.eq.u32 %p0, %r2, 0;\n" + first + text, &conflicts) - 1;
  };
  EXPECT_EQ(after_first("  ld.shared.b32 %r7, [%r4];\n"), 1u);
  EXPECT_EQ(after_first("  atom.shared.add.u32 %r7, [%r4], 1;\n"), 32u);
  EXPECT_EQ(conflicts, 31u);
}

TEST(PtxProfiles, ClassesFloatsAndMatrices) {
  std::string body = "  mov.f32 %f1, 0f3F800000;\n  mov.f64 %fd1, 0d3FF0000000000000;\n";
  for (int r = 4; r < 10; ++r) body += fmt::format("  mov.b32 %r{}, 0;\n", r);
  body += R"(
  fma.rn.f32 %f2, %f1, %f1, %f1;
  add.rn.f32 %f3, %f1, %f2;
  max.f32 %f4, %f1, %f2;
  ex2.approx.f32 %f5, %f1;
  fma.rn.f64 %fd2, %fd1, %fd1, %fd1;
  fma.rn.f16x2 %r10, %r4, %r5, %r6;
  mul.lo.s32 %r11, %r4, %r5;
  mov.f32 %f6, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10, %f11, %f12, %f13}, {%r4, %r5, %r6, %r7},
    {%r8, %r9}, {%f6, %f6, %f6, %f6};
)";
  Profiled p(kernel_of(body));
  const KernelProfile k = p.run(1, 32, "rtx3080"), h = p.run(1, 32, "h100");
  EXPECT_EQ(class_of(k, "fma").instructions, 4u);  // with mad and mul
  EXPECT_EQ(class_of(k, "alu").instructions, 1u);
  EXPECT_EQ(class_of(k, "xu").instructions, 1u);
  EXPECT_EQ(class_of(k, "fp64").instructions, 1u);
  EXPECT_EQ(class_of(k, "fp16").instructions, 1u);
  EXPECT_EQ(class_of(k, "tensor").instructions, 1u);
  EXPECT_EQ(k.mad_instructions, 5u);
  EXPECT_EQ(k.flops, 32.0 * (2 + 1 + 1 + 2 + 4) + 2 * 16 * 8 * 16);
  EXPECT_EQ(class_of(k, "tensor").issue_cycles, 32);
  EXPECT_EQ(class_of(h, "tensor").issue_cycles, 4);
  EXPECT_EQ(class_of(k, "fp64").issue_cycles, 64);
  EXPECT_EQ(class_of(h, "fp64").issue_cycles, 2);
  EXPECT_EQ(class_of(k, "fp16").issue_cycles, 2);
  EXPECT_EQ(class_of(h, "fp16").issue_cycles, 1);
}

// ---- caches

KernelProfile walk(const char* chip, uint32_t bytes) {
  Profiled p(kernel_of(fmt::format(R"(
  mov.u32 %r5, 2;
again:
  mul.wide.u32 %rd9, %r2, 4;
  add.s64 %rd10, %rd0, %rd9;
  mov.u32 %r4, {};
more:
  ld.global.b32 %r3, [%rd10];
  add.s64 %rd10, %rd10, 128;
  sub.u32 %r4, %r4, 1;
  setp.ne.u32 %p0, %r4, 0;
  @%p0 bra more;
  sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p0, %r5, 0;
  @%p0 bra again;
)",
                                   bytes / 128)),
             bytes);
  return p.run(1, 32, chip);
}

TEST(PtxProfiles, WalksHitTheCacheThatHoldsThem) {
  struct Case {
    const char* chip;
    uint32_t kb;
    double l1, l2;  // hits in the second half of the walk, of all of its sectors
  };
  for (const Case& c : {Case{"h100", 64, 1, 0}, Case{"h100", 256, 1, 0}, Case{"h100", 1024, 0, 1},
                        Case{"rtx3080", 128, 1, 0}, Case{"rtx3080", 256, 0, 1},
                        Case{"rtx3080", 16 * 1024, 0, 0}}) {
    const KernelProfile k = walk(c.chip, c.kb * 1024);
    const double sectors = c.kb * 32;
    EXPECT_EQ(double(k.l0_hits), c.l1 * sectors) << c.chip << " " << c.kb;
    EXPECT_EQ(double(k.l2_hits), c.l2 * sectors) << c.chip << " " << c.kb;
    EXPECT_EQ(k.l1_hits + k.l1_misses + k.mall_hits + k.mall_misses, 0u);
    EXPECT_EQ(k.dram_bytes_read, (c.l1 + c.l2 > 0 ? 1u : 2u) * c.kb * 1024) << c.kb;
  }
}

// ---- times

KernelProfile transpose(const std::string& text, const std::string& name, const std::string& chip) {
  constexpr uint32_t kSize = 256;
  Profiled p(text, kSize * kSize * 4);
  p.arguments({kSize});
  const KernelProfile k = p.run(kSize * kSize / 1024, 256, chip, name);
  for (uint32_t at = 0; at < kSize * kSize; at += 77) {
    const uint32_t mirrored = at % kSize * kSize + at / kSize;
    EXPECT_EQ(std::memcmp(&p.first[at * 4], &p.second[mirrored * 4], 4), 0) << name;
  }
  return k;
}

class PtxTimes : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
  static const std::string& text() {
    static const std::string made = testing::compile_ptx(kSource);
    return made;
  }
};

TEST_F(PtxTimes, TilesMakeTransposesFaster) {
  for (const std::string& chip : profile::chip_names(Vendor::Nvidia)) {
    const KernelProfile naive = transpose(text(), "transpose_naive", chip);
    const KernelProfile conflicts = transpose(text(), "transpose_conflicts", chip);
    const KernelProfile padded = transpose(text(), "transpose_padded", chip);
    EXPECT_EQ(naive.lines_stored, 32 * naive.least_lines_stored);
    EXPECT_EQ(padded.lines_stored, padded.least_lines_stored);
    EXPECT_EQ(padded.lds_conflict_cycles, 0u);
    EXPECT_EQ(conflicts.lds_conflict_cycles, 31u * 256 * 256 / 32);
    EXPECT_LT(padded.time_us, naive.time_us) << chip;
    EXPECT_LE(padded.time_us, conflicts.time_us) << chip;
    EXPECT_LT(10 * padded.lds_us, conflicts.lds_us) << chip;
  }
}

TEST_F(PtxTimes, TilesOfRegistersMakeProductsFaster) {
  constexpr uint32_t kSize = 128;
  double last_time = 1e9;
  uint64_t last_lines = ~0ull;
  for (const uint32_t tile : {1u, 2u, 4u}) {
    Profiled p(text(), 2 * kSize * kSize * 4);
    std::ranges::fill(p.first, uint8_t(0));
    std::ranges::fill(p.second, uint8_t(0));
    p.arguments({p.second_address(), kSize});
    const KernelProfile k =
        p.run(kSize * kSize / (tile * tile) / 256, 256, "rtx3080", fmt::format("product_{}", tile));
    EXPECT_LT(k.lines_loaded, last_lines) << tile;
    // Of all SMs: a block to each, fewer of them the larger the tiles.
    const double time = double(k.workgroups) * (k.issue_us + k.l0_us);
    EXPECT_LT(time, 0.6 * last_time) << tile;
    EXPECT_GE(k.flops, 2.0 * kSize * kSize * kSize);
    last_time = time;
    last_lines = k.lines_loaded;
  }
}

TEST(PtxProfiles, StridedCopyIsSlower) {
  for (const std::string& chip : profile::chip_names(Vendor::Nvidia)) {
    Profiled near(kernel_of(kCopy), 32 << 20), far(kernel_of(kStridedCopy), 32 << 20);
    const KernelProfile a = near.run(1024, 256, chip), b = far.run(1024, 256, chip);
    EXPECT_GT(b.time_us - b.launch_us, 2 * (a.time_us - a.launch_us)) << chip;
    EXPECT_GT(b.l2_us, 7 * a.l2_us) << chip;  // sectors: an eighth of a line's lanes each
  }
}

// The same lines, by one warp and by many.
TEST(PtxProfiles, OneWarpIsFarSlowerThanMany) {
  constexpr uint32_t kWarps = 512;
  Profiled many(kernel_of(kCopy), kWarps * 128);
  Profiled one(kernel_of(addresses(4) + fmt::format(R"(
  mov.u32 %r4, {};
more:
{}  add.s64 %rd10, %rd10, 128;
  add.s64 %rd11, %rd11, 128;
  sub.u32 %r4, %r4, 1;
  setp.ne.u32 %p0, %r4, 0;
  @%p0 bra more;
)",
                                                    kWarps, kMove)),
               kWarps * 128);
  for (const std::string& chip : profile::chip_names(Vendor::Nvidia)) {
    const KernelProfile a = many.run(kWarps, 32, chip), b = one.run(1, 32, chip);
    EXPECT_EQ(a.bytes_loaded, b.bytes_loaded);
    EXPECT_EQ(a.dram_bytes_read, b.dram_bytes_read);
    EXPECT_GT(b.time_us, 15 * a.time_us) << chip;
    EXPECT_EQ(b.limit, "latency") << chip;
  }
}

// A load is waited for where its value is used, if anything comes behind that.
TEST(PtxProfiles, LoadsOnTheWayTogetherTakeTheTimeOfOne) {
  std::string apart = addresses(4), together = addresses(4), mixed = addresses(4), uses;
  for (int k = 0; k < 8; ++k) {
    const std::string load = fmt::format("  ld.global.b32 %r{}, [%rd10+{}];\n", 10 + k, k * 128);
    const std::string use = fmt::format("  add.u32 %r30, %r0, %r{};\n", 10 + k);
    together += load;
    uses += use;
    mixed += load + use;
    apart += load + use + "  bar.sync 0;\n";
  }
  const auto latency = [](const std::string& body) {
    return Profiled(kernel_of(body)).run(1).latency_us;
  };
  EXPECT_GT(latency(apart), 4 * latency(together + uses));
  EXPECT_LT(latency(mixed), 1.1 * latency(together + uses));  // ptxas would move the loads
}

TEST(PtxProfiles, BarriersWaitForTheLastWarp) {
  const std::string slow = R"(
  setp.ge.u32 %p0, %r2, 32;
  @%p0 bra past;
  mul.wide.u32 %rd9, %r2, 4;
  add.s64 %rd10, %rd0, %rd9;
  ld.global.b32 %r3, [%rd10];
  add.u32 %r4, %r3, 1;
past:
)";
  Profiled alone(kernel_of(slow)), together(kernel_of(slow + "  bar.sync 0;\n"));
  const KernelProfile a = alone.run(1, 1024), b = together.run(1, 1024);
  EXPECT_EQ(class_of(b, "barrier").instructions, 32u);
  EXPECT_NEAR(a.latency_us, b.latency_us, 0.01);  // the last warp's, in both
}

// ---- registers

TEST(PtxResources, LivenessOfLoopsBranchesAndWideRegisters) {
  Scene scene(kernel_of(R"(
  mov.u64 %rd10, 1;
  mov.u32 %r10, 1;
  mov.u32 %r11, 5;
more:
  add.u64 %rd11, %rd10, %rd0;
  add.u32 %r10, %r10, %r11;
  sub.u32 %r11, %r11, 1;
  setp.ne.u32 %p0, %r11, 0;
  @%p0 bra more;
  st.global.u64 [%rd1], %rd11;
  st.global.u32 [%rd1], %r10;
)"));
  const auto& module = dynamic_cast<const Module&>(scene.module());
  // In the loop: rd0, rd1, rd10, rd11 of two words; r10, r11 of one.
  EXPECT_EQ(profile::live_registers(module, *module.find("k")), 4u * 2 + 2);
}

TEST(PtxResources, EstimatesSayThatTheyAre) {
  const EnvOverride no_ptxas(Env::TUFF_PTXAS, "/nowhere/ptxas");
  Profiled p(kernel_of(kCopy));
  const KernelProfile k = p.run(1);
  EXPECT_TRUE(k.registers_estimated);
  EXPECT_GE(k.vgprs, 16u);
}

TEST(PtxResources, RegistersAndSharedMemoryBoundTheWarpsOfAnSm) {
  const auto warps = [](const char* chip, uint32_t registers, uint32_t shared, uint32_t per_block) {
    return profile::Residency{registers, shared, per_block, false}.waves_per_simd(
        profile::chip(chip));
  };
  // CUDA C++ Programming Guide, 16.2: 64 and 48 warps of an SM, 65536 registers, 228 and 100 KB.
  EXPECT_EQ(warps("h100", 32, 0, 8), 16);
  EXPECT_EQ(warps("h100", 64, 0, 8), 8);
  EXPECT_EQ(warps("rtx3080", 32, 0, 8), 12);
  EXPECT_EQ(warps("rtx3080", 32, 0, 1), 4);  // 16 blocks
  EXPECT_EQ(warps("rtx4090", 32, 0, 1), 6);  // 24 blocks
  EXPECT_EQ(warps("h100", 32, 48 << 10, 8), 8);  // 4 blocks of 49 KB
  EXPECT_EQ(warps("rtx3080", 32, 48 << 10, 8), 4);
}

TEST(PtxResources, SharedMemoryIsTakenFromTheL1) {
  const auto kb = [](const char* chip, uint32_t shared) {
    return profile::Residency{32, shared, 8, false}.l0_bytes(profile::chip(chip)) >> 10;
  };
  EXPECT_EQ(kb("h100", 0), 256u);
  EXPECT_EQ(kb("h100", 8 << 10), 256u - 100);  // 8 blocks of 9 KB
  EXPECT_EQ(kb("rtx3080", 0), 128u);
  EXPECT_EQ(kb("rtx3080", 90 << 10), 28u);
}

// ---- nothing changes

TEST(PtxProfiles, CountingChangesNeitherResultsNorFindings) {
  // A race between blocks and a value that nobody wrote.
  const std::string wrong = "  add.u32 %r9, %r9, %r2;\n  st.global.b32 [%rd1], %r9;\n" + kCopy;
  for (const std::string& body : {kCopy, kStridedCopy, wrong}) {
    Outcome outcomes[2];
    std::vector<uint8_t> stored[2];
    for (const bool counted : {false, true}) {
      Scene scene(kernel_of(body));
      std::vector<uint8_t> in(64 * 1024, 3), out(64 * 1024);
      const std::vector<uint64_t> arguments{scene.add(in), scene.add(out), 0, 0};
      scene.request.grid = {4, 1, 1};
      scene.request.block = {64, 1, 1};
      scene.request.seed = 7;
      scene.request.parameters.resize(32);
      std::memcpy(scene.request.parameters.data(), arguments.data(), 32);
      profile::Profiler profiler({"", true, {}}, Vendor::Nvidia);
      RangeMemory memory;
      outcomes[counted] = counted ? profiler.execute(scene.request, memory)
                                 : execute(scene.request, memory);
      stored[counted] = out;
    }
    EXPECT_EQ(outcomes[0].instructions, outcomes[1].instructions);
    EXPECT_EQ(outcomes[0].counts, outcomes[1].counts);
    EXPECT_EQ(outcomes[0].findings.empty(), body != wrong);
    ASSERT_EQ(outcomes[0].findings.size(), outcomes[1].findings.size());
    for (size_t k = 0; k < outcomes[0].findings.size(); ++k)
      EXPECT_EQ(to_text(outcomes[0].findings[k]), to_text(outcomes[1].findings[k]));
    EXPECT_EQ(stored[0], stored[1]);
  }
}

TEST(PtxProfiles, UnknownChipsAreRefusedWithThoseKnown) {
  for (const char* name : {"h1000", "H100", "7900xtx"}) {
    try {
      profile::chip(name, Vendor::Nvidia);
      FAIL() << name;
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find("NVIDIA"), std::string::npos);
      for (const std::string& known : profile::chip_names(Vendor::Nvidia))
        EXPECT_NE(std::string(e.what()).find(known), std::string::npos) << e.what();
    }
  }
  EXPECT_STREQ(profile::chip("", Vendor::Nvidia).name, "h100");
}

}  // namespace
}  // namespace tuff::emu::ptx
