// Which exponential a function takes. Used inside tensor.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

// e^x of f32 or f64. Of f32 by the device's own exp2 and the rounded product with log2(e), within
// |x| ULP and a few: for sums of many and for what is rounded to 16 bits. exp() has no such error.
Tensor quick_exp(const Tensor& x);

}  // namespace tuff::detail
