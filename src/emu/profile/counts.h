// What counters say of a launch, whichever GPU's: instructions by class, memory, floats, and which
// cache had a line. Filled by the counters of rdna and ptx, read by the time model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "emu/memory/memory.h"

namespace tuff::emu::profile {

// Of AMD's GPUs first (what Mesa's aco_statistics.cpp tells apart), then what only NVIDIA's have,
// by the pipelines that NVIDIA's "Nsight Compute", Metrics Decoder, names.
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
  Fma,
  Alu,
  Half,
  Fp64,
  Xu,
  Tensor,
  Constant,
  Shuffle,
  Count
};
inline constexpr size_t kStepClasses = size_t(StepClass::Count);

enum class Vendor : uint8_t { Amd, Nvidia };

const char* name(StepClass kind);
bool has_class(Vendor vendor, StepClass kind);
constexpr bool is_vector_memory(StepClass kind) {
  return kind == StepClass::VmemLoad || kind == StepClass::VmemStore || kind == StepClass::Atomic;
}

// Which peak a float operation is measured by. Half: of pairs, where they are faster.
enum class FloatKind : uint8_t { Vector, Half, Matrix, Double, Count };

struct StepCost {
  StepClass kind = StepClass::Other;
  uint16_t issue_cycles = 1;  // of the port that it issues to
  uint8_t latency = 1;        // until a dependent instruction may issue; loads: by what they find
  bool is_mad = false;        // a multiply-add, of integers as well
  FloatKind floats = FloatKind::Vector;
  uint16_t flops = 0;  // of a lane; of the wave for matrices, which ignore who is active
  uint16_t slots = 1;  // machine instructions that it becomes
};

// Where a line of memory was found, from near to far. NVIDIA's L1 is L0 here: that of a core.
enum class MemoryLevel : uint8_t { L0, L1, L2, Mall, Dram, Count };

// Cycles of the shader's clock from issue to use.
struct MemoryLatencies {
  std::array<uint32_t, size_t(MemoryLevel::Count)> vector{}, scalar{};
  uint32_t lds = 0;
};

inline constexpr uint32_t kLineBytes = 128, kSectorBytes = 32;

struct LineAccess {
  uint64_t line = 0;  // the address / kLineBytes
  AccessKind kind = AccessKind::Load;
  bool device_scope = false;
  uint32_t workgroup = 0, wave = 0;  // the wave's number within the workgroup
  uint8_t sectors = 0;               // of the line, a bit each
};

class LineSink {
 public:
  virtual ~LineSink() = default;
  virtual MemoryLevel access(const LineAccess& access) = 0;
};

// What one instruction, or several, asked memory for.
struct MemoryCounts {
  uint64_t bytes = 0;  // asked for by active lanes
  uint64_t lines = 0, least_lines = 0, lines64 = 0, least_lines64 = 0;
  uint64_t sectors = 0, least_sectors = 0;
  void add(const MemoryCounts& other);
};

struct InstructionCounts {
  std::string text;
  StepCost cost;
  uint64_t executed = 0, lanes = 0;  // lanes: of vector instructions
  MemoryCounts memory;
  uint64_t lds_cycles = 0, conflict_cycles = 0;
  uint64_t flops = 0;
};

// What a launch executed. Memory is that of vector instructions.
struct DispatchCounts {
  struct Class {
    uint64_t instructions = 0, issue_cycles = 0;
  };
  std::array<Class, kStepClasses> classes{};
  uint64_t waves = 0, instructions = 0, mad_instructions = 0, slots = 0;
  MemoryCounts loaded, stored;
  uint64_t lds_cycles = 0, conflict_cycles = 0;
  std::array<uint64_t, size_t(FloatKind::Count)> flops{};
  uint64_t distinct_bytes = 0;  // read, unless written before by this dispatch; and written
  uint64_t alone_cycles = 0;    // of all waves, each alone on its SIMD
  uint64_t longest_cycles = 0;  // of the one that takes longest
};

}  // namespace tuff::emu::profile
