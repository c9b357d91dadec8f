// Kernels with one planted bug each: the interpreter must name it, and say nothing of the right
// ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "emu/llvm_tools.h"
#include "emu/rdna/code_object.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint64_t kCode = 0x100000000, kKernarg = 0x200000000, kData = 0x300000000;
constexpr uint32_t kDataBytes = 1024;

// s[0:1]: kernel arguments, whose first is the address of the data; v0: lane.
std::string program(const std::string& body) {
  return fmt::format(R"(
.text
.globl bug
.p2align 8
.type bug,@function
bug:
{}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel bug
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_group_segment_fixed_size 512
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
)",
                     body);
}

Outcome run_program(const std::string& body, uint64_t seed = 1) {
  CodeObject object(testing::assemble(program(body)), kCode);
  std::vector<uint8_t> data(kDataBytes), kernarg(64);
  const uint64_t address = kData;
  std::memcpy(kernarg.data(), &address, sizeof address);
  RangeMemory memory;
  memory.map(kCode, object.image(), false);
  memory.map(kData, data);
  memory.map(kKernarg, kernarg, false);
  Launch launch = launch_of(object.kernel("bug"), kKernarg);
  launch.group_size = {64, 1, 1};
  launch.seed = seed;
  launch.instruction_budget = 100'000;
  return run(launch, memory);
}

constexpr const char* kLoadArgument = R"(
  s_load_b64 s[2:3], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
)";

Outcome run_after_load(const std::string& body, uint64_t seed = 1) {
  return run_program(fmt::format("{}{}", kLoadArgument, body), seed);
}

struct Bug {
  FindingKind kind;
  const char* body;         // behind kLoadArgument
  const char* instruction;  // that is named
};

void expect_bug(const Bug& bug) {
  const Outcome outcome = run_after_load(bug.body);
  ASSERT_FALSE(outcome.findings.empty()) << bug.instruction;
  const Finding& first = outcome.findings[0];
  EXPECT_EQ(first.kind, bug.kind) << to_text(first);
  EXPECT_EQ(first.instruction, bug.instruction) << to_text(first);
  EXPECT_EQ(first.kernel, "bug");
  EXPECT_GE(first.code_address, kCode);
}

class SeededBugs : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
};

TEST_F(SeededBugs, RightProgramsHaveNoFindings) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = run_after_load(R"(
      global_load_b32 v2, v1, s[2:3]
      s_waitcnt vmcnt(0)
      ds_store_b32 v1, v2
      s_waitcnt lgkmcnt(0)
      s_barrier
      v_xor_b32_e32 v3, 0x80, v1
      ds_load_b32 v4, v3
      s_waitcnt lgkmcnt(0)
      global_store_b32 v1, v4, s[2:3])",
                                           seed);
    EXPECT_EQ(to_text(outcome.findings), "");
    EXPECT_TRUE(outcome.finished);
  }
}

TEST_F(SeededBugs, LoadOutOfBounds) {
  expect_bug({FindingKind::UnmappedAccess, "global_load_b32 v2, v1, s[2:3] offset:1020",
              "global_load_b32 v2, v1, s[2:3] offset:1020"});
  const Outcome outcome = run_after_load("global_load_b32 v2, v1, s[2:3] offset:1020");
  EXPECT_EQ(outcome.findings[0].data_address % 4, 0u);
  EXPECT_GE(outcome.findings[0].data_address, kData + kDataBytes);
  EXPECT_FALSE(outcome.finished);
}

TEST_F(SeededBugs, StoreToReadOnlyMemory) {
  expect_bug({FindingKind::UnmappedAccess, "global_store_b32 v1, v0, s[0:1]",
              "global_store_b32 v1, v0, s[0:1]"});
}

TEST_F(SeededBugs, LdsOutOfBounds) {
  expect_bug({FindingKind::LdsOutOfBounds, "ds_store_b32 v1, v0 offset:512",
              "ds_store_b32 v1, v0 offset:512"});
}

TEST_F(SeededBugs, LdsRaceIsFoundInEveryOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = run_after_load(R"(
      ds_store_b32 v1, v0
      v_xor_b32_e32 v3, 0x80, v1
      ds_load_b32 v4, v3
      s_waitcnt lgkmcnt(0))",
                                           seed);
    ASSERT_FALSE(outcome.findings.empty());
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::LdsRace);
  }
}

// The barrier orders the waves, but the first store may not have arrived when they go on.
TEST_F(SeededBugs, LdsStoreNotWaitedForBeforeTheBarrier) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = run_after_load(R"(
      ds_store_b32 v1, v0
      s_barrier
      v_xor_b32_e32 v3, 0x80, v1
      ds_load_b32 v4, v3
      s_waitcnt lgkmcnt(0))",
                                           seed);
    ASSERT_FALSE(outcome.findings.empty());
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::LdsRace);
  }
}

