// Arithmetic on 32-bit words as value graphs: the bricks of what emulates wider integers and of the
// table-driven sine. Called by transcendental, int64_pair and word_storage. Knows nothing of
// targets.
#pragma once

#include "ir/uop.h"

namespace tuff::kernel {

inline ir::UOp word(uint64_t v) {
  return ir::constant(Scalar::of_int(DType::U32, int64_t(v)));
}
inline ir::UOp word_and(const ir::UOp& a, const ir::UOp& b) {
  return ir::alu(ir::Op::And, {a, b});
}
inline ir::UOp word_or(const ir::UOp& a, const ir::UOp& b) {
  return ir::alu(ir::Op::Or, {a, b});
}
inline ir::UOp shl(const ir::UOp& a, const ir::UOp& n) {
  return n->is_const_int(0) ? a : ir::alu(ir::Op::Shl, {a, n});
}
inline ir::UOp shr(const ir::UOp& a, const ir::UOp& n) {
  return n->is_const_int(0) ? a : ir::alu(ir::Op::Shr, {a, n});
}
inline ir::UOp shl(const ir::UOp& a, int n) { return shl(a, word(uint64_t(n))); }
inline ir::UOp shr(const ir::UOp& a, int n) { return shr(a, word(uint64_t(n))); }
inline ir::UOp equal(const ir::UOp& a, const ir::UOp& b) {
  return ir::alu(ir::Op::CmpEq, {a, b});
}
// 1 or 0.
inline ir::UOp flag(const ir::UOp& condition) { return ir::cast(condition, DType::U32); }

// The upper word of a 32x32-bit product, from 16-bit halves.
inline ir::UOp multiply_high(const ir::UOp& a, const ir::UOp& b) {
  const ir::UOp low = word(0xffff);
  const ir::UOp al = word_and(a, low), ah = shr(a, 16), bl = word_and(b, low), bh = shr(b, 16);
  const ir::UOp mid = ah * bl + shr(al * bl, 16);
  const ir::UOp mid2 = al * bh + word_and(mid, low);
  return ah * bh + shr(mid, 16) + shr(mid2, 16);
}

}  // namespace tuff::kernel
