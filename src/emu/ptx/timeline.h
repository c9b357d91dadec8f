// How long a warp would take alone on its partition: an instruction begins when what it reads is
// there, and those behind it that do not wait for it go on, up to the next branch or barrier, as
// ptxas orders what lies between; memory that may be the same is not looked at. What other warps
// hide is for who reads it. Called by counters.cpp around each instruction. Registers go by their
// numbers, those of called functions too.
#pragma once

#include <deque>
#include <vector>

#include "emu/profile/counts.h"
#include "emu/profile/wave_time.h"
#include "emu/ptx/module.h"

namespace tuff::emu::ptx {

// What an instruction has to do with asynchronous copies (cp.async).
enum class CopyRole : uint8_t { None, Copies, Commits, WaitsForGroups, WaitsForAll };

class Timeline : public profile::WaveTime {
 public:
  void issue(const Instruction& i, const profile::StepCost& cost);
  void finish() { wait_until(latest_); }
  // After it: `memory_cycles` until what it loads is there, or what it stores is stored.
  void settle(const Instruction& i, const profile::StepCost& cost, uint64_t memory_cycles);
  // Of copies; `pending`: how many groups need not be there.
  void settle_copies(CopyRole role, uint64_t memory_cycles, uint64_t pending);

 private:
  using Times = std::vector<uint64_t>;
  static uint64_t ready(const Times& times, uint32_t reg) {
    return reg < times.size() ? times[reg] : 0;
  }
  static void set(Times& times, uint32_t reg, uint64_t time);
  void results_at(const Instruction& i, uint64_t time);

  Times registers_, predicates_;
  uint64_t begun_ = 0, latest_ = 0;  // the last instruction, and the last to begin of all so far
  uint64_t copied_ = 0;  // the copies of no group yet
  std::deque<uint64_t> groups_;
};

}  // namespace tuff::emu::ptx
