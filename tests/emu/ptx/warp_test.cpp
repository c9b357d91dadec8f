// What the lanes of a warp do together, atomics, asynchronous copies.
#include <algorithm>
#include <numeric>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U32 = uint32_t;
using S32 = int32_t;

// d of 32 lanes, of the lane numbers times 7 in %r10.
std::vector<U32> of_a_warp(const std::string& body, uint32_t lanes = 32) {
  std::vector<U32> out(lanes);
  Scene scene(kernel_of("  mul.lo.u32 %r10, %r0, 7;\n" + body + R"(
  mul.wide.u32 %rd10, %r0, 4;
  add.u64 %rd11, %rd0, %rd10;
  st.global.u32 [%rd11], %r50;)"));
  scene.request.block = {lanes, 1, 1};
  scene.run_clean({scene.add(out)});
  return out;
}

TEST(PtxWarp, Shuffles) {
  const auto expect_from = [](const std::string& operation, auto source) {
    const auto out = of_a_warp("  shfl.sync." + operation + ", 0xffffffff;");
    for (U32 k = 0; k < 32; ++k) EXPECT_EQ(out[k], source(k) * 7) << operation << " " << k;
  };
  expect_from("idx.b32 %r50, %r10, 5, 31", [](U32) { return 5u; });
  expect_from("idx.b32 %r50, %r10, %r0, 31", [](U32 k) { return k; });
  // Segments of eight: c = (32 - 8) << 8 | 31.
  expect_from("idx.b32 %r50, %r10, 2, 0x181f", [](U32 k) { return (k & 24) + 2; });
  expect_from("bfly.b32 %r50, %r10, 3, 31", [](U32 k) { return k ^ 3; });
  expect_from("up.b32 %r50, %r10, 4, 0", [](U32 k) { return k < 4 ? k : k - 4; });
  expect_from("down.b32 %r50, %r10, 4, 31", [](U32 k) { return k > 27 ? k : k + 4; });
  expect_from("down.b32 %r50, %r10, 3, 0x181f", [](U32 k) { return k % 8 > 4 ? k : k + 3; });
  const auto in_range = of_a_warp(R"(
  shfl.sync.up.b32 %r51|%p1, %r10, 4, 0, 0xffffffff;
  selp.u32 %r50, 1, 0, %p1;)");
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(in_range[k], k >= 4 ? 1u : 0u);
}

// Lanes that name different masks at once, and parts of a warp that have parted.
TEST(PtxWarp, PartsOfAWarpShuffleAmongThemselves) {
  const auto halves = of_a_warp(R"(
  setp.lt.u32 %p1, %r0, 16;
  selp.b32 %r11, 0x0000ffff, 0xffff0000, %p1;
  redux.sync.add.u32 %r50, %r0, %r11;)");
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(halves[k], k < 16 ? 120u : 376u);
  const auto parted = of_a_warp(R"(
  mov.u32 %r50, 0;
  and.b32 %r11, %r0, 1;
  setp.eq.u32 %p1, %r11, 1;
  @%p1 bra ODD;
  shfl.sync.bfly.b32 %r50, %r10, 2, 31, 0x55555555;
  bra END;
ODD:
  redux.sync.max.u32 %r50, %r0, 0xaaaaaaaa;
END:)");
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(parted[k], k % 2 ? 31 : (k ^ 2) * 7);
}

// The lanes come to it by different ways, and wait.
TEST(PtxWarp, LanesWaitForThoseThatTheyName) {
  const auto out = of_a_warp(R"(
  mov.u32 %r11, %r0;
LOOP:
  setp.eq.u32 %p1, %r11, 0;
  @%p1 bra MEET;
  sub.u32 %r11, %r11, 1;
  bra LOOP;
MEET:
  redux.sync.add.u32 %r50, %r0, 0xffffffff;)");
  for (const U32 v : out) EXPECT_EQ(v, 496u);
}

TEST(PtxWarp, Votes) {
  const auto ballot = of_a_warp(R"(
  setp.lt.u32 %p1, %r0, 11;
  vote.sync.ballot.b32 %r50, %p1, 0xffffffff;)");
  for (const U32 v : ballot) EXPECT_EQ(v, 0x7FFu);
  const auto all = of_a_warp(R"(
  setp.lt.u32 %p1, %r0, 11;
  setp.lt.u32 %p2, %r0, 99;
  vote.sync.all.pred %p3, %p1, 0xffffffff;
  vote.sync.any.pred %p4, %p1, 0xffffffff;
  vote.sync.uni.pred %p5, %p2, 0xffffffff;
  vote.sync.all.pred %p6, !%p2, 0xffffffff;
  selp.u32 %r50, 1, 0, %p3;
  @%p4 add.u32 %r50, %r50, 2;
  @%p5 add.u32 %r50, %r50, 4;
  @%p6 add.u32 %r50, %r50, 8;)");
  for (const U32 v : all) EXPECT_EQ(v, 6u);
}

TEST(PtxWarp, MatchesAndReductions) {
  const auto any = of_a_warp(R"(
  and.b32 %r11, %r0, 3;
  match.any.sync.b32 %r50, %r11, 0xffffffff;)");
  for (U32 k = 0; k < 32; ++k) EXPECT_EQ(any[k], 0x11111111u << k % 4);
  const auto all = of_a_warp(R"(
  mov.b64 %rd5, 77;
  match.all.sync.b64 %r50|%p1, %rd5, 0xffffffff;
  @!%p1 mov.u32 %r50, 1;
  match.all.sync.b32 %r51|%p2, %r0, 0xffffffff;
  @%p2 mov.u32 %r50, 2;
  add.u32 %r50, %r50, %r51;)");
  for (const U32 v : all) EXPECT_EQ(v, ~0u);
  const std::pair<const char*, U32> reductions[] = {{"add.s32 %r50, %r11", U32(496 - 320)},
                                                    {"min.s32 %r50, %r11", U32(-10)},
                                                    {"max.u32 %r50, %r11", ~0u},
                                                    {"min.u32 %r50, %r11", 0},
                                                    {"and.b32 %r50, %r11", 0},
                                                    {"or.b32 %r50, %r11", ~0u}};
  for (const auto& [operation, wanted] : reductions) {
    const auto out = of_a_warp(fmt::format(R"(
  sub.s32 %r11, %r0, 10;
  redux.sync.{}, 0xffffffff;)",
                                           operation));
    for (const U32 v : out) EXPECT_EQ(v, wanted) << operation;
  }
}

