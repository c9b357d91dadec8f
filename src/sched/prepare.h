// Rewrites a graph before kernels are formed: versions of assigned Storages become plain values but
// for the last one, Detach vanishes, empty reductions become constants, huge reductions are split
// in two, sources of an op that reads more of them than a kernel has buffers are stored side by
// side. Called by schedule() on a cache miss. Works on the tensor floor alone.
#pragma once

#include <span>
#include <vector>

#include "graph/uop.h"
#include "sched/schedule.h"

namespace tuff::sched {

// A reduction with fewer outputs than this and more reduced elements than that runs as partial
// results first, so that all cores or workgroups have a share.
inline constexpr int64_t kSplitMaxOutputs = 256;
inline constexpr int64_t kSplitMinReduced = 32768;
// So does a matrix product on a GPU with fewer outputs than an eighth of what keeps its units busy
// (eight subgroups on each, eight outputs to a lane), in as many parts as do, none shorter than
// this.
inline constexpr int64_t kSplitOutputsPerLane = 64, kSplitLeastGain = 8, kSplitLeastPart = 512;
// And one on a CPU whose packed panel, so many floats wide, takes more than three quarters of the
// L2 cache: in the fewest parts whose panels take three eighths, where each element of both factors
// is used so often that their products are what takes time.
inline constexpr int64_t kSplitPanelBytes = 64 * 4, kSplitLeastReuse = 16;

// After it: at most one Assign per Storage, its target a reshape of the Buffer; a sink that reads
// a Storage's old contents while the graph overwrites it is a Contiguous.
std::vector<graph::UOp> prepare(std::span<const graph::UOp> sinks, const TargetOf& target_of);

// Below Reshapes that leave every element where it lies in memory. One that merges or splits axes
// of symbolic extent does not: memory has room for the largest extents, values stand at its front.
const graph::Node* strip_reshapes(const graph::Node* n);

}  // namespace tuff::sched
