// The groups of rules that symbolic_rules() consists of. Called by symbolic.cpp alone.
#pragma once

#include <vector>

#include "ir/rewrite.h"
#include "ir/symbolic.h"

namespace tuff::ir {

std::vector<Rule> identity_rules();  // constants, Where, casts; any dtype
std::vector<Rule> linear_rules();    // sums and products of Index
std::vector<Rule> divmod_rules();    // FloorDiv and FloorMod
std::vector<Rule> compare_rules();   // CmpLt, CmpEq, CmpNe on Index; Max
std::vector<Rule> bool_rules();      // And, Or, not

inline Roots index_op(std::initializer_list<Op> ops) {
  return {ops, [](const UOp& u) { return u->dtype == DType::Index; }};
}
// not(x), as logical_not spells it
inline bool is_not(const UOp& x) {
  return x->op == Op::CmpNe && x->dtype == DType::Bool && x->src(1)->is_const() &&
         x->src(1)->dtype == DType::Bool && x->src(1)->min == 1;
}

}  // namespace tuff::ir
