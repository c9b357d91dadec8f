// Comparisons of Index values: x < y is read as a form that is below zero. And the larger of two.
#include <algorithm>
#include <numeric>

#include "ir/linear_form.h"
#include "ir/symbolic_rules.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

bool on_index(const UOp& u) { return u->src(0)->dtype == DType::Index; }

std::optional<LinearForm> form_of_compare(const UOp& u) { return difference(u->src(0), u->src(1)); }

// The two sides of f (relation) 0 with positive coefficients on both, the constant on the right
// unless the left would be empty.
std::pair<UOp, UOp> sides(const LinearForm& f) {
  LinearForm left, right;
  for (const auto& [t, a] : f.terms) (a > 0 ? left : right).terms.push_back({t, a > 0 ? a : -a});
  if (left.terms.empty())
    left.constant = f.constant;
  else
    right.constant = -f.constant;
  return {from_linear_form(left), from_linear_form(right)};
}

UOp spelled(Op op, const LinearForm& f) {
  const auto [left, right] = sides(f);
  return make(op, DType::Bool, {left, right});
}

UOp lt_bounds(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f) return {};
  const Interval i = tight_interval(*f);
  if (i.hi < 0) return bool_const(true);
  return i.lo >= 0 ? bool_const(false) : UOp();
}

// g*A + B < 0 is A + j < 0 where j*g <= B < (j+1)*g.
std::optional<LinearForm> lt_factored(const LinearForm& f, int64_t g) {
  LinearForm a, b;
  b.constant = f.constant;
  for (const auto& [t, c] : f.terms) {
    if (c % g == 0)
      a.terms.push_back({t, c / g});
    else
      b.terms.push_back({t, c});
  }
  const Interval i = tight_interval(b);
  if (a.terms.empty() || !is_finite(i)) return std::nullopt;
  a.constant = floor_div(int64_t(i.lo), g);
  if (a.constant != floor_div(int64_t(i.hi), g)) return std::nullopt;
  return a;
}

UOp lt_factor(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f) return {};
  std::vector<int64_t> candidates;
  int64_t all = 0;
  for (const auto& [t, c] : f->terms) {
    if (c == INT64_MIN) return {};
    all = std::gcd(all, c);
    candidates.push_back(c < 0 ? -c : c);
  }
  candidates.push_back(all);
  std::sort(candidates.rbegin(), candidates.rend());
  for (int64_t g : candidates) {
    if (g <= 1) break;
    if (const auto a = lt_factored(*f, g)) return spelled(Op::CmpLt, *a);
  }
  return {};
}

// x//c + k < 0 is x + k*c < 0; and k - x//c < 0 is (k+1)*c - 1 - x < 0.
UOp lt_div(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f || f->terms.size() != 1 || f->constant == INT64_MAX) return {};
  const auto& [t, a] = f->terms[0];
  if ((a != 1 && a != -1) || t->op != Op::FloorDiv || !t->src(1)->is_const() ||
      t->src(1)->const_int() <= 0)
    return {};
  LinearForm out;
  int64_t bound;
  if (__builtin_mul_overflow(f->constant + (a < 0), t->src(1)->const_int(), &bound)) return {};
  if (!add_scaled(out, t->src(0), a)) return {};
  if (__builtin_add_overflow(out.constant, bound - (a < 0), &out.constant)) return {};
  return spelled(Op::CmpLt, out);
}

