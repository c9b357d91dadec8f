// Each finding of the PTX interpreter provoked, and beside it the nearest program that is right.
#include <algorithm>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U32 = uint32_t;

struct Size {
  uint32_t blocks = 1, threads = 32, dynamic_shared = 0;
};

class PtxFindings : public ::testing::Test {
 protected:
  emu_api::PtxLaunchResult run(const std::string& text, const Size& size, uint64_t seed = 0) {
    words_.assign(256, 0);
    Scene scene(text);
    scene.request.grid = {size.blocks, 1, 1};
    scene.request.block = {size.threads, 1, 1};
    scene.request.dynamic_shared_bytes = size.dynamic_shared;
    scene.request.seed = seed;
    scene.request.instruction_budget = 100'000;
    return scene.run({scene.add(words_)});
  }

  // With every seed one of the kind, and the words in its text.
  void expect(const std::string& kind, const std::string& words, const std::string& body,
              const Size& size = {}, const std::string& before = "") {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto result = run(kernel_of(body, before), size, seed);
      const auto found = std::ranges::find(result.findings, kind, &emu_api::MachineFinding::kind);
      ASSERT_NE(found, result.findings.end()) << "no " << kind << ": " << findings_text(result);
      EXPECT_NE(found->text.find(words), std::string::npos) << findings_text(result);
    }
  }
  void expect_clean(const std::string& body, const Size& size = {},
                    const std::string& before = "") {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto result = run(kernel_of(body, before), size, seed);
      EXPECT_EQ(findings_text(result), "");
      EXPECT_TRUE(result.finished);
    }
  }

  std::vector<U32> words_;
};

const std::string kOwnWord = R"(
  mul.wide.u32 %rd10, %r0, 4;
  add.u64 %rd11, %rd0, %rd10;
)";
const std::string kBox = ".shared .align 16 .b8 box[512];";
const std::string kOwnShared = kOwnWord + R"(
  mov.u64 %rd12, box;
  mul.wide.u32 %rd13, %r2, 4;
  add.u64 %rd12, %rd12, %rd13;
)";

// ---- bounds and alignment

TEST_F(PtxFindings, OutOfBounds) {
  expect("out of bounds", "4 bytes to write", kOwnWord + "st.global.u32 [%rd11+1024], %r0;");
  expect("out of bounds", "4 bytes to read", kOwnWord + "ld.global.u32 %r5, [%rd11+-4];");
  expect_clean(kOwnWord + "st.global.u32 [%rd11+896], %r0;");
  expect("out of bounds", "where no memory is", "mov.u64 %rd5, 0; ld.u32 %r5, [%rd5];");
  expect("out of bounds", "shared memory", kOwnShared + "st.shared.u32 [%rd12+388], %r0;", {},
         kBox);
  expect_clean(kOwnShared + "st.shared.u32 [%rd12+384], %r0;", {}, kBox);
  expect("out of bounds", "of the 512 bytes",
         kOwnShared + "cvta.shared.u64 %rd12, %rd12; st.u32 [%rd12+512], %r0;", {}, kBox);
  expect("out of bounds", "local memory",
         ".local .b32 own[4]; mov.u64 %rd5, own; st.local.u32 [%rd5+16], %r0;");
  expect_clean(".local .b32 own[4]; mov.u64 %rd5, own; st.local.u32 [%rd5+12], %r0;");
  expect("out of bounds", "parameters", "ld.param.u64 %rd5, [p3+8];");
  expect("out of bounds", "none to write", "mov.u64 %rd5, fixed; st.global.u32 [%rd5], %r0;", {},
         ".const .u32 fixed = 5;");
}

TEST_F(PtxFindings, DynamicSharedMemoryIsAsLargeAsTheLaunchSays) {
  const std::string dynamic = ".extern .shared .align 4 .b8 box[];";
  expect_clean(kOwnShared + "st.shared.u32 [%rd12], %r0;", {1, 32, 128}, dynamic);
  expect("out of bounds", "of the 124 bytes", kOwnShared + "st.shared.u32 [%rd12], %r0;",
         {1, 32, 124}, dynamic);
}

TEST_F(PtxFindings, Misaligned) {
  expect("misaligned access", "a multiple of 4", kOwnWord + "ld.global.u32 %r5, [%rd11+2];");
  expect("misaligned access", "a multiple of 8",
         kOwnWord + "ld.global.v2.u32 {%r5, %r6}, [%rd11];");
  expect_clean(kOwnWord + "ld.global.u16 %rs5, [%rd11+2];");
  expect("misaligned access", "a multiple of 4",
         kOwnShared + "atom.shared.add.u32 %r5, [%rd12+1], 1;", {}, kBox);
}

