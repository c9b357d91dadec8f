// Rules that need no bounds: constants, neutral elements, Where.
#include "ir/scalar_eval.h"
#include "ir/symbolic_rules.h"

namespace tuff::ir {
namespace {

UOp fold(const UOp& u) {
  Scalar values[4];
  for (size_t i = 0; i < u->src_count; i++) {
    if (!u->src(i)->is_const()) return {};
    values[i] = u->src(i)->get<Scalar>();
  }
  return constant(eval_scalar(u->op, u->dtype, {values, u->src_count}, word_of(u->arg)));
}

// Bounds that meet leave one value. A U64 may have lost its upper half in them.
UOp known_value(const UOp& u) {
  const Node& n = *u;
  if (n.min != n.max || is_float(n.dtype) || n.dtype == DType::Void || n.dtype == DType::U64)
    return {};
  return constant(Scalar::of_int(n.dtype, n.min));
}

UOp zero_of(const UOp& x) { return constant(Scalar::of_int(x->dtype, 0)); }
bool not_float(const UOp& x) { return !is_float(x->dtype); }


// The other operand where one of them is this constant.
UOp beside(const UOp& u, double value) {
  for (const size_t i : {1, 0}) {
    const Node& c = *u->src(i);
    if (c.is_const() && c.get<Scalar>().as_double() == value) return u->src(1 - i);
  }
  return {};
}

UOp mul_one(const UOp& u) { return beside(u, 1); }
UOp mul_zero(const UOp& u) { return beside(u, 0) ? zero_of(u) : UOp(); }
UOp add_zero(const UOp& u) { return beside(u, 0); }
UOp sub_zero(const UOp& u) { return u->src(1)->is_const_int(0) ? u->src(0) : UOp(); }

// The rules of where(c, a, b).
UOp where_const(const UOp& u) {
  return u->src(0)->is_const() ? u->src(u->src(0)->min ? 1 : 2) : UOp();
}
UOp where_same(const UOp& u) { return u->src(1) == u->src(2) ? u->src(1) : UOp(); }
UOp where_not(const UOp& u) {
  return is_not(u->src(0)) ? where(u->src(0)->src(0), u->src(2), u->src(1)) : UOp();
}
// The choice that the same condition makes again, in its `branch`.
template <size_t branch>
UOp where_where(const UOp& u) {
  const UOp& inner = u->src(branch);
  if (inner->op != Op::Where || !(inner->src(0) == u->src(0))) return {};
  UOp src[] = {u->src(0), u->src(1), u->src(2)};
  src[branch] = inner->src(branch);
  return where(src[0], src[1], src[2]);
}
UOp where_bools(const UOp& u) {
  const UOp &c = u->src(0), &a = u->src(1), &b = u->src(2);
  if (a->dtype != DType::Bool) return {};
  if (a->is_const_int(1)) return alu(Op::Or, {c, b});
  if (a->is_const_int(0)) return logical_and(logical_not(c), b);
  if (b->is_const_int(0)) return logical_and(c, a);
  if (b->is_const_int(1)) return alu(Op::Or, {logical_not(c), a});
  return {};
}

}  // namespace

std::vector<Rule> identity_rules() {
  return {
      {"const-fold", Roots(is_alu), fold},
      {"known-value", Roots(is_alu), known_value},
      {"mul-one", {Op::Mul}, mul_one},
      {"mul-zero", {{Op::Mul}, not_float}, mul_zero},
      {"add-zero", {{Op::Add}, not_float}, add_zero},
      {"sub-zero", {{Op::Sub}, not_float}, sub_zero},
      {"where-const", {Op::Where}, where_const},
      {"where-same", {Op::Where}, where_same},
      {"where-not", {Op::Where}, where_not},
      {"where-where-then", {Op::Where}, where_where<1>},
      {"where-where-else", {Op::Where}, where_where<2>},
      {"where-bools", {Op::Where}, where_bools},
  };
}

}  // namespace tuff::ir
