// Attention fusion ("kept rows"): what stands between two matrix products row by row, as the
// softmax of attention between scores and values, becomes one kernel with both. The matrix between
// them is never stored: a row of it at a time is kept in fast memory. Called by schedule() after
// fuse_rows. The form of such kernels and the cost rule: docs/design/attention.md. Knows slots and
// ASTs, nothing of what made them.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

// As FuseCalls.
std::vector<Call> keep_rows(Schedule& s, std::span<const uint32_t> memory,
                            const TargetOf& target_of, std::span<const Call> calls);

}  // namespace tuff::sched