// ---- races

TEST_F(PtxFindings, RacesInSharedMemory) {
  const std::string neighbour = kOwnShared + R"(
  st.shared.u32 [%rd12], %r0;
  BARRIER
  xor.b32 %r5, %r2, LANE;
  mul.wide.u32 %rd13, %r5, 4;
  mov.u64 %rd14, box;
  add.u64 %rd14, %rd14, %rd13;
  ld.shared.u32 %r6, [%rd14];
  st.global.u32 [%rd11], %r6;)";
  const auto with = [&](std::string barrier, const std::string& lane) {
    std::string text = neighbour;
    text.replace(text.find("BARRIER"), 7, barrier);
    text.replace(text.find("LANE"), 4, lane);
    return text;
  };
  // Of another warp, of the own one: executing in step orders nothing.
  expect("race", "thread", with("", "32"), {1, 64}, kBox);
  expect("race", "thread", with("", "1"), {1, 64}, kBox);
  expect_clean(with("", "0"), {1, 64}, kBox);
  expect_clean(with("bar.sync 0;", "32"), {1, 64}, kBox);
  expect_clean(with("bar.warp.sync 0xffffffff;", "1"), {1, 64}, kBox);
  expect("race", "thread", with("bar.warp.sync 0xffffffff;", "32"), {1, 64}, kBox);
  // The lanes that the mask names, and no others.
  expect_clean(with("bar.warp.sync 0xffffffff;", "16"), {1, 32}, kBox);
  expect("race", "thread",
         with(R"(
  setp.lt.u32 %p1, %r0, 16;
  selp.b32 %r7, 0x0000ffff, 0xffff0000, %p1;
  bar.warp.sync %r7;)",
              "16"),
         {1, 32}, kBox);
}

TEST_F(PtxFindings, RacesOfStoresAndReads) {
  expect("race", "thread", kOwnShared + "mov.u64 %rd5, box; st.shared.u32 [%rd5], %r0;", {1, 32},
         kBox);
  // NaNs or zeros of any kind by all, and bytes whose registers differ above them.
  expect_clean("or.b32 %r5, %r0, 0x7f800000; or.b32 %r5, %r5, 0x00400000; mov.u64 %rd5, box; "
               "st.shared.u32 [%rd5], %r5;",
               {1, 32}, kBox);
  expect_clean("shl.b32 %r5, %r0, 31; mov.u64 %rd5, box; st.shared.u32 [%rd5], %r5;", {1, 32}, kBox);
  expect_clean("shl.b32 %r5, %r0, 8; mov.u64 %rd5, box; st.shared.u8 [%rd5], %r5;", {1, 32}, kBox);
  // One value by all: whichever comes last. By different warps it is a race all the same.
  expect_clean("mov.u64 %rd5, box; st.shared.u32 [%rd5], 7;", {1, 32}, kBox);
  expect("race", "thread", "mov.u64 %rd5, box; st.shared.u32 [%rd5], 7;", {1, 64}, kBox);
  // Written before others have read.
  expect("race", "thread", kOwnShared + R"(
  st.shared.u32 [%rd12], %r0;
  bar.sync 0;
  mov.u64 %rd5, box;
  ld.shared.u32 %r6, [%rd5];
  st.shared.u32 [%rd12], %r6;)",
         {1, 64}, kBox);
  // Parts of a word are apart.
  expect_clean(
      "mov.u64 %rd5, box; cvt.u64.u32 %rd6, %r0; add.u64 %rd5, %rd5, %rd6; cvt.u16.u32 %rs1, %r0; "
      "st.shared.u8 [%rd5], %rs1;",
      {1, 64}, kBox);
}

TEST_F(PtxFindings, RacesInGlobalMemory) {
  // Between blocks, between warps of one block, and lanes.
  const std::string first_lanes = "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%rd0], %r0;";
  expect("race", "wrote these bytes", first_lanes, {4, 32});
  const std::string text = findings_text(run(kernel_of(first_lanes), {4, 32}));
  EXPECT_EQ(text.find("workgroup"), std::string::npos) << text;
  expect("race", "thread", "st.global.u32 [%rd0], %r0;", {1, 64});
  expect("race", "thread", kOwnWord + R"(
  st.global.u32 [%rd11], %r0;
  xor.b32 %r5, %r0, 1;
  mul.wide.u32 %rd10, %r5, 4;
  add.u64 %rd11, %rd0, %rd10;
  ld.global.u32 %r6, [%rd11];)");
  expect_clean(kOwnWord + "st.global.u32 [%rd11], %r0; ld.global.u32 %r5, [%rd11];", {4, 64});
  expect_clean("atom.global.add.u32 %r5, [%rd0], 1;", {4, 64});
  expect("race", "nothing orders", "atom.global.add.u32 %r5, [%rd0], 1; ld.global.u32 %r6, [%rd0];",
         {4, 1});
}

