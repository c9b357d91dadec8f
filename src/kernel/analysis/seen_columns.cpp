#include "kernel/analysis/seen_columns.h"

#include <algorithm>

#include "base/contains.h"
#include "ir/kept_rows.h"
#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "ir/shown_columns.h"
#include "ir/symbolic.h"
#include "kernel/analysis/kept_rows.h"

namespace tuff::kernel {

using namespace ir;

namespace {

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

// Where a value is 0, an element of a row for each element of this one, or a product of such.
ShownColumns nonzero(const UOp& value, const UOp& column) {
  const auto is_zero = [](const UOp& x) {
    return x->is_const() && is_float(x->dtype) && x->get<Scalar>().as_double() == 0;
  };
  switch (value->op) {
    case Op::Cast:
    case Op::Neg: return nonzero(value->src(0), column);
    case Op::Mul: {
      const ShownColumns first = nonzero(value->src(0), column);
      return first ? first : nonzero(value->src(1), column);
    }
    case Op::Where:
      if (is_zero(value->src(2))) return shown_columns(value->src(0), true, column);
      if (is_zero(value->src(1))) return shown_columns(value->src(0), false, column);
      return {};
    case Op::Load:
      if (const Node* fill = row_of(value); fill && value->src(0)->src(1) == column)
        return nonzero(fill->src(0)->src(1), fill->src(1));
      return {};
    default: return {};
  }
}

// Of sums, each of which closes one of the columns.
ShownColumns seen_by_sums(const std::vector<UOp>& sums, std::span<const UOp> columns) {
  ShownColumns out;
  for (const UOp& sum : sums) {
    if (sum->get<ReduceArg>().op != Op::Add) return {};
    ShownColumns own;
    for (const UOp& r : closed_ranges(sum.get()))
      if (contains(columns, r)) own = nonzero(sum->src(0), r);
    if (!own || (out && !(out == own))) return {};
    out = own;
  }
  return out;
}

// Row loops, each counted upwards.
bool grows_with_rows(const UOp& x, std::span<const UOp> columns) {
  return std::ranges::all_of(linear_form(x).terms, [&](const auto& term) {
    return term.first->op == Op::Range && term.second > 0 && !contains(columns, term.first);
  });
}

}  // namespace

ShownColumns seen_columns(const UOp& ast, std::span<const UOp> columns) {
  const auto sweep = one_sweep(ast, columns);
  if (!sweep) return {};
  ShownColumns seen;
  if (!sweep->max) {
    seen = seen_by_sums(sweep->others, columns);
  } else if (sweep->others.empty()) {
    const Node* fill = row_of_softmax(ast, sweep->max);
    if (!fill) return {};
    seen = shown_scores(fill->src(0)->src(1), fill->src(1));
    if (seen.begin || (seen && seen.end->min < 1)) return {};
  }
  for (const UOp& bound : {seen.begin, seen.end})
    if (bound && !grows_with_rows(bound, columns)) return {};
  return seen;
}

}  // namespace tuff::kernel
