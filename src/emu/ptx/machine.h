// What executes sees of its launch: memory, findings, sizes, and whether it goes on. Made by
// dispatch.cpp alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emu/memory/global_races.h"
#include "emu/memory/memory.h"
#include "emu/ptx/warp.h"

namespace tuff::emu::ptx {

// A launch as the interpreter takes it.
struct Launch {
  const Module* module = nullptr;
  const Function* kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;
  uint64_t seed = 0, instruction_budget = 0;
  bool races = true, uninitialized = true;

  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

class Counters;

class Machine {
 public:
  Machine(const Launch& launch, RangeMemory& memory, std::vector<Finding>& findings);

  const Launch& launch() const { return launch_; }
  const SharedLayout& shared_layout() const { return layout_; }
  uint32_t shared_bytes() const { return layout_.dynamic_offset + launch_.dynamic_shared_bytes; }
  RangeMemory& memory() { return memory_; }
  GlobalRaces* global_races() { return races_.get(); }
  bool watches_threads() const { return launch_.races; }
  bool watches_values() const { return launch_.uninitialized; }

  // Files a finding, once per kind and instruction: the current one.
  void report(const Warp& w, FindingKind kind, uint32_t lane, uint64_t address, std::string detail);
  // A value of the lanes of a register that was never written is a finding.
  void require(const Warp& w, uint32_t reg, uint32_t lanes, const char* what);
  void require_predicate(const Warp& w, uint32_t reg, uint32_t lanes, const char* what);

  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }

  const Instruction* current = nullptr;
  Counters* counters = nullptr;  // null: nothing is counted
  uint64_t clock = 0;  // instructions of all warps

 private:
  const Launch& launch_;
  SharedLayout layout_;
  RangeMemory& memory_;
  std::vector<Finding>& findings_;
  std::unique_ptr<GlobalRaces> races_;  // where there are several blocks
  bool stopped_ = false;
};

}  // namespace tuff::emu::ptx
