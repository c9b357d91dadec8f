// A schedule for kernels that keep rows in fast memory, on a device with workgroups: a workgroup
// takes a tile of rows, and its invocations share each nest of loops: register tiles of the
// products, reductions of the rows, what is stored. Called by the heuristics. Must never know a
// device's name.
#pragma once

#include "kernel/opt/shape.h"

namespace tuff::kernel {

// Applies it to `t`; false, and nothing done, where no row is kept.
bool share_kept_rows(Tiling& t, const ir::UOp& ast, const KernelShape& k, const Target& target);

}  // namespace tuff::kernel
