// Dispatches in flight: workgroups beside each other, races between them, several dispatches, code
// that changes, memory that objects.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "emu/llvm_tools.h"
#include "emu/rdna/code_cache.h"
#include "emu/rdna/code_object.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint64_t kCode = 0x100000000, kKernarg = 0x200000000, kData = 0x300000000;

// s[4:5]: the data; s6: the workgroup; v0: the lane.
std::string program(const std::string& body, uint32_t vgprs = 16) {
  return testing::kernel_assembly(R"(
  s_mov_b32 s6, s2
  s_load_b64 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
)" + body, 0, vgprs);
}

class Dispatches : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
};

struct Program {
  explicit Program(const std::string& body, uint32_t vgprs = 16)
      : object(testing::assemble(program(body, vgprs)), kCode) {
    std::memcpy(kernarg.data(), &kData, sizeof kData);
    memory.map(kCode, object.image(), false);
    memory.map(kKernarg, kernarg, false);
    memory.map(kData, data);
  }
  Launch launch(uint64_t seed, uint32_t groups = 2, uint32_t lanes = 32) const {
    Launch out = launch_of(object.kernel("kernel"), kKernarg);
    out.groups = {groups, 1, 1};
    out.group_size = {lanes, 1, 1};
    out.seed = seed;
    out.instruction_budget = 1'000'000;
    return out;
  }
  uint32_t word(size_t index) const {
    uint32_t out;
    std::memcpy(&out, data.data() + 4 * index, 4);
    return out;
  }

  CodeObject object;
  std::vector<uint8_t> data = std::vector<uint8_t>(4096), kernarg = std::vector<uint8_t>(64);
  RangeMemory memory;
};

Outcome run_fresh(Program& p, uint64_t seed, uint32_t groups = 2, uint32_t lanes = 32) {
  std::ranges::fill(p.data, uint8_t(0));
  return run(p.launch(seed, groups, lanes), p.memory);
}

void expect_race(const std::string& body, uint32_t groups = 2) {
  Program p(body);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = run_fresh(p, seed, groups, 1);
    ASSERT_FALSE(outcome.findings.empty()) << seed;
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::GlobalRace) << to_text(outcome.findings[0]);
    EXPECT_EQ(outcome.findings[0].data_address, kData);
    EXPECT_TRUE(outcome.finished);
  }
}

void expect_no_findings(const std::string& body, uint32_t groups, uint32_t lanes = 1) {
  Program p(body);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Outcome outcome = run_fresh(p, seed, groups, lanes);
    ASSERT_EQ(to_text(outcome.findings), "") << seed;
    EXPECT_TRUE(outcome.finished);
  }
}

TEST_F(Dispatches, TwoWorkgroupsThatWriteOneWordRace) {
  expect_race(R"(
  v_mov_b32_e32 v1, 0
  global_store_b32 v1, v0, s[4:5])");
}

// Group 0 writes, the others read: a race whoever comes first.
TEST_F(Dispatches, ReadAndWriteOfTwoWorkgroupsRace) {
  const std::string body = R"(
  v_mov_b32_e32 v1, 0
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 writes
  global_load_b32 v2, v1, s[4:5]
  s_endpgm
writes:
  global_store_b32 v1, v0, s[4:5])";
  expect_race(body);
  expect_race(body, 5);
}

TEST_F(Dispatches, PlainReadOfWhatAnAtomicWritesRaces) {
  expect_race(R"(
  v_mov_b32_e32 v1, 0
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 writes
  global_load_b32 v2, v1, s[4:5]
  s_endpgm
writes:
  global_atomic_add_u32 v1, v0, s[4:5])");
}

TEST_F(Dispatches, NeighbouringBytesDoNotRace) {
  expect_no_findings(R"(
  v_mov_b32_e32 v1, s6
  global_store_b8 v1, v0, s[4:5]
  s_waitcnt_vscnt null, 0x0
  global_load_u8 v2, v1, s[4:5]
  s_waitcnt vmcnt(0))",
                     64);
}

TEST_F(Dispatches, ManyMayReadWhatNobodyWrites) {
  expect_no_findings(R"(
  v_lshlrev_b32_e32 v1, 2, v0
  global_load_b32 v2, v1, s[4:5]
  v_lshl_add_u32 v3, s6, 7, v1
  s_waitcnt vmcnt(0)
  global_store_b32 v3, v2, s[4:5] offset:1024)",
                     8, 32);
}

