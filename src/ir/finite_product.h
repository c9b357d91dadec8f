// Products that need not keep apart what is 0 and what is left out. A convolution is made of these:
// in its gradient the pixels outside of an image are zeros that are multiplied, as in its result,
// and not products that are masked one by one. Made by the tensor room, used by sched; kernels know
// nothing of it.
#pragma once

#include "ir/uop.h"

namespace tuff::ir {

// The arg of such a Mul: its factors are taken to be finite, so that 0 times a factor may be 0 or
// NaN.
inline constexpr int64_t kFiniteFactors = 1;

inline UOp finite_product(const UOp& a, const UOp& b) {
  return make(Op::Mul, DType::Void, {a, b}, kFiniteFactors);
}
inline bool is_finite_product(const Node& n) {
  return n.op == Op::Mul && n.arg == Arg(kFiniteFactors);
}

}  // namespace tuff::ir
