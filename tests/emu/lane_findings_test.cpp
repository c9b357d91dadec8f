// Something is wrong with one lane of an access whose lanes lie side by side: the finding names
// that lane, its address and how many there are of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "emu/llvm_tools.h"
#include "emu/rdna/code_object.h"
#include "emu/rdna/dispatch.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint64_t kCode = 0x100000000, kKernarg = 0x200000000, kData = 0x300000000;
constexpr uint32_t kDataBytes = 4096, kWord = 4;

// s[4:5]: the data; s6: the workgroup; v0: the lane; v1: four times the lane.
std::string program(const std::string& body) {
  return testing::kernel_assembly(R"(
  s_mov_b32 s6, s2
  s_load_b64 s[4:5], s[0:1], 0x0
  v_and_b32_e32 v2, 31, v0
  v_lshlrev_b32_e32 v1, 2, v2
  s_waitcnt lgkmcnt(0)
)" + body, 512);
}

struct Scene {
  explicit Scene(const std::string& body) : object(testing::assemble(program(body)), kCode) {
    std::memcpy(kernarg.data(), &kData, sizeof kData);
    memory.map(kCode, object.image(), false);
    memory.map(kKernarg, kernarg, false);
    memory.map(kData, data);
  }
  Outcome run(uint32_t groups, uint32_t lanes = 32, uint64_t seed = 1) {
    Launch launch = launch_of(object.kernel("kernel"), kKernarg);
    launch.groups = {groups, 1, 1};
    launch.group_size = {lanes, 1, 1};
    launch.seed = seed;
    launch.instruction_budget = 100'000;
    return rdna::run(launch, memory);
  }
  uint32_t word(size_t index) const {
    uint32_t out;
    std::memcpy(&out, data.data() + kWord * index, sizeof out);
    return out;
  }

  CodeObject object;
  std::vector<uint8_t> data = std::vector<uint8_t>(kDataBytes), kernarg = std::vector<uint8_t>(64);
  RangeMemory memory;
};

class LaneFindings : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(testing::why_no_llvm(), ""); }
};

struct Expected {
  FindingKind kind;
  uint32_t lane;
  uint64_t address;
  uint64_t times;
};

void expect_finding(const Outcome& outcome, const Expected& expected) {
  ASSERT_EQ(outcome.findings.size(), 1u) << to_text(outcome.findings);
  const Finding& f = outcome.findings[0];
  EXPECT_EQ(f.kind, expected.kind) << to_text(f);
  EXPECT_EQ(f.lane, expected.lane) << to_text(f);
  EXPECT_EQ(f.data_address, expected.address) << to_text(f);
  EXPECT_EQ(f.times, expected.times) << to_text(f);
}

TEST_F(LaneFindings, TheEndOfMemoryInTheMiddleOfARun) {
  const uint64_t end = kData + kDataBytes;
  Scene ascending("  global_store_b32 v1, v0, s[4:5] offset:4032");  // 64 bytes before the end
  expect_finding(ascending.run(1), {FindingKind::UnmappedAccess, 16, end, 16});
  for (uint32_t k = 0; k < 16; ++k) EXPECT_EQ(ascending.word(1008 + k), k);
  Scene descending(
      "  v_sub_nc_u32_e32 v1, 0x103c, v1\n"  // from 4156 down
      "  global_load_b32 v3, v1, s[4:5]");
  expect_finding(descending.run(1), {FindingKind::UnmappedAccess, 0, kData + 0x103c, 16});
  Scene wide("  v_lshlrev_b32_e32 v1, 4, v2\n  global_load_b128 v[4:7], v1, s[4:5] offset:4084");
  expect_finding(wide.run(1), {FindingKind::UnmappedAccess, 0, end - 12, 32});
}

TEST_F(LaneFindings, ABroadcastThatNobodyMapped) {
  Scene scene("  v_mov_b32_e32 v1, 0x2000\n  global_load_b32 v3, v1, s[4:5]");
  expect_finding(scene.run(1), {FindingKind::UnmappedAccess, 0, kData + 0x2000, 32});
}

TEST_F(LaneFindings, ARunOverTwoMappingsIsNone) {
  Scene scene(R"(
  global_load_b32 v3, v1, s[4:5] offset:4032
  s_waitcnt vmcnt(0)
  global_store_b32 v1, v3, s[4:5])");
  std::vector<uint8_t> behind(64, 7);
  scene.memory.map(kData + kDataBytes, behind);
  std::fill(scene.data.end() - 64, scene.data.end(), uint8_t(5));
  const Outcome outcome = scene.run(1);
  EXPECT_EQ(to_text(outcome.findings), "");
  EXPECT_EQ(scene.word(15), 0x05050505u);
  EXPECT_EQ(scene.word(16), 0x07070707u);
  EXPECT_EQ(scene.word(31), 0x07070707u);
}