TEST_F(Dispatches, AtomicsOfManyWorkgroupsAddUp) {
  Program p(R"(
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 1
  global_atomic_add_u32 v1, v2, s[4:5])");
  const Outcome outcome = run_fresh(p, 3, 50, 64);
  EXPECT_EQ(to_text(outcome.findings), "");
  EXPECT_EQ(p.word(0), 3200u);
}

// Group 0 writes and then raises a flag; group 1 waits for the flag and then reads.
std::string message(const std::string& wait) {
  return fmt::format(R"(
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 7
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 receives
  global_store_b32 v1, v2, s[4:5]
  s_waitcnt_vscnt null, 0x0
  global_atomic_add_u32 v1, v2, s[4:5] offset:256
  s_endpgm
receives:
{}
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32_e32 vcc_lo, 0, v3
  s_cbranch_vccnz receives
  global_load_b32 v4, v1, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v1, v4, s[4:5] offset:512)",
                     wait);
}

TEST_F(Dispatches, AMessageBetweenWorkgroupsIsOrderedByItsFlag) {
  for (const char* wait : {"  v_mov_b32_e32 v3, 0\n"
                           "  global_atomic_or_b32 v3, v1, v3, s[4:5] offset:256 glc",
                           "  global_load_b32 v3, v1, s[4:5] offset:256 glc"}) {
    expect_no_findings(message(wait), 2);
    Program p(message(wait));
    run_fresh(p, 1, 2, 1);
    EXPECT_EQ(p.word(128), 7u);
  }
}

// The same, but the flag is raised first: the atomic publishes nothing of what comes after it.
TEST_F(Dispatches, AFlagRaisedTooEarlyOrdersNothing) {
  expect_race(R"(
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 7
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 receives
  global_atomic_add_u32 v1, v2, s[4:5] offset:256
  global_store_b32 v1, v2, s[4:5]
  s_endpgm
receives:
  v_mov_b32_e32 v3, 0
  global_atomic_or_b32 v3, v1, v3, s[4:5] offset:256 glc
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32_e32 vcc_lo, 0, v3
  s_cbranch_vccnz receives
  global_load_b32 v4, v1, s[4:5])");
}

// The store may reach the L2 after the flag: a wait for it is missing, or is one for loads.
TEST_F(Dispatches, AFlagMayPassAStoreThatWasNotWaitedFor) {
  const char *kAdd = "global_atomic_add_u32 v1, v2, s[4:5] offset:256",
             *kStore = "global_store_b32 v1, v2, s[4:5] offset:256 glc",
             *kOr = "global_atomic_or_b32 v3, v1, v3, s[4:5] offset:256 glc",
             *kLoad = "global_load_b32 v3, v1, s[4:5] offset:256 glc";
  for (const auto& [raise, look] :
       {std::pair(kAdd, kOr), std::pair(kAdd, kLoad), std::pair(kStore, kLoad)}) {
    const auto body = [&](const char* wait) {
      return fmt::format(R"(
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 7
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 receives
  global_store_b32 v1, v2, s[4:5]
  {}
  {}
  s_endpgm
receives:
  v_mov_b32_e32 v3, 0
  {}
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32_e32 vcc_lo, 0, v3
  s_cbranch_vccnz receives
  global_load_b32 v4, v1, s[4:5])",
                         wait, raise, look);
    };
    expect_race(body("s_nop 0"));
    expect_race(body("s_waitcnt vmcnt(0)"));
    expect_no_findings(body("s_waitcnt_vscnt null, 0x0"), 2);
  }
}

