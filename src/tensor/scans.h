// Running reductions along an axis. Called by reduce, sorting and counting.
#pragma once

#include <tuff/tensor.h>
#include "ir/uop.h"

namespace tuff::detail {

// op (Add, Mul or Max) over each element and all before it on an axis; of a scalar the scalar. Long
// axes in blocks, so that n elements take O(n) operations. In x's own dtype.
Tensor running(ir::Op op, const Tensor& x, int64_t dim);

}  // namespace tuff::detail