// Group 0 stores lane 5 alone, the others load all lanes, whoever comes first.
std::string one_lane_stores(const std::string& store, const std::string& load) {
  return fmt::format(R"(
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc0 loads
  s_mov_b32 exec_lo, 0x20
  {}
  s_endpgm
loads:
  {})",
                     store, load);
}

void expect_race(const std::string& body, uint32_t lane, uint64_t address) {
  bool found_by_load = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Scene scene(body);
    const Outcome outcome = scene.run(2, 32, seed);
    ASSERT_EQ(outcome.findings.size(), 1u) << to_text(outcome.findings);
    const bool by_load = outcome.findings[0].instruction.find("load") != std::string::npos;
    expect_finding(outcome, {FindingKind::GlobalRace, by_load ? lane : 5, address, 1});
    found_by_load |= by_load;
  }
  EXPECT_TRUE(found_by_load);
}

TEST_F(LaneFindings, ARaceInOneWordOfARun) {
  expect_race(one_lane_stores("global_store_b32 v1, v0, s[4:5]", "global_load_b32 v3, v1, s[4:5]"),
              5, kData + 20);
  expect_race(one_lane_stores("global_store_b32 v1, v0, s[4:5]",
                              "v_sub_nc_u32_e32 v1, 0x7c, v1\n  global_load_b32 v3, v1, s[4:5]"),
              26, kData + 20);
}

TEST_F(LaneFindings, ARaceInOneByteOfARun) {
  expect_race(one_lane_stores("global_store_b8 v0, v0, s[4:5]", "global_load_u8 v3, v0, s[4:5]"), 5,
              kData + 5);
}

TEST_F(LaneFindings, LanesThatAreOffDoNotRace) {
  for (const char* load : {"s_mov_b32 exec_lo, 0xffffffdf\n  global_load_b32 v3, v1, s[4:5]",
                           "v_add_nc_u32_e32 v1, 24, v1\n  global_load_b32 v3, v1, s[4:5]"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Scene scene(one_lane_stores("global_store_b32 v1, v0, s[4:5]", load));
      EXPECT_EQ(to_text(scene.run(2, 32, seed).findings), "");
    }
  }
  Scene bytes(one_lane_stores("global_store_b8 v0, v0, s[4:5]",
                              "s_mov_b32 exec_lo, 0xffffffdf\n  global_load_u8 v3, v0, s[4:5]"));
  EXPECT_EQ(to_text(bytes.run(2).findings), "");
}

// Two waves of a workgroup: the first stores lane 7 alone, the second loads all.
TEST_F(LaneFindings, AnLdsRaceInOneWordOfARun) {
  const auto body = [](const std::string& load) {
    return fmt::format(R"(
  v_cmp_gt_u32_e32 vcc_lo, 32, v0
  s_cbranch_vccz loads
  s_mov_b32 exec_lo, 0x80
  ds_store_b32 v1, v0
  s_endpgm
loads:
  {})",
                       load);
  };
  bool found_by_load = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Scene scene(body("ds_load_b32 v3, v1"));
    const Outcome outcome = scene.run(1, 64, seed);
    expect_finding(outcome, {FindingKind::LdsRace, 7, 28, 1});
    found_by_load |= outcome.findings[0].instruction == "ds_load_b32 v3, v1";
    Scene beside(body("s_mov_b32 exec_lo, 0xffffff7f\n  ds_load_b32 v3, v1"));
    EXPECT_EQ(to_text(beside.run(1, 64, seed).findings), "");
    Scene bytes(body("v_add_nc_u32_e32 v2, 3, v2\n  ds_load_u8 v3, v2"));  // bytes 3 to 34
    const Outcome partial = bytes.run(1, 64, seed);
    ASSERT_EQ(partial.findings.size(), 1u) << to_text(partial.findings);
    EXPECT_EQ(partial.findings[0].data_address, 28u);
  }
  EXPECT_TRUE(found_by_load);
}

TEST_F(LaneFindings, TheEndOfLdsInTheMiddleOfARun) {
  Scene scene("  ds_store_b32 v1, v0 offset:448");
  expect_finding(scene.run(1), {FindingKind::LdsOutOfBounds, 16, 512, 16});
}

}  // namespace
}  // namespace tuff::emu::rdna
