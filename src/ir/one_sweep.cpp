#include "ir/one_sweep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/contains.h"
#include "ir/kept_rows.h"
#include "ir/kernel_floor.h"

namespace tuff::ir {

namespace {

const UOp& value_of(const Node* fill) { return fill->src(0)->src(1); }

// The End by which a workgroup fills what an Index names an element of; null: another memory.
const Node* shared_fill(const Node* index) {
  if (index->op != Op::Index) return nullptr;
  const Node* memory = index->src(0).get();
  if (memory->op != Op::After || memory->src(1)->op != Op::Barrier) return nullptr;
  const Node* barrier = memory->src(1).get();
  const bool fills = barrier->src_count == 1 && barrier->src(0)->op == Op::End;
  return fills ? barrier->src(0).get() : nullptr;
}

bool is_zero(const UOp& x) { return x->is_const() && x->get<Scalar>().as_double() == 0; }

// How often a factor stands in a value: the power of it that the value is proportional to.
class Power {
 public:
  // Of nodes for which is_factor; what is below others that `is_below` names is looked into.
  Power(std::function<bool(const Node*)> is_factor, std::function<bool(const Node*)> is_below)
      : is_factor_(std::move(is_factor)), is_below_(std::move(is_below)) {}

  // Nothing where it is not proportional.
  std::optional<int> of(const UOp& u) {
    if (const auto it = known_.find(u.get()); it != known_.end()) return it->second;
    const std::optional<int> n = compute(u);
    known_.emplace(u.get(), n);
    return n;
  }

