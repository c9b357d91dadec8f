// How a sum of products is tiled on a device with workgroups: a register tile for each invocation,
// invocations that read the same beside each other, and what they read copied into workgroup memory
// where that is faster than the caches. Called by the heuristics. Must never know a
// device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

struct GpuTile {
  bool chosen = false;  // false: no operand is reused, nothing was done
  bool staged = false;  // the factors are worth copies, once the launch is chosen
  int slab_loops = 0;   // loops of the reduction inside these
  int ahead = 0;        // how many of them the invocations have the registers to load ahead
};
GpuTile tile_gpu_product(Tiling& t, const KernelShape& k, const Target& target);
// What comes after all other opts.
void stage_gpu_product(Tiling& t, const GpuTile& tile);

}  // namespace tuff::kernel
