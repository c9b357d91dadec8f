// Norms at their readers: what all elements that a product reads have in common, as the root of the
// mean of their squares, leaves its sum, and is made by the loop that makes the product. So no
// normalized vector is stored. Called by schedule() after take_sums. The cost rule:
// docs/design/fusion.md. Knows slots and ASTs, nothing of what made them.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

// Vectors that each invocation sums up besides.
inline constexpr int64_t kMostNormedVectors = 2;

// As FuseCalls.
std::vector<Call> take_norms(Schedule& s, std::span<const uint32_t> memory,
                             const TargetOf& target_of, std::span<const Call> calls);

}  // namespace tuff::sched
