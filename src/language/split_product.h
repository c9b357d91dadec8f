// Products of a prompt's rows by the matrix registers of a CPU, which multiply bfloat16. Called by
// Projection. Must never know what a model is.
#pragma once

#include <tuff/tensor.h>

namespace tuff::language {

// x (rows, in) by a map's weights (out, in): (rows, out). Each number is the sum of two bfloat16,
// which have 16 bits of it. Undefined where the device has no such registers, where they do not
// divide the extents, for few rows, and outside of a NoGradGuard: the gradients of what is rounded
// are rounded, and no matrices of theirs lie as the registers read them. What is infinite, or larger
// than bfloat16 holds, gives NaN.
Tensor split_product(const Tensor& x, const Tensor& weights);

}  // namespace tuff::language