// Each writes its part; who counts last adds all of them up, then clears what it has read.
TEST_F(Dispatches, TheLastWorkgroupMayReadWhatAllHaveWritten) {
  const std::string body = R"(
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, 1
  v_mov_b32_e32 v5, s6
  v_lshlrev_b32_e32 v5, 2, v5
  global_store_b32 v5, v2, s[4:5] offset:64
  s_waitcnt_vscnt null, 0x0
  global_atomic_add_u32 v3, v1, v2, s[4:5] glc
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32_e32 vcc_lo, 7, v3
  s_cbranch_vccz done
  global_load_b128 v[4:7], v1, s[4:5] offset:64
  global_load_b128 v[8:11], v1, s[4:5] offset:80
  s_waitcnt vmcnt(0)
  v_add3_u32 v4, v4, v5, v6
  v_add3_u32 v4, v4, v7, v8
  v_add3_u32 v4, v4, v9, v10
  v_add_nc_u32_e32 v4, v4, v11
  global_store_b32 v1, v4, s[4:5] offset:128
  global_store_b32 v1, v1, s[4:5] offset:64
  global_store_b32 v1, v1, s[4:5]
done:)";
  expect_no_findings(body, 8);
  Program p(body);
  run_fresh(p, 9, 8, 1);
  EXPECT_EQ(p.word(32), 8u);
}

TEST_F(Dispatches, TwoInFlightDoNotDisturbEachOther) {
  Program p(R"(
  v_lshlrev_b32_e32 v1, 2, v0
  global_load_b32 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_nc_u32_e32 v2, 1, v2
  global_store_b32 v1, v2, s[4:5])");
  std::vector<uint8_t> other(128), arguments(64);
  const uint64_t other_data = kData + 0x10000, other_kernarg = kKernarg + 0x10000;
  std::memcpy(arguments.data(), &other_data, sizeof other_data);
  p.memory.map(other_data, other);
  p.memory.map(other_kernarg, arguments, false);
  CodeCache code;
  Launch second = p.launch(2, 1);
  second.user_data[0] = uint32_t(other_kernarg);
  Dispatch a(p.launch(1, 1), p.memory, code), b(second, p.memory, code);
  for (bool more = true; more;) {
    more = a.step();
    more |= b.step();
  }
  for (const Dispatch* one : {&a, &b}) {
    EXPECT_EQ(to_text(one->outcome().findings), "");
    EXPECT_TRUE(one->outcome().finished);
    EXPECT_EQ(one->outcome().counts.at("v_add_nc_u32_e32"), 1u);
  }
  EXPECT_EQ(p.word(31), 1u);
  EXPECT_EQ(other[124], 1u);
}

TEST_F(Dispatches, ChangedCodeRunsOnceTheCacheIsInvalidated) {
  const auto body = [](int value) {
    return fmt::format(
        "  v_mov_b32_e32 v1, 0\n  v_mov_b32_e32 v2, {}\n"
        "  global_store_b32 v1, v2, s[4:5]",
        value);
  };
  Program p(body(1));
  CodeObject changed(testing::assemble(program(body(2))), kCode);
  CodeCache code;
  std::vector<Finding> findings;
  const auto result = [&] {
    Dispatch dispatch(p.launch(0, 1, 1), p.memory, code);
    while (dispatch.step()) {}
    EXPECT_TRUE(dispatch.outcome().finished);
    findings = dispatch.outcome().findings;
    return p.word(0);
  };
  EXPECT_EQ(result(), 1u);
  EXPECT_EQ(to_text(findings), "");
  std::ranges::copy(changed.image(), p.object.image().begin());
  EXPECT_EQ(result(), 1u);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::StaleCode);
  EXPECT_EQ(findings[0].kernel, "kernel");
  EXPECT_EQ(findings[0].instruction, "s_mov_b32 s6, s2");
  EXPECT_GE(findings[0].code_address, kCode);
  code.invalidate();
  EXPECT_EQ(result(), 2u);
  EXPECT_EQ(to_text(findings), "");
}

// One result per line of the program: v3 is stored and read back.
uint32_t result_of(const std::string& body) {
  Program p(body + R"(
  v_mov_b32_e32 v1, 0
  global_store_b32 v1, v3, s[4:5])");
  EXPECT_EQ(to_text(run_fresh(p, 1, 1, 1).findings), "") << body;
  return p.word(0);
}

