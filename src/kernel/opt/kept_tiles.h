// A schedule for kernels that keep rows in fast memory, on a device without workgroups: one
// register tile of rows for all products, vectors along whatever is stored, rows shared out among
// the threads. Called by the heuristics. Must never know a device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; false, and nothing done, where no row is kept.
bool tile_kept_rows(Tiling& t, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
