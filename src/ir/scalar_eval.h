// The exact meaning of every ALU op on scalars: used by constant folding and by the interpreter.
// Must never know shapes, memory or devices.
#pragma once

#include <span>
#include <string>
#include <unordered_map>

#include "ir/uop.h"

namespace tuff::ir {

// Result dtype follows the op's rule (Cast and Bitcast: `to`). Narrow floats compute in f32 and
// round once; integers wrap; Index is 64-bit. `word` is the op's arg, 0 for none.
Scalar eval_scalar(Op op, DType to, std::span<const Scalar> src, int64_t word = 0);

// The word of an op's arg, as eval_scalar takes it.
inline int64_t word_of(const Arg& arg) {
  const int64_t* word = std::get_if<int64_t>(&arg);
  return word ? *word : 0;
}

// The neutral element of a reduction: 0, 1, or the least value.
Scalar reduce_identity(Op op, DType t);

// What the interpreter folds elements of `t` in: sums of floats in f64, so that what it expects is
// off by one rounding, however many equal terms there are; else accumulator(t).
DType reference_accumulator(Op op, DType t);

// The number an index expression (ranges apart) stands for. InvalidArgument naming a variable that
// has no value or one outside its bounds.
using VariableValues = std::unordered_map<std::string, int64_t>;
int64_t evaluate_index(const UOp& x, const VariableValues& values);

}  // namespace tuff::ir