// A flag that is stored with what it guards: without the fence it orders nothing.
TEST_F(PtxFindings, FlagsBetweenBlocksWantFences) {
  const auto hand_over = [](const std::string& fence, const std::string& store) {
    return R"(
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra WAIT;
  st.global.u32 [%rd0], 5;
  )" + fence +
           "\n  " + store + R"(
  bra END;
WAIT:
  ld.acquire.gpu.global.u32 %r6, [%rd0+64];
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra WAIT;
  ld.global.u32 %r7, [%rd0];
  st.global.u32 [%rd0+128], %r7;
END:)";
  };
  expect_clean(hand_over("fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%rd0+64], 1;"), {2, 1});
  expect_clean(hand_over("membar.gl;", "atom.global.exch.b32 %r5, [%rd0+64], 1;"), {2, 1});
  expect("race", "nothing orders", hand_over("", "atom.global.exch.b32 %r5, [%rd0+64], 1;"),
         {2, 1});
  expect("race", "nothing orders",
         hand_over("membar.cta;", "atom.global.exch.b32 %r5, [%rd0+64], 1;"), {2, 1});
}

TEST_F(PtxFindings, RacesAreNotLookedForWhereTheLaunchSaysSo) {
  Scene scene(kernel_of("st.global.u32 [%rd0], %r0;"));
  std::vector<U32> words(4);
  scene.request.races = false;
  scene.run_clean({scene.add(words)});
}

// ---- barriers

TEST_F(PtxFindings, BarriersThatNotAllComeTo) {
  const std::string one_waits = R"(
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra OTHER;
  bar.sync 0;
  bra END;
OTHER:
  bar.sync 1;
END:)";
  expect("barrier", "not all threads of the block come to it", one_waits, {1, 64});
  expect("barrier", "ended without coming to it", "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 0;",
         {1, 64});
  expect("barrier", "other lanes of the warp came", R"(
  setp.lt.u32 %p1, %r0, 7;
  @%p1 bra FIRST;
  bar.sync 0;
  bra END;
FIRST:
  bar.sync 0;
END:)");
  // Without .aligned they may.
  expect_clean(R"(
  setp.lt.u32 %p1, %r0, 7;
  @%p1 bra FIRST;
  barrier.sync 0;
  bra END;
FIRST:
  barrier.sync 0;
END:)");
  expect_clean("bar.sync 0; bar.sync 1;", {1, 64});
  expect("undefined behavior", "there are 16", "bar.sync 16;");
  expect("undefined behavior", "multiples of 32", "bar.sync 0, 40;", {1, 64});
}

// ---- values that nobody wrote

TEST_F(PtxFindings, UninitializedValues) {
  const char* const kWords = "was not written";
  expect("uninitialized value", kWords, kOwnWord + "st.global.u32 [%rd11], %r40;");
  expect("uninitialized value", kWords,
         kOwnWord + "add.u32 %r41, %r40, 1; xor.b32 %r42, %r41, %r0; st.global.u32 [%rd11], %r42;");
  expect("uninitialized value", "the address",
         "add.u64 %rd40, %rd41, %rd0; ld.global.u32 %r5, [%rd40];");
  expect("uninitialized value", "the predicate", "setp.eq.u32 %p1, %r40, 0; @%p1 bra END; END:");
  expect("uninitialized value", "the predicate", "@%p40 mov.u32 %r5, 1;");
  // Written by some lanes alone.
  expect("uninitialized value", kWords,
         kOwnWord + "setp.lt.u32 %p1, %r0, 31; @%p1 mov.u32 %r40, 1; st.global.u32 [%rd11], %r40;");
  expect_clean(kOwnWord +
               "setp.lt.u32 %p1, %r0, 31; @%p1 mov.u32 %r40, 1; @%p1 st.global.u32 [%rd11], %r40;");
  // What is not chosen may be anything.
  expect_clean(
      kOwnWord +
      "setp.lt.u32 %p1, %r0, 99; selp.u32 %r5, %r0, %r40, %p1; st.global.u32 [%rd11], %r5;");
  expect("uninitialized value", kWords,
         kOwnWord +
             "setp.lt.u32 %p1, %r0, 9; selp.u32 %r5, %r0, %r40, %p1; st.global.u32 [%rd11], %r5;");
  expect_clean(kOwnWord + "prmt.b32 %r5, %r0, %r40, 0x0123; st.global.u32 [%rd11], %r5;");
  expect_clean(kOwnWord + "prmt.b32 %r5, %r40, %r0, 0x7654; st.global.u32 [%rd11], %r5;");
  expect("uninitialized value", kWords,
         kOwnWord + "prmt.b32 %r5, %r0, %r40, 0x0124; st.global.u32 [%rd11], %r5;");
  // Packed beside what has no value, and taken again.
  const std::string pack = kOwnWord + "cvt.u16.u32 %rs1, %r0; mov.b32 %r5, {%rs40, %rs1}; "
                                      "mov.b32 {%rs2, %rs3}, %r5; st.global.u16 [%rd11], ";
  expect_clean(pack + "%rs3;");
  expect("uninitialized value", kWords, pack + "%rs2;");
  // Copied, and used by nobody.
  expect_clean("mov.u32 %r5, %r40; mul.lo.u32 %r6, %r5, 3;");
}

