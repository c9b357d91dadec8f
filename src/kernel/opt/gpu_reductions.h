// How reductions that are no products run on a device with workgroups: by subgroups, by all
// invocations of a workgroup, or in each invocation alone. Called by the heuristics. Must never
// know a device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; gives how many invocations share a reduction, 0: each has its own.
int64_t tile_gpu_reduction(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
