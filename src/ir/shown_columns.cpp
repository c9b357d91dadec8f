#include "ir/shown_columns.h"

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"

namespace tuff::ir {

namespace {

constexpr double kHidden = -1e30;  // and less: what masks put where nothing is seen

// A whole number of the kernel's dtypes as an index; empty: it is made of something else.
UOp as_index(const UOp& x) {
  if (x->dtype == DType::Index) return x;
  if (x->is_const() && is_int(x->dtype)) return index_const(x->get<Scalar>().as_int());
  if (x->op == Op::Cast) return as_index(x->src(0));
  if (x->op != Op::Add && x->op != Op::Sub && x->op != Op::Mul) return {};
  const UOp a = as_index(x->src(0)), b = as_index(x->src(1));
  return a && b ? alu(x->op, {a, b}) : UOp();
}

// By how much the right side is above the left one, where the condition is true of numbers above 0.
UOp difference(const UOp& condition) {
  const UOp* less = condition->op == Op::CmpLt ? &condition : nullptr;
  int64_t more = 0;
  if (condition->op == Op::Or) {
    const UOp &a = condition->src(0), &b = condition->src(1);
    if (a->op != Op::CmpLt || b->op != Op::CmpEq || !(a->src(0) == b->src(0)) ||
        !(a->src(1) == b->src(1)))
      return {};
    less = &a, more = 1;
  }
  if (!less) return {};
  const UOp left = as_index((*less)->src(0)), right = as_index((*less)->src(1));
  return left && right ? right - left + more : UOp();
}

bool hides(const UOp& x) {
  return x->is_const() && is_float(x->dtype) && x->get<Scalar>().as_double() <= kHidden;
}

bool is_score(const UOp& x) {
  if (x->op == Op::Cast || x->op == Op::Neg) return is_score(x->src(0));
  if (x->op == Op::Mul && x->src(1)->is_const()) return is_score(x->src(0));
  return x->op == Op::Reduce && through_casts(x->src(0).get())->op == Op::Mul;
}

}  // namespace

ShownColumns shown_columns(const UOp& condition, bool is_true, const UOp& column) {
  UOp above = difference(condition);
  if (!above) return {};
  if (!is_true) above = index_const(1) - above;
  const std::optional<int64_t> step = coefficient(above, column);
  if (!step || (*step != 1 && *step != -1)) return {};
  const UOp rest = simplify(substitute(above, {{column, index_const(0)}}));
  if (*step == -1) return {{}, rest};
  return {simplify(index_const(1) - rest), {}};
}

ShownColumns shown_scores(const UOp& value, const UOp& column) {
  if (value->op != Op::Where) return {};
  const bool names_hidden = hides(value->src(1));
  if (!names_hidden && !hides(value->src(2))) return {};
  if (!is_score(value->src(names_hidden ? 2 : 1))) return {};
  return shown_columns(value->src(0), !names_hidden, column);
}

}  // namespace tuff::ir
