// The variants of ops that an arg tells apart: built by tensor, gradients and tests.
#pragma once

#include "ir/uop.h"

namespace tuff::ir {

constexpr int64_t kNaturalBase = 1;  // Exp2's arg

// e^x, whose argument meets no rounded factor.
inline UOp exponential(const UOp& x) { return alu(Op::Exp2, {x}, kNaturalBase); }
// sin(x + quarter_turns * pi/2) of x as it is: 1 is the cosine.
inline UOp sine(const UOp& x, int64_t quarter_turns) {
  return quarter_turns % 4 ? alu(Op::Sin, {x}, quarter_turns % 4) : alu(Op::Sin, {x});
}

// Mul's arg: its factors are taken to be finite, so that 0 times a factor may be 0 or NaN. A
// convolution is made of these: in its gradient the pixels outside of an image are zeros that are
// multiplied, as in its result, and not products that are masked one by one. Kernels know nothing
// of it.
inline constexpr int64_t kFiniteFactors = 1;

inline UOp finite_product(const UOp& a, const UOp& b) {
  return make(Op::Mul, DType::Void, {a, b}, kFiniteFactors);
}
inline bool is_finite_product(const Node& n) {
  return n.op == Op::Mul && n.arg == Arg(kFiniteFactors);
}

}  // namespace tuff::ir
