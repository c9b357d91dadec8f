// The neutral element of a reduction. Called where reductions are masked or begun.
#pragma once

#include "graph/uop.h"

namespace tuff::kernel {

graph::UOp reduce_identity(graph::Op op, DType t);

}  // namespace tuff::kernel
