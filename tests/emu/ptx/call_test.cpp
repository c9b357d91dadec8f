// Control flow of PTX: branches whose lanes part and meet, calls, tables, barriers, local and
// parameter memory.
#include <algorithm>
#include <numeric>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U32 = uint32_t;

// What each thread leaves, of `count` threads in one block.
std::vector<U32> results_of(const std::string& text, uint32_t count, uint64_t seed = 0) {
  std::vector<U32> out(count, 0xEEEE);
  Scene scene(text);
  scene.request.block = {count, 1, 1};
  scene.request.seed = seed;
  scene.run_clean({scene.add(out)});
  return out;
}

const char* const kStore = R"(
  mul.wide.u32 %rd10, %r0, 4;
  add.u64 %rd11, %rd0, %rd10;
  st.global.u32 [%rd11], %r50;)";

TEST(PtxControl, LanesPartAndMeet) {
  const auto out = results_of(kernel_of(std::string(R"(
  and.b32 %r3, %r0, 3;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra ZERO;
  setp.lt.u32 %p2, %r3, 3;
  @!%p2 bra THREE;
  mul.lo.u32 %r50, %r0, 10;
  bra.uni END;
ZERO:
  add.u32 %r50, %r0, 1000;
  bra END;
THREE:
  mov.u32 %r50, 7;
END:
  activemask.b32 %r51;
  add.u32 %r50, %r50, %r51;)") + kStore),
                              40);
  for (U32 k = 0; k < 40; ++k) {
    // All lanes have met: the second warp has eight.
    const U32 mask = k < 32 ? ~0u : 0xFF;
    const U32 value = k % 4 == 0 ? k + 1000 : k % 4 == 3 ? 7 : k * 10;
    EXPECT_EQ(out[k], value + mask) << k;
  }
}

TEST(PtxControl, LoopsOfDifferentLengths) {
  const auto out = results_of(kernel_of(std::string(R"(
  mov.u32 %r50, 0;
  mov.u32 %r3, 0;
LOOP:
  setp.gt.u32 %p1, %r3, %r0;
  @%p1 bra END;
  add.u32 %r50, %r50, %r3;
  add.u32 %r3, %r3, 1;
  bra LOOP;
END:)") + kStore),
                              64);
  for (U32 k = 0; k < 64; ++k) EXPECT_EQ(out[k], k * (k + 1) / 2);
}

// Lanes wait for another of their warp: since sm_70 both go on (CUDA C++ Programming Guide,
// Independent Thread Scheduling).
TEST(PtxControl, LanesOfAWarpMayWaitForEachOther) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto out = results_of(kernel_of(std::string(R"(
  setp.eq.u32 %p1, %r0, 5;
  @%p1 bra GIVE;
WAIT:
  ld.relaxed.gpu.global.u32 %r3, [flag];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra WAIT;
  mov.u32 %r50, %r3;
  bra END;
GIVE:
  mov.u32 %r50, 9;
  st.relaxed.gpu.global.u32 [flag], %r50;
END:)") + kStore,
                                          ".global .u32 flag;"),
                                32, seed);
    for (const U32 v : out) EXPECT_EQ(v, 9u);
  }
}

TEST(PtxControl, BranchTables) {
  const auto out = results_of(kernel_of(std::string(R"(
  and.b32 %r3, %r0, 3;
TARGETS: .branchtargets A, B, C, B;
  brx.idx %r3, TARGETS;
A: mov.u32 %r50, 100; bra END;
B: mov.u32 %r50, 200; bra END;
C: mov.u32 %r50, 300;
END:)") + kStore),
                              32);
  const U32 wanted[] = {100, 200, 300, 200};
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(out[k], wanted[k % 4]);
}

const char* const kFactorial = R"(
.func (.param .b32 result) factorial(.param .b32 n)
{
  .reg .b32 %r<8>;
  .reg .pred %p<2>;
  ld.param.u32 %r1, [n];
  setp.le.u32 %p1, %r1, 1;
  mov.u32 %r2, 1;
  @%p1 bra DONE;
  sub.u32 %r3, %r1, 1;
  {
    .param .b32 to;
    .param .b32 from;
    st.param.b32 [to], %r3;
    call (from), factorial, (to);
    ld.param.b32 %r4, [from];
  }
  mul.lo.u32 %r2, %r4, %r1;
DONE:
  st.param.b32 [result], %r2;
  ret;
}
.func (.reg .b32 sum) sum_of(.reg .b32 a, .reg .b32 b)
{
  add.u32 sum, a, b;
  ret;
}
)";