// As Mesa's compiler writes v_fma_mixlo_f16 and v_fma_mix_f32: a source that is f32 has all 32 bits
// of its literal, of which assemblers print and take 16.
TEST_F(Dispatches, LiteralsOfMixedPrecisionHave32Bits) {
  Program p(R"(
  v_mov_b32_e32 v1, 0x42700000
  v_mov_b32_e32 v2, 0
  .long 0xcc210002, 0x820202ff, 0x3c888889  ; v2 = f16(0x3c888889 * v1 - 0)
  .long 0xcc200003, 0x820202ff, 0x3c888889  ; v3 = 0x3c888889 * v1 - 0
  v_mov_b32_e32 v4, 0
  global_store_b64 v4, v[2:3], s[4:5])");
  const Outcome outcome = run_fresh(p, 1, 1, 1);
  EXPECT_EQ(to_text(outcome.findings), "");
  EXPECT_EQ(p.word(0), 0x3C00u);  // 60 / 60
  EXPECT_EQ(p.word(1), std::bit_cast<uint32_t>(60.0f * std::bit_cast<float>(0x3c888889u)));
}

// Short encodings of operations on 16 bits name halves of v0 to v127, as Mesa 25 writes them; LLVM
// 19 knows few of them.
TEST_F(Dispatches, OperandsOf16BitsAreHalvesOfRegisters) {
  Program p(R"(
  v_mov_b32_e32 v1, 0x44004200              ; halves 4 and 3
  v_mov_b32_e32 v2, 0x12345678
  v_mov_b32_e32 v7, 0x40a00000              ; 5
  .long 0x7f041507                          ; v2.h = f16(v7)
  v_mov_b32_e32 v3, 0
  .long 0x64060381                          ; v3.l = v1.h + v1.l
  .long 0x65070301                          ; v3.h = v1.l + v1.h
  v_mov_b32_e32 v4, 0xaaaabbbb
  v_mov_b32_e32 v5, 0xccccdddd
  .long 0x7f08cd05                          ; v4.h and v5.l change places
  v_mov_b32_e32 v6, 0x11112222
  .long 0xd59c4006, 0x00000104              ; v6.h = v4.l
  v_mov_b32_e32 v0, 0
  global_store_b128 v0, v[2:5], s[4:5]
  global_store_b32 v0, v6, s[4:5] offset:16)");
  const Outcome outcome = run_fresh(p, 1, 1, 1);
  EXPECT_EQ(to_text(outcome.findings), "");
  EXPECT_EQ(p.word(0), 0x45005678u);
  EXPECT_EQ(p.word(1), 0x47004700u);  // 7 and 7
  EXPECT_EQ(p.word(2), 0xddddbbbbu);
  EXPECT_EQ(p.word(3), 0xccccaaaau);
  EXPECT_EQ(p.word(4), 0xbbbb2222u);
}

// v2 and s2 are not one register: the bytes of v2 that nobody wrote are not stored.
TEST_F(Dispatches, BytesThatAreNotStoredMayBeUndefined) {
  Program p(R"(
  s_mov_b32 s2, 0x1234
  v_mov_b32_e32 v0, 0
  v_perm_b32 v2, v2, s2, 0x7060500
  global_store_b8 v0, v2, s[4:5])");
  EXPECT_EQ(to_text(run_fresh(p, 1, 1, 1).findings), "");
  EXPECT_EQ(p.word(0), 0x34u);
}

TEST_F(Dispatches, IntegersOf16BitsSaturateWhereTheyAreAskedTo) {
  const auto of = [](const std::string& operand, const std::string& instruction) {
    return result_of("v_mov_b32_e32 v2, " + operand + "\nv_mov_b32_e32 v3, 0\n" + instruction);
  };
  EXPECT_EQ(of("5", "v_sub_nc_u16 v3, v2, 8"), 0xFFFDu);
  EXPECT_EQ(of("5", "v_sub_nc_u16 v3, v2, 8 clamp"), 0u);
  EXPECT_EQ(of("0xfffe", "v_add_nc_u16 v3, v2, 8 clamp"), 0xFFFFu);
  EXPECT_EQ(of("0x7ffe", "v_add_nc_i16 v3, v2, 8 clamp"), 0x7FFFu);
  EXPECT_EQ(of("0x8001", "v_sub_nc_i16 v3, v2, 8 clamp"), 0x8000u);
}

