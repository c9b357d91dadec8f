// Counts what a dispatch executes: instructions by class, bytes, cache lines, bank conflicts of
// LDS, floats, and how long its waves would take alone. Given to a Dispatch by who wants it;
// without one nothing is counted. Changes nothing of what it sees. The lines go on to a LineSink,
// a model of caches (emu/profile), which says where it found them.
// Source of the LDS: AMD, "RDNA3 Instruction Set Architecture" (2023), 12.1: 32 banks of a dword
// for each pair of SIMDs, one access to each per cycle.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/rdna/byte_set.h"
#include "emu/memory/lane_runs.h"
#include "emu/memory/memory.h"
#include "emu/rdna/timeline.h"

namespace tuff::emu::rdna {

inline constexpr uint32_t kLineBytes = 128;

struct LineAccess {
  uint64_t line = 0;  // the address / kLineBytes
  AccessKind kind = AccessKind::Load;
  bool device_scope = false;
  uint32_t workgroup = 0, wave = 0;  // the wave's number within the workgroup
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

// What a dispatch executed. Memory is that of vector instructions.
struct DispatchCounts {
  struct Class {
    uint64_t instructions = 0, issue_cycles = 0;
  };
  std::array<Class, kStepClasses> classes{};
  uint64_t waves = 0, instructions = 0, mad_instructions = 0;
  MemoryCounts loaded, stored;
  uint64_t lds_cycles = 0, conflict_cycles = 0;
  std::array<uint64_t, size_t(FloatKind::Count)> flops{};
  uint64_t distinct_bytes = 0;  // read, unless written before by this dispatch; and written
  uint64_t alone_cycles = 0;    // of all waves, each alone on its SIMD
  uint64_t longest_cycles = 0;  // of the one that takes longest
};

class Counters {
 public:
  Counters(const MemoryLatencies& latencies, LineSink& sink) : latencies_(latencies), sink_(sink) {}

  // Called by the dispatch: a wave begins; around each of its steps; a workgroup passes a barrier.
  void start(const Wave& w);
  void begin(const Wave& w, const Step& step);
  void end(const Wave& w, const Step& step);
  void pass_barrier(std::span<const std::unique_ptr<Wave>> waves);

  // Called by the instruction between begin() and end(), for the lanes of a mask.
  void global(const Addresses& at, uint32_t lanes, const Access& shape);
  void lds(const Addresses& at, uint32_t lanes, uint32_t bytes, bool atomic);
  void scratch(const Wave& w, const Addresses& at, uint32_t lanes, const Access& shape);
  void range(const Access& access);  // of one lane, or of the wave

  DispatchCounts counts() const;
  const std::map<uint64_t, InstructionCounts>& by_address() const { return rows_; }

 private:
  struct Range {
    uint64_t begin = 0;
    uint32_t bytes = 0;
  };
  InstructionCounts& row_of(const Step& step);
  MemoryLevel touch_lines(const Wave& w, MemoryCounts& counts);
  void remember_bytes(const Range& range);
  uint64_t memory_cycles(const Wave& w);
  Timeline& timeline(const Wave& w) { return *timelines_[&w]; }

  const MemoryLatencies latencies_;
  LineSink& sink_;
  std::map<uint64_t, InstructionCounts> rows_;
  std::unordered_map<uint64_t, InstructionCounts*> found_;
  std::unordered_map<const Wave*, std::unique_ptr<Timeline>> timelines_;
  ByteSet read_, written_;
  uint64_t waves_ = 0, distinct_bytes_ = 0, alone_cycles_ = 0, longest_cycles_ = 0;

  // What the current instruction does.
  InstructionCounts* current_ = nullptr;
  std::vector<Range> ranges_;
  std::vector<uint64_t> lines_;
  AccessKind kind_ = AccessKind::Load;
  bool device_scope_ = false, is_private_ = false;
  uint64_t lds_cycles_ = 0, lds_conflicts_ = 0;
};

}  // namespace tuff::emu::rdna
