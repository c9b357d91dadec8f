// Products of which the rows are a symbolic extent: with one row they are matrix-vector products,
// which want another kernel than all others do. Called by schedule(). Knows ASTs and calls, nothing
// of opts.
#pragma once

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kSingleRowMatrix = 4096;  // elements: below, all kernels are short

// Puts a kernel for one row beside each kernel of such a product; each call runs the one of the two
// that its extents ask for (Call::runs). Not where launches of no workgroups are followed by
// barriers, as on GPUs, whose tiles of few rows are bound by the matrix all the same.
void add_single_rows(Schedule& s, const TargetOf& target_of);

}  // namespace tuff::sched
