// Reduce fusion: kernels of a LINEAR that work row by row become one, as the maximum, the sum and
// the quotient of a softmax. What is computed once per row is taken into the kernel that reads it
// for every column. Called by schedule() before merge_kernels. The cost rule and the fused AST:
// docs/design/fusion.md. Knows slots and ASTs, nothing of what made them.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kRowsPerCore = 4;
inline constexpr int64_t kLonelyElements = 1 << 12;
// Rows of a symbolic length, of which the most alone is known: fewer of them than this stay apart.
inline constexpr int64_t kFewRows = 4;
inline constexpr size_t kMaxRowNodes = 600;

// As FuseCalls.
std::vector<Call> fuse_rows(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                            std::span<const Call> calls);

}  // namespace tuff::sched