 private:
  std::optional<int> compute(const UOp& u) {
    if (is_factor_(u.get())) return 1;
    if (!is_below_(u.get())) return 0;
    switch (u->op) {
      case Op::Mul:
      case Op::MatrixMulAdd: return sum(of(u->src(0)), of(u->src(1)));
      case Op::Neg: return of(u->src(0));
      case Op::Cast:
        return is_float(u->dtype) && is_float(u->src(0)->dtype) ? of(u->src(0)) : std::nullopt;
      case Op::Add:
      case Op::Sub: return alike(u->src(0), u->src(1));
      case Op::Where:
        return is_below_(u->src(0).get()) ? std::nullopt : alike(u->src(1), u->src(2));
      case Op::Load: {
        const Node* fill = fill_read_by(u.get());
        if (!fill) fill = shared_fill(u->src(0).get());
        return fill ? of(value_of(fill)) : std::nullopt;
      }
      case Op::MatrixLoad: {
        const Node* fill = shared_fill(u->src(0).get());
        return fill ? of(value_of(fill)) : std::nullopt;
      }
      default: return {};
    }
  }
  static std::optional<int> sum(std::optional<int> a, std::optional<int> b) {
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  std::optional<int> alike(const UOp& x, const UOp& y) {
    if (is_zero(x)) return of(y);
    if (is_zero(y) || of(x) == of(y)) return of(x);
    return {};
  }

  std::function<bool(const Node*)> is_factor_, is_below_;
  std::map<const Node*, std::optional<int>> known_;
};

bool reduces(const Node* n, std::span<const UOp> ranges) {
  return n->op == Op::Reduce && std::ranges::any_of(closed_ranges(n), [&](const UOp& r) {
           return contains(ranges, r);
         });
}

// What an Exp2 takes: a difference, perhaps times a number.
struct Exponent {
  UOp difference, factor;  // empty: 1
};
Exponent exponent_of(const Node* exp2) {
  const UOp& x = exp2->src(0);
  if (x->op != Op::Mul) return {x, {}};
  for (const size_t s : {0, 1})
    if (x->src(s)->is_const()) return {x->src(1 - s), x->src(s)};
  return {x, {}};
}
// Of something less the maximum.
bool is_exponential(const Node* n, const UOp& max) {
  if (n->op != Op::Exp2) return false;
  const UOp x = exponent_of(n).difference;
  return x->op == Op::Sub && x->src(1) == max && !depends_on(x->src(0), max);
}
// Whether both change alike with the maximum.
bool scale_alike(const Node* x, const Node* y) {
  return x->dtype == y->dtype && x->arg == y->arg &&
         exponent_of(x).factor == exponent_of(y).factor;
}

}  // namespace

UOp OneSweep::scale(const UOp& before, const UOp& after) const {
  const UOp difference = make(Op::Sub, before->dtype, {before, after});
  return substitute(exponential, {{exponent_of(exponential.get()).difference, difference}});
}

std::optional<std::vector<UOp>> columns_of_rows(const UOp& ast) {
  std::vector<UOp> out;
  const std::vector<const Node*> all = toposort(ast);
  for (const Node* n : all) {
    if (n->op != Op::Index || without_after(n->src(0).get())->op != Op::Shared) continue;
    if (n->src(1)->op != Op::Range || n->src_count > 2) return {};
    add_once(out, n->src(1));
  }
  for (const Node* n : all) {
    const auto is_column = [&](const UOp& r) { return contains(out, r); };
    if (n->op == Op::Reduce && std::ranges::count_if(closed_ranges(n), is_column) > 1) return {};
  }
  return out;
}

std::optional<OneSweep> one_sweep(const UOp& ast, std::span<const UOp> ranges) {
  std::vector<UOp> all;
  for (const Node* n : toposort(ast)) {
    if (reduces(n, ranges)) all.emplace_back(n);
  }
  OneSweep out;
  for (const UOp& r : all) {
    std::vector<UOp> below;
    for (const Node* n : toposort(r->src(0))) {
      if (reduces(n, ranges)) below.emplace_back(n);
    }
    if (below.empty()) {
      out.others.push_back(r);
      continue;
    }
    if (below.size() > 1 || (out.max && !(below[0] == out.max))) return {};
    out.max = below[0];
    out.scaled.push_back(r);
  }
  if (!out.max) return out;
  std::erase(out.others, out.max);
  if (out.max->get<ReduceArg>().op != Op::Max || !is_float(out.max->dtype)) return {};
  for (const UOp& r : out.scaled) {
    std::set<const Node*> above;  // the maximum and what needs it
    for (const Node* n : toposort(r->src(0))) {
      const bool needs = n == out.max.get() || std::ranges::any_of(n->src(), [&](const UOp& s) {
                           return above.contains(s.get());
                         });
      if (needs) above.insert(n);
      if (!is_exponential(n, out.max)) continue;
      if (out.exponential && !scale_alike(n, out.exponential.get())) return {};
      out.exponential = UOp(n);
    }
    Power power([&](const Node* n) { return is_exponential(n, out.max); },
                [&](const Node* n) { return above.contains(n); });
    if (r->get<ReduceArg>().op != Op::Add || power.of(r->src(0)) != 1) return {};
  }
  return out;
}

namespace {

// Whether a value depends on a range that nothing in it closes.
bool is_open(const UOp& range, const UOp& x) {
  const auto enters = [&](const Node* n) {
    return (n->op != Op::Reduce && n->op != Op::End) || !contains(closed_ranges(n), range);
  };
  return contains(toposort_gated({&x, 1}, enters), range.get());
}

// A value as what varies along a row times what does not.
struct Factored {
  UOp inside, outside;  // empty: one
};
UOp product(const UOp& x, const UOp& y) { return !x ? y : !y ? x : alu(Op::Mul, {x, y}); }

// What is narrowed and widened again: that; empty: another value.
UOp rounded(const UOp& x) {
  const bool rounds = x->op == Op::Cast && x->src(0)->op == Op::Cast && is_float(x->dtype) &&
                      is_float(x->src(0)->dtype) && x->src(0)->src(0)->dtype == x->dtype;
  return rounds ? x->src(0)->src(0) : UOp();
}

// Whether it is at most 0: what is subtracted is the row's own maximum, over `column`.
bool is_never_positive(const UOp& u, const UOp& column) {
  if (u->op == Op::Mul) {
    for (const size_t i : {size_t(0), size_t(1)})
      if (u->src(i)->is_const() && u->src(i)->get<Scalar>().as_double() >= 0)
        return is_never_positive(u->src(1 - i), column);
    return false;
  }
  const bool adds = u->op == Op::Add && u->src(1)->op == Op::Neg;
  if (u->op != Op::Sub && !adds) return false;
  const UOp& max = adds ? u->src(1)->src(0) : u->src(1);
  return max->op == Op::Reduce && max->get<ReduceArg>().op == Op::Max && max->src_count == 2 &&
         substitute(max->src(0), {{max->src(1), column}}) == u->src(0);
}

// What it is at most in size, whatever it is made of; empty: not known.
std::optional<double> largest(const UOp& u, const UOp& column) {
  const auto of = [&](size_t i) { return largest(u->src(i), column); };
  switch (u->op) {
    case Op::Const: return std::abs(u->get<Scalar>().as_double());
    case Op::Exp2:
      return is_never_positive(u->src(0), column) ? std::optional(1.0) : std::nullopt;
    case Op::Cast: return u->src(0)->dtype == DType::Bool ? std::optional(1.0) : of(0);
    case Op::Mul:
    case Op::Where: {
      const bool chooses = u->op == Op::Where;
      const auto x = of(chooses ? 1 : 0), y = of(chooses ? 2 : 1);
      if (!x || !y) return {};
      return chooses ? std::max(*x, *y) : *x * *y;
    }
    default: return {};
  }
}

// Factors that hold a reduction, and none of these ranges, go outside. Out of a rounding only where
// what stays is known to be no number that a narrow float cannot hold, as powers of what lies below
// the row's maximum are: without the factor others overflow, or are all rounded to 0.
Factored factored(const UOp& u, std::span<const UOp> own) {
  const auto walks = [&](const UOp& x) {
    return std::ranges::any_of(own, [&](const UOp& r) { return is_open(r, x); });
  };
  if (u->op == Op::Mul) {
    const Factored x = factored(u->src(0), own), y = factored(u->src(1), own);
    if (x.outside || y.outside)
      return {product(x.inside, y.inside), product(x.outside, y.outside)};
  }
  if (const UOp x = rounded(u)) {
    constexpr double kMost = 1024;  // a dropout's scale included
    const Factored f = factored(x, own);
    const auto most = f.inside && own.size() == 1 ? largest(f.inside, own[0]) : std::nullopt;
    if (f.outside && most && *most <= kMost)
      return {cast(cast(f.inside, u->src(0)->dtype), u->dtype), f.outside};
  }
  const std::vector<const Node*> below = toposort(u);
  const bool sums = std::ranges::any_of(below, [](const Node* n) { return n->op == Op::Reduce; });
  if (sums && !walks(u)) return {{}, u};
  return {u, {}};
}

// The sums that read a row, each as one factor of what it adds up; nothing where something else
// reads it.
std::optional<std::vector<UOp>> sums_of(const UOp& ast, const Node* fill) {
  std::set<const Node*> above;
  const auto is_load = [&](const Node* n) { return fill_read_by(n) == fill; };
  std::vector<UOp> sums;
  for (const Node* n : toposort(ast)) {
    const auto needs = [&](const UOp& s) { return above.contains(s.get()); };
    if (is_load(n)) {
      above.insert(n);
    } else if (std::ranges::any_of(n->src(), needs)) {
      if (n->op == Op::End || n->op == Op::Store) return {};
      if (n->op == Op::Reduce) {
        if (n->get<ReduceArg>().op != Op::Add || needs(n->src(1))) return {};
        sums.emplace_back(n);
      } else {
        above.insert(n);
      }
    }
  }
  Power power(is_load, [&](const Node* n) { return above.contains(n); });
  for (const UOp& r : sums)
    if (power.of(r->src(0)) != 1) return {};
  return sums;
}

std::vector<const Node*> fills_of(const UOp& ast) {
  std::set<const Node*> seen;
  std::vector<const Node*> out;
  for (const Node* n : toposort(ast)) {
    const Node* fill = fill_read_by(n);
    if (fill && fill->src_count == 2 && seen.insert(fill).second) out.push_back(fill);
  }
  return out;
}

// One row's; empty: there is none, or something keeps it.
UOp with_factor_outside(const UOp& ast, const Node* fill) {
  const Factored f = factored(value_of(fill), closed_ranges(fill));
  if (!f.outside || !f.inside) return {};
  const auto sums = sums_of(ast, fill);
  if (!sums) return {};
  const UOp store = fill->src(0);
  const UOp plain = make_end(make_store(store->src(0), f.inside), closed_ranges(fill));
  UOpMap<UOp> scaled;
  for (const UOp& r : *sums)
    scaled.emplace(r, alu(Op::Mul, {substitute(r, {{UOp(fill), plain}}), f.outside}));
  return substitute(ast, scaled);
}

// What the terms of a sum have in common.
UOp with_sum_factor_outside(const UOp& ast) {
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add || !is_float(n->dtype)) continue;
    const Factored f = factored(n->src(0), closed_ranges(n));
    if (!f.outside || !f.inside) continue;
    std::vector<UOp> src{f.inside};
    src.insert(src.end(), n->src().begin() + 1, n->src().end());
    return substitute(ast, {{UOp(n), alu(Op::Mul, {with_src(UOp(n), src), f.outside})}});
  }
  return {};
}

// Sums of what a row is filled with read it there.
UOp with_rows_read(const UOp& ast) {
  UOpMap<UOp> read;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Reduce || n->src_count != 2) continue;
    for (const Node* fill : fills_of(ast)) {
      const UOp &column = fill->src(1), &own = n->src(1);
      if (!(column->src(0) == own->src(0)) || contains(toposort(UOp(fill)), n)) continue;
      if (value_of(fill)->op == Op::Reduce || !(fill->src(0)->src(0)->src(1) == column)) continue;
      // Of rounded numbers: then quotients by their sum add up to one.
      const UOp whole = rounded(value_of(fill)), value = whole ? whole : value_of(fill);
      if (!(substitute(value, {{column, own}}) == n->src(0))) continue;
      const UOp row = make_after(fill->src(0)->src(0)->src(0), {UOp(fill)});
      const UOp element = make_load(make_index(row, own));
      read.emplace(UOp(n), make(Op::Reduce, n->dtype, {element, own}, n->arg));
      break;
    }
  }
  return read.empty() ? ast : substitute(ast, read);
}

}  // namespace

UOp with_factors_outside(const UOp& ast) {
  UOp out = ast;
  if (fills_of(ast).empty()) return ast;
  while (const UOp made = with_sum_factor_outside(out)) out = made;
  for (bool again = true; again;) {
    again = false;
    for (const Node* fill : fills_of(out)) {
      const UOp made = with_factor_outside(out, fill);
      if (!made) continue;
      out = made;
      again = true;
      break;
    }
  }
  return with_rows_read(out);
}

}  // namespace tuff::ir