// A kernel begins with IEEE and DX10_CLAMP set, as compilers ask for.
TEST_F(Dispatches, ModeSaysWhatBecomesOfNaNAndOfFactors) {
  EXPECT_EQ(result_of("s_getreg_b32 s7, hwreg(HW_REG_MODE, 0, 24)\nv_mov_b32_e32 v3, s7"), 0x3F0u);
  const std::string kSignals = "v_mov_b32_e32 v2, 0x7f800001\n",
                    kNoIeee = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0\n",
                    kNoClamp = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 1), 0\n",
                    kFlush = "s_denorm_mode 0xc\n";
  EXPECT_EQ(result_of(kSignals + "v_max_f32_e32 v3, 1.0, v2"), 0x7FC00001u);
  EXPECT_EQ(result_of(kSignals + kNoIeee + "v_max_f32_e32 v3, 1.0, v2"), 0x3F800000u);
  EXPECT_EQ(result_of(kSignals + "v_mul_f32_e64 v3, 1.0, v2 clamp"), 0u);
  EXPECT_EQ(result_of(kSignals + kNoClamp + "v_mul_f32_e64 v3, 1.0, v2 clamp"), 0x7FC00001u);
  const std::string kSum = "v_add_f32_e64 v3, 1.0, 1.0 mul:2";
  EXPECT_EQ(result_of(kSum), 0x40000000u);
  EXPECT_EQ(result_of(kFlush + kSum), 0x40000000u);
  EXPECT_EQ(result_of(kNoIeee + kSum), 0x40000000u);
  EXPECT_EQ(result_of(kNoIeee + kFlush + kSum), 0x40800000u);
}

// What flushing denormals of 32 bits does to products of matrices is not written down: without any
// it is nothing, else it is said.
TEST_F(Dispatches, DenormalsThatMatricesMayFlushAreFound) {
  for (const char* addend : {"1.0", "0x00000001"}) {
    std::string body = "s_denorm_mode 0xc\n";
    for (int r = 8; r < 24; r++) body += fmt::format("v_mov_b32_e32 v{}, 0\n", r);
    for (int r = 24; r < 32; r++) body += fmt::format("v_mov_b32_e32 v{}, {}\n", r, addend);
    Program p(body + R"(
  v_wmma_f32_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[24:31]
  v_mov_b32_e32 v0, 0
  global_store_b32 v0, v24, s[4:5])", 32);
    const Outcome outcome = run_fresh(p, 1, 1, 32);
    if (std::string(addend) == "1.0") {
      EXPECT_EQ(to_text(outcome.findings), "");
      EXPECT_EQ(p.word(0), 0x3f800000u);
    } else {
      ASSERT_FALSE(outcome.findings.empty());
      EXPECT_EQ(outcome.findings[0].kind, FindingKind::ModeNotEmulated);
    }
  }
}

// Of halves there are none of 32 bits, whatever they are.
TEST_F(Dispatches, MatricesOfHalvesDoNotDependOnWhatIsFlushed) {
  std::string body = "s_denorm_mode 0xc\n";
  for (int r = 8; r < 24; r++) body += fmt::format("v_mov_b32_e32 v{}, 0x00010001\n", r);
  for (int r = 24; r < 32; r++) body += fmt::format("v_mov_b32_e32 v{}, 0x00010001\n", r);
  Program p(body + R"(
  v_wmma_f16_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[24:31]
  v_mov_b32_e32 v0, 0
  global_store_b32 v0, v24, s[4:5])", 32);
  const Outcome outcome = run_fresh(p, 1, 1, 32);
  EXPECT_EQ(to_text(outcome.findings), "");
  EXPECT_EQ(p.word(0), 0x00010001u);  // 2^-24 and sixteen products of 2^-48
}

