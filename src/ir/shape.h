// Shape rules of the tensor floor. Called by uop.cpp when a node is made and by the builders.
#pragma once

#include <span>

#include "ir/uop.h"

namespace tuff::ir {

// Shape of the node; empty for the kernel floors. Throws ShapeError naming the shapes that do not
// fit.
Shape derive_shape(Op op, DType dtype, std::span<const UOp> src, const Arg& arg);

}  // namespace tuff::ir
