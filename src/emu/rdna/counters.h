// Counts what a dispatch executes, and how long its waves would take alone. Given to a Dispatch by
// who wants it; without one nothing is counted.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "emu/profile/launch_counts.h"
#include "emu/rdna/timeline.h"

namespace tuff::emu::rdna {

class Counters : public profile::LaunchCounts {
 public:
  using LaunchCounts::LaunchCounts;

  // Called by the dispatch: a wave begins; around each of its steps; a workgroup passes a barrier.
  void start(const Wave& w);
  void begin(const Wave& w, const Step& step);
  void end(const Wave& w, const Step& step);
  void pass_barrier(std::span<const std::unique_ptr<Wave>> waves);

  // Called by the instruction between begin() and end(), for the lanes of a mask.
  void scratch(const Wave& w, const Addresses& at, uint32_t lanes, const Access& shape);

 private:
  Timeline& timeline(const Wave& w) { return *timelines_[&w]; }

  std::unordered_map<const Wave*, std::unique_ptr<Timeline>> timelines_;
};

}  // namespace tuff::emu::rdna