// Records of 12 bytes, seven of them, of which lane l reads word 1 + l / 8 of record l: behind a
// record's end, and behind the last record, there is nothing. In the order of OOB_SELECT.
TEST_F(Dispatches, BuffersEndWhereTheirDescriptorsSay) {
  const auto body = [](uint32_t bounds, const char* more) {
    return fmt::format(R"(
  s_mov_b32 s8, s4
  s_or_b32 s9, s5, 0xc0000
  s_mov_b32 s10, {}
  s_mov_b32 s11, {:#x}
  v_mov_b32_e32 v1, v0
  v_lshrrev_b32_e32 v2, 3, v0
  v_lshlrev_b32_e32 v2, 2, v2
  {}
  buffer_load_b32 v3, v[1:2], s[8:11], 0 idxen offen offset:4
  s_waitcnt vmcnt(0)
  v_lshlrev_b32_e32 v4, 2, v0
  global_store_b32 v4, v3, s[4:5] offset:2048)",
                       bounds == 3 ? 7 * 12 : 7, bounds << 28 | 0x4000, more);
  };
  for (uint32_t bounds = 0; bounds < 4; ++bounds) {
    Program p(body(bounds, "s_nop 0"));
    for (uint32_t k = 0; k < 256; ++k) std::memcpy(p.data.data() + 4 * k, &k, 4);
    const Outcome outcome = run(p.launch(1, 1), p.memory);
    EXPECT_EQ(to_text(outcome.findings), "") << bounds;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t word = 3 * lane + 1 + lane / 8;
      const bool inside[] = {lane < 7 && lane / 8 < 2, lane < 7, true, word < 21};
      EXPECT_EQ(p.word(512 + lane), inside[bounds] ? word : 0) << bounds << ", lane " << lane;
    }
  }
  Program swizzled(body(0, "s_or_b32 s9, s9, 0x40000000"));
  const Outcome outcome = run(swizzled.launch(1, 1), swizzled.memory);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::UnknownInstruction);
  EXPECT_NE(outcome.findings[0].detail.find("SWIZZLE_ENABLE 1"), std::string::npos);
}

TEST_F(Dispatches, AScalarOffsetBeyondABufferIsSaid) {
  Program p(R"(
  s_mov_b32 s8, s4
  s_mov_b32 s9, s5
  s_mov_b32 s10, 64
  s_mov_b32 s11, 0x30004000
  s_mov_b32 s12, 48
  v_lshlrev_b32_e32 v1, 2, v0
  buffer_store_b32 v0, v1, s[8:11], s12 offen)");
  const Outcome outcome = run_fresh(p, 1, 1, 8);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::BufferBounds);
  EXPECT_EQ(outcome.findings[0].lane, 4u);
  EXPECT_EQ(outcome.findings[0].data_address, kData + 64);
}

// Objects to one address, and counts the lines of code.
struct Objecting : RangeMemory {
  uint8_t* reach(const Access& access, Defect& defect) override {
    lines += access.kind == AccessKind::Fetch;
    device_loads += access.kind == AccessKind::Load && access.device_scope;
    if (access.address == kData + 8) {
      defect.kind = DefectKind::StaleData;
      defect.detail = "two is newer";
    }
    return RangeMemory::reach(access, defect);
  }
  uint8_t* reach_run(const Access& access) override {
    if (kData + 8 - access.address < access.bytes) return nullptr;
    device_loads += access.device_scope ? int(access.bytes / 4) : 0;
    return RangeMemory::reach_run(access);
  }
  int lines = 0, device_loads = 0;
};

TEST_F(Dispatches, DefectsOfMemoryAreFindingsAndTheKernelGoesOn) {
  Program p(R"(
  v_lshlrev_b32_e32 v1, 2, v0
  global_load_b32 v2, v1, s[4:5]
  global_load_b32 v3, v1, s[4:5] glc)");
  Objecting memory;
  memory.map(kCode, p.object.image(), false);
  memory.map(kKernarg, p.kernarg, false);
  memory.map(kData, p.data);
  const Outcome outcome = run(p.launch(0, 1), memory);
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(outcome.findings.size(), 2u);
  EXPECT_EQ(to_text(outcome.findings[0]),
            fmt::format("kernel: stale data at {:#x} `global_load_b32 v2, v1, s[4:5]`, workgroup 0 "
                        "wave 0 lane 2, address 0x300000008: two is newer",
                        outcome.findings[0].code_address));
  EXPECT_EQ(memory.lines, 1);
  EXPECT_EQ(memory.device_loads, 32);
}

TEST_F(Dispatches, AJumpToWhereNothingIsMappedIsAFault) {
  Program p("  s_mov_b64 s[8:9], 0x1000\n  s_setpc_b64 s[8:9]");
  const Outcome outcome = run_fresh(p, 0);
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::UnmappedAccess);
  EXPECT_EQ(outcome.findings[0].data_address, 0x1000u);
  EXPECT_FALSE(outcome.finished);
}

}  // namespace
}  // namespace tuff::emu::rdna