TEST_F(SeededBugs, StoresCountAmongLdsOperations) {
  const Outcome outcome = run_after_load(R"(
      ds_store_b32 v1, v0
      ds_load_b32 v4, v1
      ds_store_b32 v1, v0 offset:256
      s_waitcnt lgkmcnt(1)
      v_add_nc_u32_e32 v5, v4, v0)");
  EXPECT_EQ(to_text(outcome.findings), "");
}

// As Mesa's compiler relies on: an LDS operation on its way has all later ones behind it, so that
// fewer on their way than these and itself say that it is there, whatever scalar loads do.
TEST_F(SeededBugs, LdsOperationsAreCountedBesideScalarLoads) {
  const std::string before = R"(
      ds_store_b32 v1, v0
      ds_store_b32 v1, v0 offset:256
      s_load_b32 s4, s[0:1], 0x0
      ds_load_b32 v4, v1
      ds_load_b32 v5, v1 offset:256
      s_waitcnt lgkmcnt(1)
      )";
  EXPECT_EQ(to_text(run_after_load(before + "v_add_nc_u32_e32 v6, v4, v0").findings), "");
  for (const char* use : {"v_add_nc_u32_e32 v6, v5, v0", "s_add_u32 s5, s4, 1"})
    expect_bug({FindingKind::MissingWait, (before + use).c_str(), use});
}

TEST_F(SeededBugs, LoadUsedBeforeItsWait) {
  expect_bug({FindingKind::MissingWait, R"(
      global_load_b32 v2, v1, s[2:3]
      v_add_nc_u32_e32 v3, v2, v0)",
              "v_add_nc_u32_e32 v3, v2, v0"});
  expect_bug({FindingKind::MissingWait, R"(
      s_load_b32 s4, s[0:1], 0x0
      s_add_u32 s5, s4, 1)",
              "s_add_u32 s5, s4, 1"});
  expect_bug({FindingKind::MissingWait, R"(
      global_load_b32 v2, v1, s[2:3]
      global_load_b32 v3, v1, s[2:3]
      s_waitcnt vmcnt(1)
      v_add_nc_u32_e32 v4, v3, v2)",
              "v_add_nc_u32_e32 v4, v3, v2"});
}

// As compilers write `gate ? x[i] : 0`: what returns touches the lanes that asked alone.
TEST_F(SeededBugs, OtherLanesMayBeWrittenWhileALoadIsOnItsWay) {
  const char* kBothSides = R"(
      s_mov_b32 s4, exec_lo
      s_mov_b32 exec_lo, 0xff
      global_load_b32 v2, v1, s[2:3]
      s_and_not1_b32 exec_lo, s4, exec_lo
      v_mov_b32_e32 v2, 0
      s_mov_b32 exec_lo, s4
      s_waitcnt vmcnt(0)
      v_add_nc_u32_e32 v3, v2, v0)";
  EXPECT_EQ(to_text(run_after_load(kBothSides).findings), "");
  expect_bug({FindingKind::MissingWait, R"(
      s_mov_b32 s4, exec_lo
      s_mov_b32 exec_lo, 0xff
      global_load_b32 v2, v1, s[2:3]
      s_mov_b32 exec_lo, 0xff00
      global_load_b32 v2, v1, s[2:3]
      s_mov_b32 exec_lo, 0xf0
      v_mov_b32_e32 v2, 0)",
              "v_mov_b32_e32 v2, 0"});
  const char* kReadOfOthers = R"(
      v_mov_b32_e32 v2, 0
      s_mov_b32 exec_lo, 0xff
      global_load_b32 v2, v1, s[2:3]
      s_mov_b32 exec_lo, 0xff00
      v_add_nc_u32_e32 v3, v2, v0
      s_waitcnt vmcnt(0))";
  EXPECT_EQ(to_text(run_after_load(kReadOfOthers).findings), "");
  expect_bug({FindingKind::MissingWait, R"(
      s_mov_b32 exec_lo, 0xff
      global_load_b32 v2, v1, s[2:3]
      s_mov_b32 exec_lo, 0xff00
      v_readlane_b32 s4, v2, 3)",
              "v_readlane_b32 s4, v2, 3"});
  expect_bug({FindingKind::MissingWait, R"(
      s_mov_b32 exec_lo, 0xff
      global_load_b32 v2, v1, s[2:3]
      s_mov_b32 exec_lo, 0xff00
      v_writelane_b32 v2, s2, 3)",
              "v_writelane_b32 v2, s2, 3"});
}

