// What a node's sources and arg say of it when it is made: its shape on the tensor floor, and the
// bounds of integers. Called by uop.cpp and the builders.
#pragma once

#include <span>
#include <utility>

#include "ir/uop.h"

namespace tuff::ir {

// Shape of the node; empty for the kernel floors. Throws ShapeError naming the shapes that do not
// fit.
Shape derive_shape(Op op, std::span<const UOp> src, const Arg& arg);

// [min, max] of the value; int64's limits where nothing is known. Sound, not tight.
std::pair<int64_t, int64_t> derive_bounds(Op op, DType dtype, std::span<const UOp> src,
                                          const Arg& arg);

}  // namespace tuff::ir