// ---- atomics: all threads on one cell, and each on its own

template <class T>
struct Atomic {
  const char* operation;
  T (*f)(T old, T value);
};

template <class T>
void expect_atomics(const std::string& space, const std::vector<Atomic<T>>& cases) {
  const char* r = sizeof(T) == 4 ? "%r" : "%rd";
  for (const Atomic<T>& c : cases) {
    SplitMix64 random(8);
    std::vector<T> cells(256), values(256), old(256);
    for (T& v : cells) v = T(random.below(3u) ? random.next() : random.below(4u));
    for (T& v : values) v = T(random.below(3u) ? random.next() : random.below(4u));
    const std::vector<T> before = cells;
    Scene scene(
        kernel_of(fmt::format(R"(
  mul.wide.u32 %rd10, %r0, {0};
  add.u64 %rd11, %rd0, %rd10;
  add.u64 %rd12, %rd1, %rd10;
  add.u64 %rd13, %rd2, %rd10;
  mov.u64 %rd14, box;
  mul.wide.u32 %rd15, %r2, {0};
  add.u64 %rd14, %rd14, %rd15;
  ld.global.b{1} {2}30, [%rd11];
  ld.global.b{1} {2}31, [%rd12];
  st.shared.b{1} [%rd14], {2}30;
  atom.{3}.{4} {2}32, [{5}], {2}31;
  st.global.b{1} [%rd13], {2}32;
  ld.shared.b{1} {2}33, [%rd14];
  {6} st.global.b{1} [%rd11], {2}33;)",
                              sizeof(T), sizeof(T) * 8, r, space, c.operation,
                              space == "shared" ? "%rd14" : "%rd11", space == "shared" ? "" : "//"),
                  ".shared .align 8 .b8 box[512];"));
    scene.request.grid = {4, 1, 1};
    scene.request.block = {64, 1, 1};
    scene.run_clean({scene.add(cells), scene.add(values), scene.add(old)});
    for (uint32_t k = 0; k < 256; ++k) {
      EXPECT_EQ(old[k], before[k]) << c.operation;
      EXPECT_EQ(cells[k], c.f(before[k], values[k])) << c.operation << " " << space;
    }
  }
}