// Compilers leave undefined what is not used: sources of a permutation of which no byte is taken,
// bytes and halves above the one that is stored.
TEST_F(SeededBugs, PartsThatAreNotUsedMayBeUndefined) {
  for (const char* right : {"v_perm_b32 v4, v4, v0, 0xc0c0100", "v_perm_b32 v4, v0, v4, 0xc070504",
                            "v_perm_b32 v4, v4, v0, 0x7060500", "v_pack_b32_f16 v4, v0, v4",
                            "v_cvt_pk_u8_f32 v4, 1.0, 0, v4"}) {
    const std::string body = fmt::format("{}\nglobal_store_b8 v1, v4, s[2:3]", right);
    EXPECT_EQ(to_text(run_after_load(body).findings), "") << right;
  }
  for (const char* wrong : {"v_perm_b32 v4, v4, v0, 0x3020104", "v_perm_b32 v4, v0, v4, 0x7060500",
                            "v_pack_b32_f16 v4, v4, v0", "v_perm_b32 v4, v4, v0, v0",
                            "v_cvt_pk_u8_f32 v4, 1.0, 1, v4", "v_cvt_pk_u8_f32 v4, v4, 0, v4"}) {
    const std::string body = fmt::format("{}\nglobal_store_b8 v1, v4, s[2:3]", wrong);
    const Outcome outcome = run_after_load(body);
    ASSERT_EQ(outcome.findings.size(), 1u) << wrong;
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::UninitializedRegister) << wrong;
  }
}

TEST_F(SeededBugs, WaitForTheOlderOfTwoLoadsIsEnough) {
  const Outcome outcome = run_after_load(R"(
      global_load_b32 v2, v1, s[2:3]
      global_load_b32 v3, v1, s[2:3]
      s_waitcnt vmcnt(1)
      v_add_nc_u32_e32 v4, v2, v0)");
  EXPECT_EQ(to_text(outcome.findings), "");
}

TEST_F(SeededBugs, RegisterThatNobodyWrote) {
  expect_bug({FindingKind::UninitializedRegister, "global_store_b32 v1, v7, s[2:3]",
              "global_store_b32 v1, v7, s[2:3]"});
  // The value passes through an addition and a copy before it does harm.
  expect_bug({FindingKind::UninitializedRegister, R"(
      v_add_nc_u32_e32 v8, v7, v0
      v_mov_b32_e32 v9, v8
      global_store_b32 v1, v9, s[2:3])",
              "global_store_b32 v1, v9, s[2:3]"});
}

TEST_F(SeededBugs, RegisterWrittenInSomeLanesOnly) {
  expect_bug({FindingKind::UninitializedRegister, R"(
      s_mov_b32 s6, exec_lo
      s_mov_b32 exec_lo, 0xff
      v_mov_b32_e32 v7, 1
      s_mov_b32 exec_lo, s6
      global_store_b32 v1, v7, s[2:3])",
              "global_store_b32 v1, v7, s[2:3]"});
}

// Compilers leave the upper word of an addend undefined where the lower word of the sum is used.
TEST_F(SeededBugs, UndefinednessIsFollowedByWords) {
  const std::string kSum = R"(
      v_mov_b32_e32 v10, 3
      v_mad_u64_u32 v[12:13], null, v0, v0, v[10:11]
      v_lshlrev_b64 v[14:15], 2, v[12:13]
      global_store_b32 v1, v14, s[2:3])";
  EXPECT_EQ(to_text(run_after_load(kSum).findings), "");
  const std::string upper = kSum + "\n      global_store_b32 v1, v13, s[2:3]";
  expect_bug(
      {FindingKind::UninitializedRegister, upper.c_str(), "global_store_b32 v1, v13, s[2:3]"});
  const std::string shifted = kSum + "\n      global_store_b32 v1, v15, s[2:3]";
  expect_bug(
      {FindingKind::UninitializedRegister, shifted.c_str(), "global_store_b32 v1, v15, s[2:3]"});
}

TEST_F(SeededBugs, AFieldOfTheLowerWordLeavesTheUpperAside) {
  const std::string kField = R"(
      s_mov_b32 s20, 7
      s_bfe_i64 s[22:23], s[20:21], 0x100000
      v_mov_b32_e32 v12, s23
      global_store_b32 v1, v12, s[2:3])";
  EXPECT_EQ(to_text(run_after_load(kField).findings), "");
  const std::string wide = R"(
      s_mov_b32 s20, 7
      s_bfe_i64 s[22:23], s[20:21], 0x210000
      v_mov_b32_e32 v12, s22
      global_store_b32 v1, v12, s[2:3])";
  expect_bug(
      {FindingKind::UninitializedRegister, wide.c_str(), "global_store_b32 v1, v12, s[2:3]"});
}