// Compilers pack what has no value beside what has one, and shift or mask it away again.
TEST_F(PtxFindings, UninitializedBits) {
  const char* const kWords = "was not written";
  const std::string pack = kOwnWord + "cvt.u16.u32 %rs1, %r0; mov.b32 %r5, {%rs40, %rs1}; ";
  const std::string use = " st.global.u32 [%rd11], %r6;";
  // The upper half holds a value, the lower none.
  for (const char* known :
       {"and.b32 %r6, %r5, 0xffff0000;", "and.b32 %r6, 0x70000, %r5;", "or.b32 %r6, %r5, 0xffff;",
        "shr.u32 %r6, %r5, 16;", "shr.s32 %r6, %r5, 20;", "bfe.u32 %r6, %r5, 16, 16;",
        "bfi.b32 %r6, %r0, %r5, 0, 16;", "prmt.b32 %r6, %r5, %r0, 0x4532;",
        "xor.b32 %r6, %r5, %r5;", "shl.b32 %r6, %r5, 16; shr.u32 %r6, %r5, 17;",
        "cvt.u64.u32 %rd40, %r5; shl.b64 %rd41, %rd40, 8; shr.u64 %rd42, %rd41, 24; "
        "cvt.u32.u64 %r6, %rd42;",
        "add.s16x2 %r7, %r5, %r0; shr.u32 %r6, %r7, 16;",
        "max.u16x2 %r5, %r0, %r5; shr.u32 %r6, %r5, 16;",
        "fma.rn.f16x2 %r7, %r0, %r5, %r5; shr.u32 %r6, %r7, 16;",
        "not.b32 %r7, %r5; setp.lt.u32 %p1, %r0, 9; selp.b32 %r8, %r5, %r7, %p1; "
        "shr.u32 %r6, %r8, 16;"})
    expect_clean(pack + known + use);
  for (const char* unknown :
       {"and.b32 %r6, %r5, 0xffff8000;", "or.b32 %r6, %r5, 0x7fff;", "shr.u32 %r6, %r5, 15;",
        "bfe.u32 %r6, %r5, 15, 16;", "bfi.b32 %r6, %r0, %r5, 0, 15;",
        "prmt.b32 %r6, %r5, %r0, 0x4521;", "mov.u32 %r7, %r5; xor.b32 %r6, %r5, %r7;",
        "add.s16x2 %r7, %r5, %r0; shr.u32 %r6, %r7, 15;",
        "add.s16x2 %r7, %r5, %r40; shr.u32 %r6, %r7, 16;",
        "shr.u32 %r6, %r0, %r5;", "and.b32 %r6, %r5, %r40;", "xor.b32 %r6, %r0, %r5;",
        "shr.u32 %r7, %r5, 16; add.u32 %r8, %r7, %r5; shr.u32 %r6, %r8, 16;"})
    expect("uninitialized value", kWords, pack + unknown + use);
}

