// Exp2, e^x, log2, sine and square root from adds, multiplies and bit operations, branch-free, for
// devices whose own are absent or not accurate enough. f32 and f64. Called by decompose alone.
// Budgets in ULP, asserted by tests/kernel for every finite x: e^x 2 in both; f32 exp2 2, log2 3,
// sin 2; f64 4.
#pragma once

#include "base/target.h"
#include "ir/uop.h"

namespace tuff::kernel {

// fused: products and sums may round once, as the device likes.
ir::UOp exp2_by_polynomial(const ir::UOp& x, bool fused);
ir::UOp exp_by_polynomial(const ir::UOp& x, bool fused);
ir::UOp log2_by_polynomial(const ir::UOp& x);
// sin(x + quarter_turns * pi/2), 0..3.
ir::UOp sin_by_polynomial(const ir::UOp& x, int64_t quarter_turns = 0);
ir::UOp sqrt_by_newton(const ir::UOp& x);
ir::UOp is_nan(const ir::UOp& x);  // from the bits: right where NaN may be assumed away

}  // namespace tuff::kernel
