// A schedule for sums of products whose operands are not packed, on a device without workgroups:
// vectors along one output axis and rows of them, or partial sums along the reduction. Called by
// the heuristics. Must never know a device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; false, and nothing done, where no operand is reused.
bool tile_vector_product(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
