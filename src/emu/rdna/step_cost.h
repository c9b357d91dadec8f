// What an opcode costs to issue and what it computes: its class, cycles of its port, floats. Called
// by counters.cpp, once per instruction.
// Cycles: Mesa, aco_statistics.cpp, get_perf_info (GFX10 and later), for waves of 32 lanes.
#pragma once

#include "emu/profile/counts.h"
#include "emu/rdna/step.h"

namespace tuff::emu::rdna {

using profile::FloatKind;
using profile::StepClass;
using profile::StepCost;

// The vector instructions that compute, whose active lanes are counted.
constexpr bool is_valu(StepClass kind) { return kind <= StepClass::Wmma; }

StepCost cost_of(const Step& step);

}  // namespace tuff::emu::rdna
