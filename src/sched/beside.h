// Launches beside each other: products of a matrix and a few vectors that do not wait for each
// other become one kernel, whose workgroups are those of one product, then those of the next. Called by
// schedule() after merge_kernels, and by kernel, which lowers each of them for itself. The cost
// rule: docs/design/fusion.md. Knows slots and ASTs, nothing of what made them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr size_t kMaxBeside = 8;           // products of one launch
inline constexpr int64_t kLeastBesideSteps = 64;  // of a sum that a subgroup shares
inline constexpr size_t kMaxBesideNodes = 2400;

// As FuseCalls.
std::vector<Call> put_beside(Schedule& s, std::span<const uint32_t> memory,
                             const TargetOf& target_of, std::span<const Call> calls);

// Of such a kernel the products, as kernels of their own whose Params keep their numbers; empty for
// any other kernel, also one whose nests share their loops out (merge.h).
std::vector<ir::UOp> launches_of(const ir::UOp& ast);

}  // namespace tuff::sched