// Depths differ from lane to lane, and some lanes do not call at all.
TEST(PtxControl, CallsOfThemselvesByPartsOfAWarp) {
  const auto out = results_of(kernel_of(std::string(R"(
  and.b32 %r3, %r0, 7;
  mov.u32 %r50, 0;
  setp.eq.u32 %p1, %r3, 6;
  @%p1 bra END;
  {
    .param .b32 n;
    .param .b32 f;
    st.param.b32 [n], %r3;
    call.uni (f), factorial, (n);
    ld.param.b32 %r50, [f];
  }
  call (%r50), sum_of, (%r50, %r0);
END:)") + kStore,
                                        kFactorial),
                              64);
  const U32 factorials[] = {1, 1, 2, 6, 24, 120, 720, 5040};
  for (U32 k = 0; k < 64; ++k) EXPECT_EQ(out[k], k % 8 == 6 ? 0 : factorials[k % 8] + k) << k;
}

TEST(PtxControl, PredicatesGuardSingleInstructions) {
  const auto out = results_of(kernel_of(std::string(R"(
  mov.u32 %r50, 1;
  setp.gt.u32 %p1, %r0, 9;
  setp.lt.and.u32 %p2, %r0, 20, %p1;
  xor.pred %p3, %p1, %p2;
  @%p2 mov.u32 %r50, 2;
  @%p3 add.u32 %r50, %r50, 5;
  not.pred %p4, %p3;
  @!%p4 add.u32 %r50, %r50, 10;
  @%p1 bra END;
  add.u32 %r50, %r50, 50;
END:)") + kStore),
                              32);
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(out[k], k < 10 ? 51 : k < 20 ? 2 : 16) << k;
}

TEST(PtxControl, LocalMemoryIsEachLanesOwn) {
  const auto out = results_of(kernel_of(std::string(R"(
  .local .align 8 .b8 stack[64];
  mov.u64 %rd5, stack;
  and.b32 %r3, %r0, 7;
  mul.wide.u32 %rd6, %r3, 4;
  add.u64 %rd7, %rd5, %rd6;
  st.local.u32 [%rd7], %r0;
  cvta.local.u64 %rd8, %rd7;
  ld.u32 %r50, [%rd8];
  cvta.to.local.u64 %rd9, %rd8;
  ld.local.u32 %r51, [%rd9];
  add.u32 %r50, %r50, %r51;)") + kStore),
                              64);
  for (U32 k = 0; k < 64; ++k) EXPECT_EQ(out[k], 2 * k);
}

TEST(PtxControl, VectorsPackAndUnpack) {
  std::vector<U32> in(4 * 32), out(4 * 32);
  std::iota(in.begin(), in.end(), 0x01020304);
  Scene scene(kernel_of(R"(
  mul.wide.u32 %rd10, %r0, 16;
  add.u64 %rd11, %rd0, %rd10;
  add.u64 %rd12, %rd1, %rd10;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd11];
  mov.b64 %rd5, {%r10, %r11};
  mov.b64 {%r20, %r21}, %rd5;
  mov.b32 {%rs1, %rs2}, %r12;
  mov.b32 %r22, {%rs2, %rs1};
  mov.b32 {_, %rs3}, %r13;
  cvt.u32.u16 %r23, %rs3;
  st.global.v2.b32 [%rd12], {%r21, %r20};
  st.global.v2.b32 [%rd12+8], {%r22, %r23};)"));
  scene.run_clean({scene.add(in), scene.add(out)});
  for (U32 k = 0; k < 32; ++k) {
    EXPECT_EQ(out[4 * k], in[4 * k + 1]);
    EXPECT_EQ(out[4 * k + 1], in[4 * k]);
    EXPECT_EQ(out[4 * k + 2], in[4 * k + 2] >> 16 | in[4 * k + 2] << 16);
    EXPECT_EQ(out[4 * k + 3], in[4 * k + 3] >> 16);
  }
}

TEST(PtxControl, NarrowLoadsExtend) {
  std::vector<uint8_t> in{0xFE, 0x80, 0x7F, 0xFF};
  std::vector<uint64_t> out(6);
  Scene scene(kernel_of(R"(
  ld.global.s8 %r10, [%rd0];      cvt.s64.s32 %rd10, %r10; st.global.b64 [%rd1], %rd10;
  ld.global.u8 %rd11, [%rd0];     st.global.b64 [%rd1+8], %rd11;
  ld.global.s16 %rd12, [%rd0];    st.global.b64 [%rd1+16], %rd12;
  ld.global.s8 %rs1, [%rd0+2];    cvt.s64.s16 %rd13, %rs1; st.global.b64 [%rd1+24], %rd13;
  ld.global.s32 %rd14, [%rd0];    st.global.b64 [%rd1+32], %rd14;
  ld.global.b32 %rd15, [%rd0];    st.global.b64 [%rd1+40], %rd15;)"));
  scene.request.block = {1, 1, 1};
  scene.run_clean({scene.add(in), scene.add(out)});
  EXPECT_EQ(int64_t(out[0]), -2);
  EXPECT_EQ(out[1], 0xFEu);
  EXPECT_EQ(int64_t(out[2]), int16_t(0x80FE));
  EXPECT_EQ(int64_t(out[3]), 0x7F);
  EXPECT_EQ(int64_t(out[4]), int32_t(0xFF7F80FE));
  EXPECT_EQ(out[5], 0xFF7F80FEu);
}

// ---- special registers

TEST(PtxControl, ThreadsKnowWhereTheyAre) {
  std::vector<U32> out(2 * 3 * 5 * 4 * 2 * 8);
  Scene scene(std::string(kHead) + R"(
.visible .entry k(.param .u64 p0)
{
  .reg .b32 %r<40>; .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [p0];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
  mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %nctaid.x;
  mad.lo.u32 %r10, %r3, %r5, %r2;
  mad.lo.u32 %r10, %r10, %r4, %r1;      // thread of the block
  mad.lo.u32 %r11, %r8, %r9, %r7;       // block
  mul.lo.u32 %r12, %r4, %r5;
  mul.lo.u32 %r12, %r12, %r6;
  mad.lo.u32 %r13, %r11, %r12, %r10;
  mul.wide.u32 %rd1, %r13, 32;
  add.u64 %rd2, %rd0, %rd1;
  st.global.u32 [%rd2], %r10;
  mov.u32 %r14, %laneid;      st.global.u32 [%rd2+4], %r14;
  mov.u32 %r15, %warpid;      st.global.u32 [%rd2+8], %r15;
  mov.u32 %r16, %lanemask_lt; st.global.u32 [%rd2+12], %r16;
  mov.u32 %r17, %lanemask_ge; st.global.u32 [%rd2+16], %r17;
  mov.u32 %r18, %nwarpid;     st.global.u32 [%rd2+20], %r18;
  mov.u32 %r19, %nctaid.y;    st.global.u32 [%rd2+24], %r19;
  mov.u32 %r20, %lanemask_eq; st.global.u32 [%rd2+28], %r20;
  ret;
}
)");
  scene.request.grid = {2, 3, 1};
  scene.request.block = {5, 4, 2};
  scene.run_clean({scene.add(out)});
  for (U32 k = 0; k < 6 * 40; ++k) {
    const U32 thread = k % 40, lane = thread % 32;
    const std::vector<U32> wanted{thread, lane, thread / 32, (1u << lane) - 1, ~((1u << lane) - 1),
                                  2,      3,    1u << lane};
    EXPECT_EQ(std::vector<U32>(out.begin() + 8 * k, out.begin() + 8 * k + 8), wanted) << k;
  }
}

// ---- barriers and shared memory

// Each thread reads what its opposite wrote; static and dynamic memory.
TEST(PtxControl, BarriersOrderSharedMemory) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<U32> out(256);
    Scene scene(
        kernel_of(std::string(R"(
  mov.u64 %rd5, fixed+64;
  sub.u64 %rd5, %rd5, 64;
  mov.u64 %rd6, rest;
  mul.wide.u32 %rd7, %r2, 4;
  add.u64 %rd8, %rd5, %rd7;
  add.u64 %rd9, %rd6, %rd7;
  mul.lo.u32 %r3, %r0, 3;
  st.shared.u32 [%rd8], %r3;
  st.shared.u32 [%rd9], %r0;
  bar.sync 0;
  xor.b32 %r4, %r2, 127;
  mul.wide.u32 %rd7, %r4, 4;
  add.u64 %rd8, %rd5, %rd7;
  add.u64 %rd9, %rd6, %rd7;
  ld.shared.u32 %r50, [%rd8];
  cvta.shared.u64 %rd9, %rd9;
  ld.u32 %r51, [%rd9];
  add.u32 %r50, %r50, %r51;)") +
                      kStore,
                  ".shared .align 4 .b8 fixed[512];\n.extern .shared .align 16 .b8 rest[];"));
    EXPECT_EQ(scene.module().kernels()[0].shared_bytes, 512u);
    scene.request.grid = {2, 1, 1};
    scene.request.block = {128, 1, 1};
    scene.request.dynamic_shared_bytes = 512;
    scene.request.seed = seed;
    scene.run_clean({scene.add(out)});
    for (U32 k = 0; k < 256; ++k) EXPECT_EQ(out[k], 4 * (k ^ 127));
  }
}

TEST(PtxControl, BarriersReduce) {
  const auto out = results_of(kernel_of(std::string(R"(
  setp.lt.u32 %p1, %r0, 37;
  bar.red.popc.u32 %r50, 0, %p1;
  setp.lt.u32 %p2, %r0, 1000;
  bar.red.and.pred %p3, 1, %p2;
  bar.red.or.pred %p4, 2, !%p2;
  selp.u32 %r51, 100, 0, %p3;
  selp.u32 %r52, 1000, 0, %p4;
  add.u32 %r50, %r50, %r51;
  add.u32 %r50, %r50, %r52;)") + kStore),
                              96);
  for (const U32 v : out) EXPECT_EQ(v, 137u);
}

// One warp makes, another takes: "arrive" does not wait.
TEST(PtxControl, BarriersOfAPartOfTheBlock) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const auto out = results_of(kernel_of(std::string(R"(
  mov.u64 %rd5, box;
  mov.u32 %r50, 0;
  setp.lt.u32 %p1, %r0, 32;
  mul.wide.u32 %rd6, %r0, 4;
  add.u64 %rd7, %rd5, %rd6;
  @!%p1 bra TAKE;
  add.u32 %r3, %r0, 500;
  st.shared.u32 [%rd7], %r3;
  bar.arrive 3, 64;
  bra END;
TAKE:
  bar.sync 3, 64;
  ld.shared.u32 %r50, [%rd7+-128];
END:)") + kStore,
                                          ".shared .align 4 .b8 box[128];"),
                                64, seed);
    for (U32 k = 0; k < 64; ++k) EXPECT_EQ(out[k], k < 32 ? 0 : k - 32 + 500);
  }
}

