// How a command list is arranged before it is encoded: what runs together, where barriers stand,
// and where a list that takes long is cut. Called by CommandGraph, eager lists and PacedList. Sees
// accesses and expected times alone; must never know kernels or devices.
#pragma once

#include <cstdint>
#include <vector>

#include "hcq/command.h"

namespace tuff::hcq {

// Moves each command to the earliest barrier-free group after all that it conflicts with (RAW, WAR,
// WAW by byte ranges), so that a list needs no more barriers than its longest chain of conflicts is
// long. Stable within a group; nothing moves across a Barrier, Wait, Signal, Timestamp or HostCall.
void order_by_levels(CommandList& list);

// Puts a barrier before each command that conflicts with one since the last barrier.
void insert_barriers(CommandList& list);

// Sum of Command::cost_ns.
uint64_t expected_ns(const CommandList& list);

// Commands begin..end-1 of a list, as a list of their own.
struct ListPart {
  size_t begin = 0, end = 0;
  CommandList list;
};
// The list as parts to be submitted one after the other, each expected to take at most `limit_ns`
// or a single command, with barriers placed anew: a submission begins after all before it.
// 0: no limit. Waits stay in the first part, signals in the last; slots mean the same in each. For
// lists whose accesses say all and that have no timestamps.
std::vector<ListPart> cut_by_time(const CommandList& list, uint64_t limit_ns);

}  // namespace tuff::hcq
