#include "sched/single_rows.h"

#include <algorithm>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/canonical.h"
#include "sched/loops.h"

namespace tuff::sched {

using namespace ir;

namespace {

UOpMap<UOp> least_values(const UOp& extent) {
  UOpMap<UOp> least;
  for (const Node* n : toposort(extent))
    if (n->op == Op::Variable) least[UOp(n)] = index_const(n->get<VariableArg>().min);
  return least;
}

// Elements of a factor that all rows of a product read: but for axes that the other walks too, which
// are batches of products.
int64_t matrix_elements(const UOp& factor, const std::vector<UOp>& rows_of_other) {
  int64_t n = 1;
  for (const UOp& r : ranges_below(factor, AxisKind::Loop))
    if (!contains(rows_of_other, r)) n *= r->src(0)->is_const() ? r->src(0)->const_int() : 1;
  for (const UOp& r : ranges_below(factor, AxisKind::Reduce))
    n *= r->src(0)->is_const() ? r->src(0)->const_int() : 1;
  return n;
}

// Whether `row` is the rows of a product with a matrix that is long enough.
bool has_matrix(const UOp& ast, const UOp& row) {
  return std::ranges::any_of(toposort(ast), [&](const Node* n) {
    if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) return false;
    const Node* product = through_casts(n->src(0).get());
    if (product->op != Op::Mul) return false;
    for (const int matrix : {0, 1}) {
      const UOp &w = product->src(size_t(matrix)), &x = product->src(size_t(1 - matrix));
      const std::vector<UOp> walked = ranges_below(x, AxisKind::Loop);
      if (contains(walked, row) && !contains(ranges_below(w, AxisKind::Loop), row) &&
          matrix_elements(w, walked) >= kSingleRowMatrix)
        return true;
    }
    return false;
  });
}

// What the variables are when there is one row; empty: the kernel is none of these.
UOpMap<UOp> single_row(const UOp& ast) {
  for (const UOp& r : ranges_below(ast, AxisKind::Loop)) {
    const UOp& extent = r->src(0);
    if (extent->is_const()) continue;
    UOpMap<UOp> least = least_values(extent);
    const UOp rows = simplify(substitute(extent, least));
    if (rows->is_const() && rows->const_int() == 1 && has_matrix(ast, r)) return least;
  }
  return {};
}

// The kernel where the variables have these values: axes of one element are gone.
UOp with_values(const UOp& ast, const UOpMap<UOp>& values) {
  const auto is_one = [](const UOp& u) { return u->is_const() && u->const_int() == 1; };
  const UOp out = map_bottom_up(substitute(ast, values), [&](const UOp& u) -> UOp {
    if (u->op == Op::Range) {
      const UOp size = simplify(u->src(0));
      const RangeArg& arg = u->get<RangeArg>();
      return is_one(size) ? index_const(0) : range(size, arg.id, arg.kind);
    }
    if (u->op == Op::End || u->op == Op::Reduce) {
      std::vector<UOp> src{u->src(0)};
      for (const UOp& r : closed_ranges(u.get()))
        if (r->op == Op::Range) src.push_back(r);
      return u->op == Op::Reduce && src.size() == 1 ? src[0] : with_src(u, src);
    }
    if (u->op == Op::Index) {
      const UOp gate = u->src_count > 2 ? simplify(u->src(2)) : UOp();
      const bool open = gate && gate->is_const() && gate->const_int() != 0;
      return make_index(u->src(0), simplify(u->src(1)), open ? UOp() : gate);
    }
    return {};
  });
  return canonicalize(out);
}

}  // namespace

void add_single_rows(Schedule& s, const TargetOf& target_of) {
  std::vector<Call> calls;
  for (Call& c : s.calls) {
    const bool may = c.kind == CallKind::Kernel && !target_of(c.device).has_local;
    const UOpMap<UOp> least = may ? single_row(c.ast) : UOpMap<UOp>{};
    if (!least.empty()) {
      UOp is_least = bool_const(true);
      for (const auto& [variable, value] : least)
        is_least = logical_and(is_least, lt(variable, index_const(value->const_int() + 1)));
      const auto runs = [&](int64_t then, int64_t otherwise) {
        return c.runs * Dim(simplify(where(is_least, index_const(then), index_const(otherwise))));
      };
      Call single = c;
      single.ast = with_values(c.ast, least);
      single.runs = runs(1, 0);
      calls.push_back(std::move(single));
      c.runs = runs(0, 1);
    }
    calls.push_back(std::move(c));
  }
  s.calls = std::move(calls);
}

}  // namespace tuff::sched
