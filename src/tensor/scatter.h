// What functions that store by index are made of. Called by them and by sorts. Must never know of
// devices.
#pragma once

#include <tuff/tensor.h>
#include "ir/uop.h"

namespace tuff::detail {

// `target` after value[..., k, ...] has been combined by `op` (Add, Mul, Max; Assign: has replaced)
// with the element index[..., k, ...] along axis d, its own along the others, k after k. All three
// have one rank, value and index one shape, that of the target but for d; index may be an expanded
// view. What is outside of 0..size(d)-1 stores nothing. `named` says how often an element is named:
// where that is once at most, all is stored at the same time; Any keeps the order, with as many
// invocations as there are elements off the axis and runs of the target on it. Sums and products of
// narrow floats are rounded once.
Tensor scattered(const Tensor& target, const Tensor& value, const Tensor& index, int64_t d,
                 ir::Op op, ir::Named named = ir::Named::Any);

}  // namespace tuff::detail
