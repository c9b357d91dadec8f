// Arithmetic on 32-bit words as value graphs: the bricks of what emulates wider integers and of the
// table-driven sine. Called by transcendental, int64_pair and word_storage. Knows nothing of
// targets.
#pragma once

#include "graph/uop.h"

namespace tuff::kernel {

inline graph::UOp word(uint64_t v) {
  return graph::constant(Scalar::of_int(DType::U32, int64_t(v)));
}
inline graph::UOp word_and(const graph::UOp& a, const graph::UOp& b) {
  return graph::alu(graph::Op::And, {a, b});
}
inline graph::UOp word_or(const graph::UOp& a, const graph::UOp& b) {
  return graph::alu(graph::Op::Or, {a, b});
}
inline graph::UOp shl(const graph::UOp& a, const graph::UOp& n) {
  return n->is_const_int(0) ? a : graph::alu(graph::Op::Shl, {a, n});
}
inline graph::UOp shr(const graph::UOp& a, const graph::UOp& n) {
  return n->is_const_int(0) ? a : graph::alu(graph::Op::Shr, {a, n});
}
inline graph::UOp shl(const graph::UOp& a, int n) { return shl(a, word(uint64_t(n))); }
inline graph::UOp shr(const graph::UOp& a, int n) { return shr(a, word(uint64_t(n))); }
inline graph::UOp equal(const graph::UOp& a, const graph::UOp& b) {
  return graph::alu(graph::Op::CmpEq, {a, b});
}
// 1 or 0.
inline graph::UOp flag(const graph::UOp& condition) { return graph::cast(condition, DType::U32); }

// The upper word of a 32x32-bit product, from 16-bit halves.
graph::UOp multiply_high(const graph::UOp& a, const graph::UOp& b);

}  // namespace tuff::kernel
