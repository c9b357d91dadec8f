// Rewrites a graph before kernels are formed: versions of assigned Storages become plain values but
// for the last one, Detach and what only gradients ask for vanish, reductions of which a part is
// read are of that part, empty ones become constants, huge ones are split in two, sources of an op
// that reads more of them than a kernel has buffers are stored side by side. Called by schedule() on
// a cache miss. Works on the tensor floor alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/uop.h"
#include "sched/schedule.h"
#include "sched/steps.h"

namespace tuff::sched {

// After it: at most one Assign per Storage, its target a reshape of the Buffer; or Assigns to
// parts, one after the other, the target of each a reshape of the Buffer or of the one before. A
// sink that reads a Storage's old contents while the graph overwrites it is a Contiguous.
struct Prepared {
  std::vector<ir::UOp> sinks;
  std::vector<std::string> parts;  // as Schedule::parts
};
Prepared prepare(std::span<const ir::UOp> sinks, const TargetOf& target_of,
                 const StepChoice& steps);

// Below Reshapes that leave every element where it lies in memory. One that merges or splits axes
// of symbolic extent does not: memory has room for the largest extents, values stand at its front.
const ir::Node* strip_reshapes(const ir::Node* n);

}  // namespace tuff::sched
