// The variants of curved ops that an arg tells apart: built by tensor, gradients and tests; made of
// other ops by kernel.
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

}  // namespace tuff::ir