// ---- variables of the module

TEST(PtxControl, VariablesOfTheModule) {
  Scene scene(kernel_of(std::string(R"(
  and.b32 %r3, %r0, 3;
  mul.wide.u32 %rd5, %r3, 4;
  mov.u64 %rd6, table;
  add.u64 %rd6, %rd6, %rd5;
  ld.const.u32 %r50, [%rd6];
  ld.global.u64 %rd7, [pointer];
  ld.global.f32 %f1, [%rd7+4];
  cvt.rzi.u32.f32 %r51, %f1;
  add.u32 %r50, %r50, %r51;
  atom.global.add.u32 %r4, [counter], 1;)") +
                            kStore,
                        R"(
.const .align 4 .u32 table[4] = {10, 20, 30, 0x28};
.global .align 4 .f32 floats[2] = {1.5, 0f42C80000};
.global .u64 pointer = generic(floats);
.global .u32 counter;)"));
  std::vector<U32> out(32);
  scene.run_clean({scene.add(out)});
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(out[k], (k % 4 + 1) * 10 + 100);
  for (const auto& v : scene.module().variables()) {
    if (v.name != "counter") continue;
    U32 count;
    std::memcpy(&count, v.host, 4);
    EXPECT_EQ(count, 32u);
    return;
  }
  FAIL() << "no counter";
}

TEST(PtxControl, ClocksRise) {
  const auto out = results_of(kernel_of(std::string(R"(
  mov.u64 %rd5, %clock64;
  mov.u32 %r3, %clock;
  nanosleep.u32 20;
  mov.u64 %rd6, %clock64;
  sub.u64 %rd7, %rd6, %rd5;
  setp.gt.u64 %p1, %rd7, 0;
  selp.u32 %r50, 1, 0, %p1;)") + kStore),
                              8);
  for (const U32 v : out) EXPECT_EQ(v, 1u);
}

// The same seed runs the same way; the results do not depend on it.
TEST(PtxControl, SeedsRepeat) {
  const std::string global = kernel_of(std::string(R"(
  atom.global.add.u32 %r50, [box], 1;)") + kStore,
                                       ".global .u32 box;");
  std::vector<std::vector<U32>> seen;
  for (const uint64_t seed : {1u, 1u, 2u}) {
    std::vector<U32> out(256);
    Scene scene(global);
    scene.request.grid = {4, 1, 1};
    scene.request.block = {64, 1, 1};
    scene.request.seed = seed;
    scene.run_clean({scene.add(out)});
    seen.push_back(out);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
  std::ranges::sort(seen[2]);
  for (U32 k = 0; k < 256; ++k) EXPECT_EQ(seen[2][k], k);
}

}  // namespace
}  // namespace tuff::emu::ptx
