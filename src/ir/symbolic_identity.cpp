// Rules that need no bounds: constants, neutral elements, Where.
#include <algorithm>

#include "ir/scalar_eval.h"
#include "ir/symbolic_rules.h"

namespace tuff::ir {
namespace {

std::vector<Op> alu_ops() {
  std::vector<Op> out;
  for (size_t i = 0; i < op_rows().size(); i++) {
    if (is_alu(Op(i))) out.push_back(Op(i));
  }
  return out;
}

UOp fold(const Match& m) {
  const Node& n = *m.root;
  Scalar values[4];
  for (size_t i = 0; i < n.src_count; i++) {
    if (!n.src(i)->is_const()) return {};
    values[i] = n.src(i)->get<Scalar>();
  }
  const int64_t* word = std::get_if<int64_t>(&n.arg);
  return constant(eval_scalar(n.op, n.dtype, {values, n.src_count}, word ? *word : 0));
}

// Bounds that meet leave one value. A U64 may have lost its upper half in them.
UOp known_value(const Match& m) {
  const Node& n = *m.root;
  if (n.min != n.max || is_float(n.dtype) || n.dtype == DType::Void || n.dtype == DType::U64)
    return {};
  return constant(Scalar::of_int(n.dtype, n.min));
}

UOp zero_of(const UOp& x) { return constant(Scalar::of_int(x->dtype, 0)); }
bool not_float(const UOp& x) { return !is_float(x->dtype); }

UOp where_of_bools(const Match& m) {
  const UOp &c = m[0], &a = m[1], &b = m[2];
  if (a->dtype != DType::Bool) return {};
  if (a->is_const_int(1)) return alu(Op::Or, {c, b});
  if (a->is_const_int(0)) return logical_and(logical_not(c), b);
  if (b->is_const_int(0)) return logical_and(c, a);
  if (b->is_const_int(1)) return alu(Op::Or, {logical_not(c), a});
  return {};
}

}  // namespace

std::vector<Rule> identity_rules() {
  const Pat x = any(0), y = any(1), z = any(2);
  const auto where_pat = [](const Pat& c, const Pat& a, const Pat& b) {
    return op(Op::Where, {c, a, b});
  };
  return {
      {"const-fold", op_in(alu_ops(), 0), fold},
      {"known-value", op_in(alu_ops(), 0), known_value},
      {"mul-one", x * cst_is(1), [](const Match& m) { return m[0]; }},
      {"mul-zero", (x * cst_is(0)).when(not_float), [](const Match& m) { return zero_of(m[0]); }},
      {"add-zero", (x + cst_is(0)).when(not_float), [](const Match& m) { return m[0]; }},
      {"sub-zero", x - cst_is(0).when(not_float), [](const Match& m) { return m[0]; }},
      {"where-const", where_pat(cst(0), y, z),
       [](const Match& m) { return m[0]->min ? m[1] : m[2]; }},
      {"where-same", where_pat(x, y, y), [](const Match& m) { return m[1]; }},
      {"where-not", where_pat(op(Op::CmpNe, {x, cst_is(1).of(DType::Bool)}), y, z),
       [](const Match& m) { return where(m[0], m[2], m[1]); }},
      {"where-where-then", where_pat(x, where_pat(x, y, z), any(3)),
       [](const Match& m) { return where(m[0], m[1], m[3]); }},
      {"where-where-else", where_pat(x, y, where_pat(x, any(3), z)),
       [](const Match& m) { return where(m[0], m[1], m[2]); }},
      {"where-bools", where_pat(x, y, z), where_of_bools},
  };
}

}  // namespace tuff::ir