TEST_F(PtxFindings, UninitializedMemoryOfTheBlockAndOfThreads) {
  const std::string use = "ld.shared.u32 %r5, [%rd12]; st.global.u32 [%rd11], %r5;";
  expect("uninitialized value", "memory that was not written", kOwnShared + use, {}, kBox);
  expect_clean(kOwnShared + "st.shared.u32 [%rd12], %r0; " + use, {}, kBox);
  expect("uninitialized value", "memory", kOwnShared + "st.shared.u16 [%rd12], 7; " + use, {},
         kBox);
  const std::string local = kOwnWord + ".local .b32 own[2]; mov.u64 %rd5, own; ";
  expect(
      "uninitialized value", "memory",
      local + "st.local.u32 [%rd5], %r0; ld.local.u32 %r5, [%rd5+4]; st.global.u32 [%rd11], %r5;");
  expect_clean(
      local +
      "st.local.u32 [%rd5+4], %r0; ld.local.u32 %r5, [%rd5+4]; st.global.u32 [%rd11], %r5;");
  // Spilled before it has a value, and not used.
  expect_clean(local + "st.local.u32 [%rd5], %r40; ld.local.u32 %r5, [%rd5];");
  // What a call gets and gives.
  const std::string before = R"(
.func (.param .b32 r) same(.param .b32 a)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [a];
  st.param.b32 [r], %r0;
  ret;
})";
  const std::string call = kOwnWord + R"({
  .param .b32 a; .param .b32 r;
  st.param.b32 [a], VALUE;
  call (r), same, (a);
  ld.param.b32 %r5, [r];
  st.global.u32 [%rd11], %r5;
})";
  const auto with = [&](const std::string& value) {
    std::string text = call;
    return text.replace(text.find("VALUE"), 5, value);
  };
  expect("uninitialized value", "was not written", with("%r40"), {}, before);
  expect_clean(with("%r0"), {}, before);
}

// ---- masks

TEST_F(PtxFindings, MasksNameLanesThatAreThere) {
  expect("sync mask", "does not name lane", "shfl.sync.idx.b32 %r5, %r0, 0, 31, 0x0000ffff;");
  expect("sync mask", "are named and do not come", R"(
  setp.lt.u32 %p1, %r0, 16;
  @!%p1 bra END;
  vote.sync.ballot.b32 %r5, %p1, 0xffffffff;
END:
  bar.warp.sync 0xffffffff;)");
  expect_clean(R"(
  setp.lt.u32 %p1, %r0, 16;
  @!%p1 bra END;
  vote.sync.ballot.b32 %r5, %p1, 0x0000ffff;
END:)");
  // Lanes that have ended do not count (9.7.12.8), for matrices they do.
  expect_clean("setp.lt.u32 %p1, %r0, 5; vote.sync.ballot.b32 %r5, %p1, 0xffffffff;", {1, 20});
}

TEST_F(PtxFindings, LanesThatGiveNothing) {
  expect("uninitialized value", "was not written",
         kOwnWord + "shfl.sync.idx.b32 %r5, %r0, 25, 31, 0xffffffff; st.global.u32 [%rd11], %r5;",
         {1, 20});
}

TEST_F(PtxFindings, MatricesWantAllLanes) {
  expect("sync mask", "do not come", R"(
  mov.u32 %r5, 0;
  mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r11},
    {%r5, %r5, %r5, %r5}, {%r5, %r5}, {%r5, %r5};)",
         {1, 20});
}

// ---- ends

TEST_F(PtxFindings, TrapsAndHangs) {
  expect("trap", "line", "setp.eq.u32 %p1, %r0, 3; @%p1 trap;");
  expect("hang", "the budget of 100000 instructions is spent", "LOOP: bra LOOP;");
  const auto result = run(kernel_of("LOOP: bra LOOP;"), {});
  EXPECT_FALSE(result.finished);
  EXPECT_GE(result.instructions, 100'000u);
}

TEST_F(PtxFindings, RecursionHasAnEnd) {
  expect("out of bounds", "the stack of a thread", "call again, ();", {}, R"(
.func again()
{
  .local .b8 room[4096];
  call again, ();
  ret;
})");
}

TEST_F(PtxFindings, NameKernelLineAndThread) {
  const auto result =
      run(kernel_of("setp.eq.u32 %p1, %r0, 7;\n@%p1 st.global.u32 [%rd0+-8], %r0;"), {1, 32});
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].text.substr(0, 16), "k: out of bounds");
  EXPECT_NE(result.findings[0].text.find("`st.global.u32`, block 0 thread 7, address 0x6fffffff8"),
            std::string::npos)
      << result.findings[0].text;
  EXPECT_EQ(result.findings[0].address, 0x6fffffff8u);
}

}  // namespace
}  // namespace tuff::emu::ptx
