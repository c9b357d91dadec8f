// The canonical form of a kernel's AST, so that equal kernels are the same node: neighbouring axes
// that every access walks as one are merged, ranges are numbered outputs first, then reductions in
// order. Called by rangeify. Works on the kernel floor alone.
#pragma once

#include "ir/uop.h"

namespace tuff::sched {

ir::UOp canonicalize(const ir::UOp& ast);

}  // namespace tuff::sched
