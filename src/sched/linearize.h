// Kernels, copies and views of a fusion plan with their dependencies, then in order: LINEAR without
// its memory plan. Decides where an Assign may write in place. Called by schedule() on a cache miss.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/fuse.h"
#include "sched/schedule.h"

namespace tuff::sched {

// `inputs` in the order that numbers the Input slots. Leaves Temp offsets and arenas unset.
Schedule linearize(const FusePlan& plan, const std::vector<ir::Storage*>& inputs,
                   const TargetOf& target_of);

}  // namespace tuff::sched
