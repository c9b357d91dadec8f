// Products at their readers: a product of a matrix and a few vectors that one other kernel reads,
// element by element or in small groups, is computed where it is read. So a gate's product and the
// one that it gates are one kernel, and pairs of elements are turned before they are stored. Called
// by schedule() after fuse_rows. The cost rule: docs/design/fusion.md. Knows slots and ASTs,
// nothing of what made them.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kMostTogether = 4;  // elements of one product that are read as a group
inline constexpr int64_t kMostSums = 8;      // that one invocation makes at once

// As FuseCalls.
std::vector<Call> take_sums(Schedule& s, std::span<const uint32_t> memory,
                            const TargetOf& target_of, std::span<const Call> calls);

}  // namespace tuff::sched
