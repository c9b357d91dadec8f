// Exp2, log2, sine and square root from adds, multiplies and bit operations, branch-free, for
// devices whose own are absent or not accurate enough. f32 and f64. Called by decompose alone.
// Budgets in ULP, asserted by tests/kernel: f32 exp2 2, log2 3, sin 2 for every finite x; f64 4,
// its sine for |x| < 2^20; beyond that it loses accuracy in proportion to x.
#pragma once

#include "base/target.h"
#include "graph/uop.h"

namespace tuff::kernel {

// fused: products and sums may round once, as the device likes.
graph::UOp exp2_by_polynomial(const graph::UOp& x, bool fused);
graph::UOp log2_by_polynomial(const graph::UOp& x);
graph::UOp sin_by_polynomial(const graph::UOp& x);
graph::UOp sqrt_by_newton(const graph::UOp& x);
graph::UOp is_nan(const graph::UOp& x);  // from the bits: right where NaN may be assumed away

}  // namespace tuff::kernel
