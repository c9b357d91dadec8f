// Counts what a launch of PTX executes, and how long its warps would take alone. Given to a Machine
// by who wants it; without one nothing is counted.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "emu/profile/launch_counts.h"
#include "emu/ptx/timeline.h"
#include "emu/ptx/warp.h"

namespace tuff::emu::ptx {

class Counters : public profile::LaunchCounts {
 public:
  // `target` as cost_of() has it.
  Counters(const profile::MemoryLatencies& latencies, profile::LineSink& sink,
           const Module& module, std::string target)
      : LaunchCounts(latencies, sink, true), module_(module), target_(std::move(target)) {}

  // Called by the dispatch: a warp begins and ends; around each instruction that lanes execute; a
  // block passes a barrier.
  void start(const Warp& w);
  void begin(const Warp& w, const Instruction& i, uint32_t lanes);
  void end(const Warp& w, const Instruction& i);
  void finish(const Warp& w);
  void pass_barrier(const Block& block);

  // Called by the instruction between begin() and end().
  void local(const Warp& w, const Addresses& at, uint32_t lanes, const Access& shape);

 private:
  struct Known {
    profile::InstructionCounts* row = nullptr;
    CopyRole copies = CopyRole::None;
  };
  const Known& known(const Instruction& i);
  Timeline& timeline(const Warp& w) { return *timelines_[&w]; }

  const Module& module_;
  const std::string target_;
  std::unordered_map<const Instruction*, Known> known_;
  std::set<uint64_t> taken_;  // of the rows' addresses
  std::unordered_map<const Warp*, std::unique_ptr<Timeline>> timelines_;
  CopyRole copies_ = CopyRole::None;  // of the current instruction
};

}  // namespace tuff::emu::ptx
