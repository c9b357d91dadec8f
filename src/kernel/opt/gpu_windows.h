// How a product of several output axes is tiled where loads are dear. In convolutions and the
// gradients of their weights a factor is read through windows that overlap: what neighbouring
// outputs and steps of the reduction have in common is loaded once. Called by the tiling of
// products on a device with workgroups. Must never know a device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// False: the product has two output axes and no windows, or loads are cheap; nothing was done.
bool tile_gpu_windows(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
