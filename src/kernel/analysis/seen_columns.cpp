#include "kernel/analysis/seen_columns.h"

#include <algorithm>
#include <optional>

#include "base/contains.h"
#include "ir/kept_rows.h"
#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "ir/symbolic.h"
#include "kernel/analysis/kept_rows.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr double kHidden = -1e30;  // and less: what masks put where nothing is seen

// The row that a value is an element of; null: another value.
const Node* row_of(const UOp& value) { return fill_read_by(through_casts(value.get())); }

// The row whose maximum is subtracted, if each exponent is an element of it less that maximum,
// times a number above zero.
const Node* row_of_softmax(const UOp& ast, const UOp& max) {
  const Node* fill = row_of(max->src(0));
  for (const Node* n : toposort(ast)) {
    if (!fill || n->op != Op::Exp2) continue;
    UOp x = n->src(0);
    if (x->op == Op::Mul && x->src(1)->is_const()) {
      if (x->src(1)->get<Scalar>().as_double() <= 0) return nullptr;
      x = x->src(0);
    }
    const bool subtracts = x->op == Op::Sub && through_casts(x->src(1).get()) == max.get();
    if (subtracts ? row_of(x->src(0)) != fill : depends_on(x, max)) return nullptr;
  }
  return fill;
}

// A whole number of the kernel's dtypes as an index; empty: it is made of something else.
UOp as_index(const UOp& x) {
  if (x->dtype == DType::Index) return x;
  if (x->is_const() && is_int(x->dtype)) return index_const(x->get<Scalar>().as_int());
  if (x->op == Op::Cast) return as_index(x->src(0));
  if (x->op != Op::Add && x->op != Op::Sub && x->op != Op::Mul) return {};
  const UOp a = as_index(x->src(0)), b = as_index(x->src(1));
  return a && b ? alu(x->op, {a, b}) : UOp();
}

bool hides(const UOp& x) {
  return x->is_const() && is_float(x->dtype) && x->get<Scalar>().as_double() <= kHidden;
}

// How many columns are seen, each c for which it is true: c < x, or c < x or c == x.
UOp seen_by(const UOp& condition, const UOp& column) {
  const auto compares = [&](const UOp& c, Op op) {
    return c->op == op && through_casts(c->src(0).get()) == column.get();
  };
  if (compares(condition, Op::CmpLt)) return as_index(condition->src(1));
  if (condition->op != Op::Or) return {};
  const UOp &less = condition->src(0), &equal = condition->src(1);
  if (!compares(less, Op::CmpLt) || !compares(equal, Op::CmpEq) ||
      !(less->src(1) == equal->src(1)))
    return {};
  const UOp last = as_index(less->src(1));
  return last ? last + 1 : UOp();
}

// The same where it is true of those that are hidden: x < c.
UOp seen_unless(const UOp& condition, const UOp& column) {
  if (condition->op != Op::CmpLt || through_casts(condition->src(1).get()) != column.get())
    return {};
  const UOp last = as_index(condition->src(0));
  return last ? last + 1 : UOp();
}

// A sum of products and factors of it: beyond any mask's number, so that where one column is seen,
// what is hidden weighs nothing.
bool is_score(const UOp& x) {
  if (x->op == Op::Cast || x->op == Op::Neg) return is_score(x->src(0));
  if (x->op == Op::Mul && x->src(1)->is_const()) return is_score(x->src(0));
  return x->op == Op::Reduce && through_casts(x->src(0).get())->op == Op::Mul;
}

// Row loops, each counted upwards.
bool grows_with_rows(const UOp& x, std::span<const UOp> columns) {
  return std::ranges::all_of(linear_form(x).terms, [&](const auto& term) {
    return term.first->op == Op::Range && term.second > 0 && !contains(columns, term.first);
  });
}

}  // namespace

UOp seen_columns(const UOp& ast, std::span<const UOp> columns) {
  const auto sweep = one_sweep(ast, columns);
  if (!sweep || !sweep->max || !sweep->others.empty()) return {};
  const Node* fill = row_of_softmax(ast, sweep->max);
  if (!fill) return {};
  const UOp& value = fill->src(0)->src(1);
  if (value->op != Op::Where || (!hides(value->src(1)) && !hides(value->src(2)))) return {};
  const bool names_hidden = hides(value->src(1));
  const UOp &column = fill->src(1), &condition = value->src(0);
  const UOp seen = names_hidden ? seen_unless(condition, column) : seen_by(condition, column);
  if (!seen || !is_score(value->src(names_hidden ? 2 : 1))) return {};
  const UOp count = simplify(seen);
  return count->min >= 1 && grows_with_rows(count, columns) ? count : UOp();
}

}  // namespace tuff::kernel