// x % c < k, where x is congruent to a form that never comes below k - c nor up to c: what is
// negative there has a remainder of k at least. So a remainder becomes the bounds of a sum, as in
// the gradient of overlapping windows.
UOp lt_mod(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f || f->terms.size() != 1 || f->terms[0].second != 1) return {};
  const UOp& t = f->terms[0].first;
  if (t->op != Op::FloorMod || !t->src(1)->is_const()) return {};
  const int64_t c = t->src(1)->const_int();
  const auto x = form_of(t->src(0));
  if (!x || c <= 0 || f->constant >= 0 || f->constant <= -c) return {};
  const int64_t k = -f->constant;
  LinearForm rest;
  rest.constant = x->constant;
  for (const auto& [term, a] : x->terms) {
    const int64_t residue = floor_mod(a, c), other = residue > c / 2 ? residue - c : residue;
    if (other) rest.terms.push_back({term, other});
  }
  const Interval i = tight_interval(rest);
  if (!is_finite(i) || i.lo < k - c || i.hi >= c) return {};
  const UOp v = from_linear_form(rest);
  return logical_and(lt(index_const(-1), v), lt(v, index_const(k)));
}

UOp lt_spelling(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f || f->constant == INT64_MIN) return {};
  const auto [left, right] = sides(*f);
  return left == u->src(0) && right == u->src(1)
             ? UOp()
             : make(Op::CmpLt, DType::Bool, {left, right});
}

UOp eq_bounds(const UOp& u) {
  const auto f = form_of_compare(u);
  if (!f) return {};
  const bool if_equal = u->op == Op::CmpEq;
  if (f->terms.empty()) return bool_const((f->constant == 0) == if_equal);
  const Interval i = tight_interval(*f);
  if (i.hi < 0 || i.lo > 0) return bool_const(!if_equal);
  int64_t g = 0;
  for (const auto& [t, c] : f->terms) g = std::gcd(g, c);
  return f->constant % g ? bool_const(!if_equal) : UOp();
}

// Divided by the common factor, the first term on the left.
UOp eq_spelling(const UOp& u) {
  auto f = form_of_compare(u);
  if (!f || f->terms.empty() || f->constant == INT64_MIN) return {};
  int64_t g = 0;
  for (const auto& [t, c] : f->terms) g = std::gcd(g, c);
  if (f->constant % g) return {};
  const int64_t d = f->terms[0].second < 0 ? -g : g;
  for (auto& [t, c] : f->terms) c /= d;
  f->constant /= d;
  const auto [left, right] = sides(*f);
  return left == u->src(0) && right == u->src(1)
             ? UOp()
             : make(u->op, DType::Bool, {left, right});
}

UOp max_bounds(const UOp& u) {
  const UOp &x = u->src(0), &y = u->src(1);
  const auto f = difference(x, y);
  if (!f) return {};
  const Interval i = tight_interval(*f);
  return i.lo >= 0 ? x : i.hi <= 0 ? y : UOp();
}

// Operands in canonical order, each once, at most one constant and that last.
UOp max_order(const UOp& u) {
  std::vector<UOp> all = chain_operands(Op::Max, u);
  std::sort(all.begin(), all.end(), [](const UOp& a, const UOp& b) {
    if (a->is_const() != b->is_const()) return b->is_const();
    return a->is_const() ? a->min > b->min : compare_structure(a, b) < 0;
  });
  all.erase(std::unique(all.begin(), all.end(),
                        [](const UOp& a, const UOp& b) {
                          return a == b || (a->is_const() && b->is_const());
                        }),
            all.end());
  UOp out = all[0];
  for (size_t i = 1; i < all.size(); i++) out = make(Op::Max, DType::Index, {out, all[i]});
  return out;
}

}  // namespace

std::vector<Rule> compare_rules() {
  const Roots less{{Op::CmpLt}, on_index}, equal{{Op::CmpEq, Op::CmpNe}, on_index};
  return {
      {"lt-bounds", less, lt_bounds},
      {"lt-factor", less, lt_factor},
      {"lt-div", less, lt_div},
      {"lt-mod", less, lt_mod},
      {"lt-spelling", less, lt_spelling},
      {"eq-bounds", equal, eq_bounds},
      {"eq-spelling", equal, eq_spelling},
      {"max-bounds", index_op({Op::Max}), max_bounds},
      {"max-order", index_op({Op::Max}), max_order},
  };
}

}  // namespace tuff::ir