TEST_F(SeededBugs, HalvesOfADualIssueAreApart) {
  const std::string kPair = R"(
      v_dual_mov_b32 v12, v0 :: v_dual_add_f32 v13, v10, v11
      global_store_b32 v1, v12, s[2:3])";
  EXPECT_EQ(to_text(run_after_load(kPair).findings), "");
  const std::string second = kPair + "\n      global_store_b32 v1, v13, s[2:3]";
  expect_bug(
      {FindingKind::UninitializedRegister, second.c_str(), "global_store_b32 v1, v13, s[2:3]"});
}

TEST_F(SeededBugs, MisalignedAtomic) {
  expect_bug({FindingKind::Misaligned, "global_atomic_add_u32 v1, v0, s[2:3] offset:2",
              "global_atomic_add_u32 v1, v0, s[2:3] offset:2"});
  expect_bug({FindingKind::Misaligned, "ds_add_u64 v1, v[0:1]", "ds_add_u64 v1, v[0:1]"});
}

TEST_F(SeededBugs, MisalignedScalarLoad) {
  expect_bug({FindingKind::Misaligned, R"(
      s_or_b32 s2, s2, 2
      s_load_b32 s4, s[2:3], 0x4)",
              "s_load_b32 s4, s[2:3], 0x4"});
}

// As the kernel driver sets the hardware up.
TEST_F(SeededBugs, LoadsAndStoresMayLieAnywhere) {
  const Outcome outcome = run_after_load(R"(
      v_mul_u32_u24_e32 v1, 5, v0
      global_store_b32 v1, v0, s[2:3] offset:1
      s_waitcnt_vscnt null, 0x0
      global_load_b32 v2, v1, s[2:3] offset:1
      s_waitcnt vmcnt(0)
      v_cmp_ne_u32_e32 vcc_lo, v2, v0
      s_cbranch_vccz same
      global_load_b32 v2, v1, s[2:3] offset:4000
same:)");
  EXPECT_EQ(to_text(outcome.findings), "");
}

TEST_F(SeededBugs, EndlessLoop) {
  const Outcome outcome = run_program("again:\n  s_nop 0\n  s_branch again");
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::Hang);
  EXPECT_FALSE(outcome.finished);
}

// The second wave never comes to where the first one waits.
TEST_F(SeededBugs, ABarrierThatNotAllReachNamesBothPlaces) {
  const Outcome outcome = run_program(R"(
      v_cmp_gt_u32_e32 vcc_lo, 32, v0
      s_cbranch_vccnz there
again:
      s_sleep 1
      s_branch again
there:
      s_barrier)");
  ASSERT_EQ(outcome.findings.size(), 1u);
  const Finding& hang = outcome.findings[0];
  EXPECT_EQ(hang.kind, FindingKind::Hang);
  EXPECT_EQ(hang.kernel, "bug");
  EXPECT_EQ(hang.wave, 1u);
  EXPECT_TRUE(hang.instruction == "s_sleep 1" || hang.instruction.starts_with("s_branch"))
      << hang.instruction;
  const std::string waits = fmt::format("workgroup 0 wave 0 at the barrier {:#x} `s_barrier`",
                                        hang.code_address / 256 * 256 + 16);
  EXPECT_NE(hang.detail.find(waits), std::string::npos) << waits << " in " << hang.detail;
  EXPECT_NE(hang.detail.find("workgroup 0 wave 1 at 0x"), std::string::npos) << hang.detail;
}

TEST_F(SeededBugs, ModesAndSaturationThatAreNotKnownAreSaid) {
  const auto last = [](const std::string& body) {
    const Outcome outcome = run_after_load(body);
    EXPECT_EQ(outcome.findings.size(), 1u) << body;
    EXPECT_FALSE(outcome.finished);
    if (outcome.findings.empty()) return std::string();
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::ModeNotEmulated);
    return outcome.findings[0].instruction;
  };
  EXPECT_EQ(last("s_round_mode 0x3\nv_cvt_f32_f64_e32 v2, s[0:1]"), "v_cvt_f32_f64_e32 v2, s[0:1]");
  EXPECT_EQ(last("s_round_mode 0xf\nv_dot2_f32_f16 v2, v0, v0, v0"),
            "v_dot2_f32_f16 v2, v0, v0, v0");
  EXPECT_EQ(last("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1"),
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 0x1");
  expect_bug({FindingKind::UnknownInstruction, "v_mad_u16 v2, v0, v0, v0 clamp",
              "v_mad_u16 v2, v0, v0, v0 clamp"});
}

TEST_F(SeededBugs, HardwareRegistersThatAreNotKnownAreSaid) {
  expect_bug({FindingKind::UnknownInstruction,
              "s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)",
              "s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)"});
}

TEST_F(SeededBugs, WordsWithoutAMeaning) {
  const Outcome outcome = run_program(".long 0xfffffff0");
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::UnknownInstruction);
  EXPECT_EQ(outcome.findings[0].instruction, ".long 0xfffffff0");
}

}  // namespace
}  // namespace tuff::emu::rdna
