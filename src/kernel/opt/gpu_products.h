// How a sum of products is tiled on a device with workgroups: a register tile for each invocation,
// and invocations that read the same beside each other. Called by the heuristics. Must never know a
// device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; false, and nothing done, where no operand is reused.
bool tile_gpu_product(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
