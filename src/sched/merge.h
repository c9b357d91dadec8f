// Horizontal fusion: element-wise kernels and column sums of a LINEAR that do not wait for each
// other become one kernel with several outputs, as the updates of an optimizer's parameters. Called
// by schedule() before memory is planned. The cost rule: docs/design/fusion.md. Knows slots and
// ASTs, nothing of what made them.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kMaxNestElements = int64_t(1) << 18;
inline constexpr int64_t kMaxSummedElements = int64_t(1) << 20;
inline constexpr int64_t kMaxMergedElements = int64_t(1) << 22;
inline constexpr size_t kMaxNests = 16;
// Loops beside each other, each counted as what opts make of it: one of an output, beside what all
// nests share, three of a sum. A kernel has fewer than 64.
inline constexpr size_t kMaxLoops = 56;
inline constexpr size_t kMaxMergedNodes = 2000;
inline constexpr size_t kMaxNestNodes = 384;  // in the loops of one nest

// As FuseCalls.
std::vector<Call> merge_kernels(Schedule& s, std::span<const uint32_t> memory,
                                const TargetOf& target_of, std::span<const Call> calls);

}  // namespace tuff::sched
