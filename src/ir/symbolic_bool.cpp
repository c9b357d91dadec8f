// Logic on Bool: negations move inward to comparisons; conjunctions and disjunctions are flat, in
// canonical order, without repetition, contradiction or comparisons that others imply.
#include <algorithm>

#include "ir/linear_form.h"
#include "ir/symbolic_rules.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

bool is_bool(const UOp& u) { return u->dtype == DType::Bool; }
bool is_bool_compare(const UOp& u) { return is_bool(u->src(0)); }
// Shapes of the tensor floor may differ from literal to literal: left alone.
bool is_scalar_bool(const UOp& u) { return is_bool(u) && u->shape.empty(); }

UOp alias(const UOp& u) {
  const UOp &a = u->src(0), &b = u->src(1);
  switch (u->op) {
    case Op::Add:
    case Op::Max: return alu(Op::Or, {a, b});
    case Op::Mul: return logical_and(a, b);
    case Op::Sub:
    case Op::Xor: return alu(Op::CmpNe, {a, b});
    default: return logical_and(logical_not(a), b);  // a < b
  }
}

// Comparisons of a bool with a constant; operands in canonical order.
UOp compare_bools(const UOp& u) {
  const bool equal = u->op == Op::CmpEq;
  const UOp &a = u->src(0), &b = u->src(1);
  if (a == b) return bool_const(equal);
  if (a->is_const()) return make(u->op, DType::Bool, {b, a});
  if (b->is_const()) return (b->min == 1) == equal ? a : is_not(u) ? UOp() : logical_not(a);
  return compare_structure(a, b) > 0 ? make(u->op, DType::Bool, {b, a}) : UOp();
}

UOp push_not(const UOp& u) {
  const UOp& x = u->src(0);
  if (is_not(x)) return x->src(0);
  switch (x->op) {
    case Op::CmpLt: return x->src(0)->dtype == DType::Index ? lt(x->src(1), x->src(0) + 1) : UOp();
    case Op::CmpEq: return make(Op::CmpNe, DType::Bool, x->src());
    case Op::CmpNe: return make(Op::CmpEq, DType::Bool, x->src());
    case Op::And: return alu(Op::Or, {logical_not(x->src(0)), logical_not(x->src(1))});
    case Op::Or: return logical_and(logical_not(x->src(0)), logical_not(x->src(1)));
    default: return {};
  }
}

std::vector<UOp> literals(Op op, const UOp& u) {
  std::vector<UOp> out = chain_operands(op, u);
  std::sort(out.begin(), out.end(),
            [](const UOp& a, const UOp& b) { return compare_structure(a, b) < 0; });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

UOp chain(Op op, const std::vector<UOp>& all) {
  UOp out;
  for (const UOp& x : all) out = out ? make(op, DType::Bool, {out, x}) : x;
  return out ? out : bool_const(op == Op::And);
}

UOp order(const UOp& u) {
  const Op op = u->op;
  const bool absorbing = op == Op::Or;
  std::vector<UOp> all = literals(op, u), kept;
  for (const UOp& x : all) {
    if (!x->is_const())
      kept.push_back(x);
    else if ((x->min != 0) == absorbing)
      return x;
  }
  return chain(op, kept);
}

bool complements(const UOp& a, const UOp& b) {
  if (is_not(a) && a->src(0) == b) return true;
  if (is_not(b) && b->src(0) == a) return true;
  const bool eq_ne =
      (a->op == Op::CmpEq && b->op == Op::CmpNe) || (a->op == Op::CmpNe && b->op == Op::CmpEq);
  return eq_ne && a->src(0) == b->src(0) && a->src(1) == b->src(1);
}

UOp complement(const UOp& u) {
  const std::vector<UOp> all = literals(u->op, u);
  for (size_t i = 0; i < all.size(); i++) {
    for (size_t j = i + 1; j < all.size(); j++) {
      if (complements(all[i], all[j])) return bool_const(u->op == Op::Or);
    }
  }
  return {};
}

struct Bound {
  LinearForm f;  // f < 0
  size_t literal;
};

std::vector<Bound> bounds_among(const std::vector<UOp>& all) {
  std::vector<Bound> out;
  for (size_t i = 0; i < all.size(); i++) {
    if (all[i]->op != Op::CmpLt || all[i]->src(0)->dtype != DType::Index) continue;
    auto f = difference(all[i]->src(0), all[i]->src(1));
    if (f && !f->terms.empty()) out.push_back({std::move(*f), i});
  }
  return out;
}

// x<3 & x<5 is x<3; x<3 | x<5 is x<5.
UOp implied(const UOp& u) {
  const bool conjunction = u->op == Op::And;
  std::vector<UOp> all = literals(u->op, u);
  const std::vector<Bound> bounds = bounds_among(all);
  for (const Bound& a : bounds) {
    for (const Bound& b : bounds) {
      if (a.literal == b.literal || !same_terms(a.f, b.f)) continue;
      const size_t weaker = a.f.constant <= b.f.constant ? a.literal : b.literal;
      const size_t stronger = weaker == a.literal ? b.literal : a.literal;
      all.erase(all.begin() + std::ptrdiff_t(conjunction ? weaker : stronger));
      return chain(u->op, all);
    }
  }
  return {};
}

// T + j < 0 with -T + k < 0, that is k < T < -j: never both if nothing lies between; one of the two
// always if they overlap.
UOp opposed(const UOp& u) {
  const bool conjunction = u->op == Op::And;
  const std::vector<Bound> bounds = bounds_among(literals(u->op, u));
  for (size_t i = 0; i < bounds.size(); i++) {
    for (size_t j = i + 1; j < bounds.size(); j++) {
      if (!opposite_terms(bounds[i].f, bounds[j].f)) continue;
      const Wide below = -Wide(bounds[i].f.constant), above = bounds[j].f.constant;
      if (conjunction && above + 1 > below - 1) return bool_const(false);
      if (!conjunction && above < below) return bool_const(true);
    }
  }
  return {};
}

}  // namespace

std::vector<Rule> bool_rules() {
  const Roots junction{{Op::And, Op::Or}, is_scalar_bool};
  return {
      {"bool-alias", {{Op::Add, Op::Max, Op::Mul, Op::Sub, Op::Xor}, is_bool}, alias},
      {"bool-less", {{Op::CmpLt}, is_bool_compare}, alias},
      {"bool-compare", {{Op::CmpEq, Op::CmpNe}, is_bool_compare}, compare_bools},
      {"not-inward", {{Op::CmpNe}, is_not}, push_not},
      {"junction-order", junction, order},
      {"junction-complement", junction, complement},
      {"junction-implied", junction, implied},
      {"junction-opposed", junction, opposed},
  };
}

}  // namespace tuff::ir
