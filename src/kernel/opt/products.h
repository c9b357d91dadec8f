// A schedule for sums of products on a device without workgroups: a register tile, operands packed
// into fast memory, edges masked, the rest shared out among the threads. Called by the heuristics.
// Must never know a device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; false, and nothing done, where the kernel has another form.
bool tile_packed_product(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
