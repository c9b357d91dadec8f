// The exact meaning of every ALU op on scalars: used by constant folding and by the interpreter.
// Must never know shapes, memory or devices.
#pragma once

#include <span>

#include "graph/op.h"
#include <tuff/dtype.h>

namespace tuff::graph {

// Result dtype follows the op's rule (Cast and Bitcast: `to`). f16/bf16 compute in f32 and round once;
// integers wrap; Index is 64-bit. `word` is Threefry's arg.
Scalar eval_scalar(Op op, DType to, std::span<const Scalar> src, int64_t word = 0);

}  // namespace tuff::graph
