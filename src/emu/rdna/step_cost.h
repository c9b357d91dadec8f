// What an opcode costs to issue and what it computes: its class, cycles of its port, floats. The
// shape of the classes is that of KernelProfile. Called by counters.cpp, once per instruction.
// Cycles: Mesa, aco_statistics.cpp, get_perf_info (GFX10 and later), for waves of 32 lanes.
#pragma once

#include "emu/rdna/step.h"

namespace tuff::emu::rdna {

enum class StepClass : uint8_t {
  Valu,
  ValuTrans,
  ValuF64,
  Dual,
  Wmma,
  Salu,
  Smem,
  VmemLoad,
  VmemStore,
  Atomic,
  Lds,
  Branch,
  Wait,
  Barrier,
  Other,
  Count
};

inline constexpr size_t kStepClasses = size_t(StepClass::Count);
const char* name(StepClass kind);
// The vector instructions that compute, whose active lanes are counted.
constexpr bool is_valu(StepClass kind) { return kind <= StepClass::Wmma; }
constexpr bool is_vector_memory(StepClass kind) {
  return kind == StepClass::VmemLoad || kind == StepClass::VmemStore || kind == StepClass::Atomic;
}

// Which peak a float operation is measured by.
enum class FloatKind : uint8_t { Vector, Matrix, Double, Count };

struct StepCost {
  StepClass kind = StepClass::Other;
  uint8_t issue_cycles = 1;  // of the port that it issues to
  uint8_t latency = 1;       // until a dependent instruction may issue; loads: by what they find
  bool is_mad = false;       // a multiply-add, of integers as well
  FloatKind floats = FloatKind::Vector;
  uint16_t flops = 0;  // of a lane; of the wave for matrices, which ignore EXEC
};

StepCost cost_of(const Step& step);

}  // namespace tuff::emu::rdna
