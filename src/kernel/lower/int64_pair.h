// 64-bit integers as two 32-bit words, for devices without them: arithmetic, comparison, division
// and conversions as branch-free value graphs. Called by the pass wide-integers alone. Knows
// nothing of memory, loops or targets.
#pragma once

#include <span>

#include "ir/uop.h"

namespace tuff::kernel {

struct Pair {
  ir::UOp lo, hi;  // U32 both; the sign is hi's top bit
};

Pair pair_const(uint64_t v);
Pair pair_where(const ir::UOp& condition, const Pair& a, const Pair& b);
// An ALU op of the linear floor whose operands are of dtype t (I64 or U64) and whose result is t.
// Divisors are neither 0 nor -1, shifts below 64. Unsupported naming the op otherwise.
Pair pair_alu(ir::Op op, DType t, std::span<const Pair> x);
ir::UOp pair_compare(ir::Op op, DType t, const Pair& a, const Pair& b);

// From bool, any narrower integer, an Index, or a float whose truncated value fits t.
Pair pair_from(const ir::UOp& x, DType t);
// To a narrower integer (wraps), an Index, or a float (one rounding to nearest even).
ir::UOp pair_to(const Pair& x, DType from, DType to);

}  // namespace tuff::kernel
