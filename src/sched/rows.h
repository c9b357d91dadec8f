// Row fusion: kernels of a LINEAR that work row by row become one, as the maximum, the sum and the
// quotient of a softmax. What is computed once per row (a reduction over its columns and what
// follows from it) is taken into the kernel that reads it for every column. Called by schedule()
// before merge_kernels. Knows slots and ASTs, nothing of what made them.
//
// The fused AST holds the reductions where their results are read:
//   store(y[r, c], f(x[r, c], sum_k(g(x[r, k], max_k(x[r, k])))))
// They depend on the rows' ranges alone, which stand outermost, so that each is a loop of its own
// inside the rows and beside the loop over c. Row values that other kernels read are stored too, by
// Ends over the rows alone.
//
// The cost rule:
//   1. A kernel with reductions is taken into a later one that reads its results once per row, at
//      one and the same element, and whose own reductions are per row too. What the row reads again
//      for each reduction comes from a cache; what it would store and load is saved, and a launch.
//   2. There are enough rows for the device (kRowsPerCore per core), or so few elements
//      (kLonelyElements) that a launch costs more than idle cores do: a reduction of everything,
//      then repeated, stays apart.
//   3. Where the reader has columns, memory is contiguous along one of them: rows that lie across
//      memory are walked better by one kernel per step.
//   4. Never more buffers than Target::max_buffers, nor AST nodes than kMaxRowNodes.
// No kernel that is taken in touches memory that another one stores, but to hand on row values.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kRowsPerCore = 4;
inline constexpr int64_t kUnknownCores = 16;  // of a GPU that does not tell
inline constexpr int64_t kLonelyElements = 1 << 12;
inline constexpr size_t kMaxRowNodes = 600;

// memory: for each Input slot in order, a number that slots in the same allocation share.
void fuse_rows(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of);

}  // namespace tuff::sched
