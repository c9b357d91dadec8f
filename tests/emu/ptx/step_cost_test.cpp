// What instructions of PTX cost: every form of the interpreter has a class, and the rates are those
// of NVIDIA's tables.
#include <gtest/gtest.h>

#include "emu/ptx/form.h"
#include "emu/ptx/step_cost.h"

namespace tuff::emu::ptx {
namespace {

using profile::StepClass;
using profile::StepCost;

StepCost cost(const char* spelling, const char* target = "sm_86") {
  return cost_of(spelling, target);
}

TEST(PtxStepCost, RatesAreThoseOfTheTables) {
  struct Case {
    const char* spelling;
    StepClass kind;
    uint16_t ampere, hopper;  // cycles of a partition for 32 lanes
  };
  for (const Case& c : {Case{"fma.rn.f32", StepClass::Fma, 1, 1},
                        Case{"add.s32", StepClass::Alu, 2, 2},
                        Case{"mad.lo.s32", StepClass::Fma, 2, 2},
                        Case{"mul.wide.u32", StepClass::Fma, 2, 2},
                        Case{"add.s64", StepClass::Alu, 4, 4},
                        Case{"and.b32", StepClass::Alu, 2, 2},
                        Case{"setp.lt.f32", StepClass::Alu, 2, 2},
                        Case{"popc.b32", StepClass::Xu, 8, 8},
                        Case{"rsqrt.approx.f32", StepClass::Xu, 8, 8},
                        Case{"fma.rn.f16x2", StepClass::Half, 2, 1},
                        Case{"fma.rn.f64", StepClass::Fp64, 64, 2},
                        Case{"cvt.rn.f32.s32", StepClass::Xu, 8, 8},
                        Case{"cvt.f32.f16", StepClass::Half, 2, 2},
                        Case{"dp4a.s32.s32", StepClass::Fma, 2, 2},
                        Case{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                             StepClass::Tensor, 32, 4},
                        Case{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
                             StepClass::Tensor, 16, 4},
                        Case{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                             StepClass::Tensor, 32, 4},
                        Case{"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", StepClass::Tensor,
                             16, 4}}) {
    EXPECT_EQ(cost(c.spelling).kind, c.kind) << c.spelling;
    EXPECT_EQ(cost(c.spelling).issue_cycles, c.ampere) << c.spelling;
    EXPECT_EQ(cost(c.spelling, "sm_90").issue_cycles, c.hopper) << c.spelling;
  }
}

TEST(PtxStepCost, WhatBecomesNoInstructionTakesNoSlot) {
  for (const char* spelling : {"mov.b32", "mov.u32", "cvta.to.global.u64", "ld.param.u64",
                               "cvt.u16.u32"})
    EXPECT_EQ(cost(spelling).slots, 0) << spelling;
  EXPECT_EQ(cost("ld.global.nc.v4.f32").kind, StepClass::VmemLoad);
  EXPECT_EQ(cost("ld.shared.f32").kind, StepClass::Lds);
  EXPECT_EQ(cost("st.global.f32").kind, StepClass::VmemStore);
  EXPECT_EQ(cost("red.global.add.f32").kind, StepClass::Atomic);
  EXPECT_EQ(cost("cp.async.cg.shared.global").kind, StepClass::VmemLoad);
  EXPECT_EQ(cost("cp.async.wait_group").kind, StepClass::Wait);
  EXPECT_EQ(cost("bar.sync").kind, StepClass::Barrier);
  EXPECT_EQ(cost("shfl.sync.bfly.b32").kind, StepClass::Shuffle);
  EXPECT_EQ(cost("bra.uni").kind, StepClass::Branch);
  EXPECT_GT(cost("div.rn.f32").slots, 5);
  EXPECT_GT(cost("rem.u32").slots, 10);
}

// A spelling of each row: the first choice of each group that has to be there.
std::string spelling_of(const OpcodeRow& row) {
  std::string out(row.base);
  std::string group;
  const auto add = [&] {
    if (!group.empty() && !group.ends_with('?')) out += "." + group.substr(0, group.find('|'));
    group.clear();
  };
  for (const char c : row.modifiers) c == ' ' ? add() : void(group += c);
  add();
  return out;
}

TEST(PtxStepCost, EveryRowOfTheInterpreterHasAClass) {
  for (const OpcodeRow& row : opcode_rows()) {
    const std::string spelling = spelling_of(row);
    const StepCost own = cost_of(spelling, "sm_90");
    EXPECT_TRUE(has_class(profile::Vendor::Nvidia, own.kind)) << spelling;
    const bool free = own.slots == 0 || spelling.starts_with("cp.async.commit");
    EXPECT_EQ(own.kind == StepClass::Other, free && own.kind == StepClass::Other) << spelling;
  }
}

}  // namespace
}  // namespace tuff::emu::ptx
