// LaunchCounts: what the counters of every GPU have in common: rows of instructions, and of the one
// that executes bytes, lines, conflicts of banks and which cache its lines come from. Base of the
// counters of rdna and ptx, which know instructions and how waves wait. Changes nothing of what it
// sees; the lines go on to a LineSink, a model of caches.
// Source of the banks: AMD, "RDNA3 Instruction Set Architecture" (2023), 12.1, 32 banks of a dword
// for each pair of SIMDs, one access to each per cycle; NVIDIA, "CUDA C++ Programming Guide", 16.4.3
// and on, 32 banks of a dword for each SM.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "emu/memory/byte_set.h"
#include "emu/memory/lane_runs.h"
#include "emu/profile/counts.h"

namespace tuff::emu::profile {

class LaunchCounts {
 public:
  // `joins_parts`: parts of a wide access to LDS that are of the same dwords pass together.
  LaunchCounts(const MemoryLatencies& latencies, LineSink& sink, bool joins_parts = false)
      : latencies_(latencies), sink_(sink), joins_parts_(joins_parts) {}

  // Called by the instruction that executes, for the lanes of a mask.
  void global(const Addresses& at, uint32_t lanes, const Access& shape);
  void lds(const Addresses& at, uint32_t lanes, uint32_t bytes, bool atomic);
  void range(const Access& access);  // of one lane, or of the wave

  DispatchCounts counts() const;
  // By address, or line of the text.
  const std::map<uint64_t, InstructionCounts>& by_address() const { return rows_; }

 protected:
  // The row of an instruction; new ones have no text.
  InstructionCounts& row_at(uint64_t address);
  void begin_instruction(InstructionCounts& row);
  // Private memory lies dword by dword, the lanes side by side; `bytes_per_lane` of it.
  void private_memory(uint64_t wave, uint64_t bytes_per_lane, const Addresses& at, uint32_t lanes,
                      const Access& shape);
  // What the instruction waits for, of memory and of LDS; the instruction's counts are complete.
  uint64_t end_instruction(uint32_t workgroup, uint32_t wave);
  void end_wave(uint64_t cycles);

  uint64_t waves_ = 0;
  InstructionCounts* current_ = nullptr;

 private:
  struct Range {
    uint64_t begin = 0;
    uint32_t bytes = 0;
  };
  struct Line {
    uint64_t line = 0;
    uint8_t sectors = 0;
  };
  MemoryLevel touch_lines(uint32_t workgroup, uint32_t wave, MemoryCounts& counts);
  void add_lines(const Range& range);
  void remember_bytes(const Range& range);

  const MemoryLatencies latencies_;
  LineSink& sink_;
  const bool joins_parts_;
  std::map<uint64_t, InstructionCounts> rows_;
  std::unordered_map<uint64_t, InstructionCounts*> found_;
  ByteSet read_, written_;
  uint64_t distinct_bytes_ = 0, alone_cycles_ = 0, longest_cycles_ = 0;

  // What the current instruction does.
  std::vector<Range> ranges_;
  std::vector<Line> lines_;
  AccessKind kind_ = AccessKind::Load;
  bool device_scope_ = false, is_private_ = false;
  uint64_t lds_cycles_ = 0, lds_conflicts_ = 0;
};

}  // namespace tuff::emu::profile
