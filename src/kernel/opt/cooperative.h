// A schedule for sums of products of narrow numbers where the Target's subgroups multiply matrices:
// fragments in registers, subgroups in a workgroup. Called by the heuristics. Must never know a
// device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`, all but the launch grid; false, and nothing done, where no shape of the Target
// fits the kernel.
bool tile_matrices(Tiling& t, const Target& target);

}  // namespace tuff::kernel