TEST(PtxAtomic, EachOperation) {
  using U64 = uint64_t;
  for (const std::string space : {"global", "shared"}) {
    expect_atomics<U32>(space,
                        {{"add.u32", [](U32 a, U32 b) { return a + b; }},
                         {"min.u32", [](U32 a, U32 b) { return std::min(a, b); }},
                         {"max.s32", [](U32 a, U32 b) { return S32(a) > S32(b) ? a : b; }},
                         {"and.b32", [](U32 a, U32 b) { return a & b; }},
                         {"or.b32", [](U32 a, U32 b) { return a | b; }},
                         {"xor.b32", [](U32 a, U32 b) { return a ^ b; }},
                         {"exch.b32", [](U32, U32 b) { return b; }},
                         {"inc.u32", [](U32 a, U32 b) { return a >= b ? 0 : a + 1; }},
                         {"dec.u32", [](U32 a, U32 b) { return a == 0 || a > b ? b : a - 1; }}});
    expect_atomics<U64>(
        space, {{"add.u64", [](U64 a, U64 b) { return a + b; }},
                {"exch.b64", [](U64, U64 b) { return b; }},
                {"max.u64", [](U64 a, U64 b) { return std::max(a, b); }},
                {"min.s64", [](U64 a, U64 b) { return int64_t(a) < int64_t(b) ? a : b; }}});
  }
}

TEST(PtxAtomic, FloatsAndReductions) {
  std::vector<float> sum{0.5f};
  std::vector<double> wide{1};
  std::vector<U32> halves{0x3C003C00};
  Scene scene(kernel_of(R"(
  mov.f32 %f1, 0f3F800000;
  red.global.add.f32 [%rd0], %f1;
  mov.f64 %fd1, 0d3FE0000000000000;
  atom.relaxed.gpu.global.add.f64 %fd2, [%rd1], %fd1;
  mov.b32 %r10, 0x3C004000;
  red.global.add.noftz.f16x2 [%rd2], %r10;)"));
  scene.request.block = {40, 1, 1};
  scene.run_clean({scene.add(sum), scene.add(wide), scene.add(halves)});
  EXPECT_EQ(sum[0], 40.5f);
  EXPECT_EQ(wide[0], 21.0);
  EXPECT_EQ(narrow::f16_to_f32(uint16_t(halves[0])), 81.0f);  // 1 + 40 * 2
  EXPECT_EQ(narrow::f16_to_f32(uint16_t(halves[0] >> 16)), 41.0f);
}

// Compare and swap as compilers loop on it: the sum of all threads of all blocks.
TEST(PtxAtomic, CompareAndSwapLoops) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<U32> cell{100};
    Scene scene(kernel_of(R"(
  ld.relaxed.gpu.global.u32 %r10, [%rd0];
AGAIN:
  add.u32 %r11, %r10, %r0;
  atom.global.cas.b32 %r12, [%rd0], %r10, %r11;
  setp.eq.u32 %p1, %r12, %r10;
  mov.u32 %r10, %r12;
  @!%p1 bra AGAIN;)"));
    scene.request.grid = {3, 1, 1};
    scene.request.block = {64, 1, 1};
    scene.request.seed = seed;
    scene.run_clean({scene.add(cell)});
    EXPECT_EQ(cell[0], 100u + 192 * 191 / 2);
  }
}

// ---- cp.async

TEST(PtxCopy, AsynchronousCopiesFillSharedMemory) {
  std::vector<U32> in(4 * 64), out(4 * 64);
  std::iota(in.begin(), in.end(), 1);
  Scene scene(kernel_of(R"(
  mov.u32 %r10, box;
  shl.b32 %r11, %r0, 4;
  add.u32 %r12, %r10, %r11;
  cvt.u64.u32 %rd5, %r11;
  add.u64 %rd6, %rd0, %rd5;
  and.b32 %r13, %r0, 1;
  shl.b32 %r13, %r13, 3;
  cp.async.cg.shared.global [%r12], [%rd6], 16, %r13;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r12];
  add.u64 %rd7, %rd1, %rd5;
  st.global.v4.u32 [%rd7], {%r20, %r21, %r22, %r23};)",
                        ".shared .align 16 .b8 box[1024];"));
  scene.request.block = {64, 1, 1};
  scene.run_clean({scene.add(in), scene.add(out)});
  // Even threads copy nothing, odd ones 8 bytes; the rest is zeros.
  for (uint32_t k = 0; k < out.size(); ++k)
    EXPECT_EQ(out[k], k / 4 % 2 && k % 4 < 2 ? in[k] : 0u) << k;
}

}  // namespace
}  // namespace tuff::emu::ptx
