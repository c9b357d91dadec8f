// Floor division and remainder. Every rule is a Split of the dividend that serves both:
//   x // c == quotient + div_scale * (inner // divisor)
//   x %  c == remainder + mod_scale * (inner % divisor)
// so that x//c*c + x%c stays recognizable as x whichever rules were applied to the two halves.
#include <algorithm>
#include <numeric>

#include "ir/linear_form.h"
#include "ir/symbolic_rules.h"

namespace tuff::ir {
namespace {

struct Split {
  LinearForm quotient, remainder;
  LinearForm inner;  // unused where the scales are 0
  int64_t divisor = 1;
  int64_t div_scale = 0, mod_scale = 0;
};
using Step = std::optional<Split> (*)(const LinearForm& f, int64_t c);

// Everything between two multiples of c: the quotient is a constant.
std::optional<Split> bounded(const LinearForm& f, int64_t c) {
  const Interval i = tight_interval(f);
  if (!is_finite(i)) return std::nullopt;
  const int64_t k = floor_div(int64_t(i.lo), c);
  if (k != floor_div(int64_t(i.hi), c)) return std::nullopt;
  Split s;
  s.quotient.constant = k;
  s.remainder = f;
  if (__builtin_sub_overflow(f.constant, k * c, &s.remainder.constant)) return std::nullopt;
  return s;
}

// One term with two values, t0 and t0+1: the quotient is a straight line through both of its own.
std::optional<Split> two_valued(const LinearForm& f, int64_t c) {
  if (f.terms.size() != 1) return std::nullopt;
  const auto& [t, a] = f.terms[0];
  const Wide low = Wide(a) * t->min + f.constant, high = low + a;
  const bool fits = std::max(low, high) < INT64_MAX / 4 && std::min(low, high) > INT64_MIN / 4;
  if (t->min == INT64_MIN || t->max != t->min + 1 || !fits) return std::nullopt;
  const int64_t at_low = floor_div(int64_t(low), c), step = floor_div(int64_t(high), c) - at_low;
  Split s;
  if (step != 0) s.quotient.terms.push_back({t, step});
  if (__builtin_sub_overflow(at_low, step * t->min, &s.quotient.constant)) return std::nullopt;
  s.remainder = f;
  if (!add_scaled(s.remainder, s.quotient, -c)) return std::nullopt;
  return s;
}

// Multiples of c leave the dividend; what stays of a coefficient keeps its sign.
std::optional<Split> congruent(const LinearForm& f, int64_t c) {
  Split s;
  for (const auto& [t, a] : f.terms) {
    if (a / c) s.quotient.terms.push_back({t, a / c});
    if (a % c) s.inner.terms.push_back({t, a % c});
  }
  s.quotient.constant = floor_div(f.constant, c);
  s.inner.constant = floor_mod(f.constant, c);
  if (s.quotient.terms.empty() && s.quotient.constant == 0) return std::nullopt;
  s.divisor = c;
  s.div_scale = s.mod_scale = 1;
  return s;
}

// As congruent, but with the other residue (a-c for a) where it is smaller, if that bounds the
// rest.
std::optional<Split> other_residue(const LinearForm& f, int64_t c) {
  LinearForm quotient, rest;
  rest.constant = f.constant;
  for (const auto& [t, a] : f.terms) {
    const int64_t magnitude = a < 0 ? -a : a, sign = a < 0 ? -1 : 1;
    const int64_t q = magnitude < c && magnitude > c / 2 ? sign : 0;
    if (q) quotient.terms.push_back({t, q});
    rest.terms.push_back({t, a - q * c});
  }
  if (quotient.terms.empty()) return std::nullopt;
  auto s = bounded(rest, c);
  if (!s) return std::nullopt;
  quotient.constant = s->quotient.constant;
  s->quotient = std::move(quotient);
  return s;
}

// f = g*A + B with 0 <= B - j*g < g throughout: then f//c = (A+j)//(c/g).
std::optional<Split> factored(const LinearForm& f, int64_t c, int64_t g) {
  Split s;
  LinearForm& b = s.remainder;
  b.constant = f.constant;
  for (const auto& [t, a] : f.terms) {
    if (a % g == 0)
      s.inner.terms.push_back({t, a / g});
    else
      b.terms.push_back({t, a});
  }
  const Interval i = tight_interval(b);
  if (s.inner.terms.empty() || !is_finite(i)) return std::nullopt;
  const int64_t j = floor_div(int64_t(i.lo), g);
  if (j != floor_div(int64_t(i.hi), g)) return std::nullopt;
  b.constant -= j * g;
  s.inner.constant = j;
  s.divisor = c / g;
  s.div_scale = 1;
  s.mod_scale = g;
  return s;
}

std::optional<Split> by_gcd(const LinearForm& f, int64_t c) {
  int64_t g = c;
  for (const auto& [t, a] : f.terms) g = std::gcd(g, a);
  return g > 1 && !f.terms.empty() ? factored(f, c, g) : std::nullopt;
}

std::optional<Split> by_factor(const LinearForm& f, int64_t c) {
  std::vector<int64_t> candidates;
  for (const auto& [t, a] : f.terms) candidates.push_back(std::gcd(a, c));
  std::sort(candidates.rbegin(), candidates.rend());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (int64_t g : candidates) {
    if (g <= 1 || g >= c) continue;
    if (auto s = factored(f, c, g)) return s;
  }
  return std::nullopt;
}

// (k - P)//c = -((P + c-1-k)//c): a dividend of negative terms alone turns positive.
std::optional<Split> negated(const LinearForm& f, int64_t c) {
  const bool negative =
      std::all_of(f.terms.begin(), f.terms.end(), [](const auto& t) { return t.second < 0; });
  if (f.terms.empty() || !negative || f.constant < 0 || f.constant >= c) return std::nullopt;
  Split s;
  if (!add_scaled(s.inner, f, -1)) return std::nullopt;
  s.inner.constant += c - 1;
  s.remainder.constant = c - 1;
  s.divisor = c;
  s.div_scale = s.mod_scale = -1;
  return s;
}

// A remainder by d inside one by c with c | a*d: a*(x%d) is a*x modulo c.
UOp without_inner_mod(const LinearForm& f, int64_t c) {
  LinearForm out;
  out.constant = f.constant;
  bool changed = false;
  for (const auto& [t, a] : f.terms) {
    int64_t step;
    const bool drop = t->op == Op::FloorMod && t->src(1)->is_const() && t->src(1)->min > 0 &&
                      !__builtin_mul_overflow(a, t->src(1)->const_int(), &step) && step % c == 0;
    changed |= drop;
    if (!(drop ? add_scaled(out, t->src(0), a) : add_term(out, t, a))) return {};
  }
  return changed ? floormod(from_linear_form(out), c) : UOp();
}

struct Operands {
  LinearForm f;
  int64_t c;
};
// Dividend and constant divisor, unless the dividend may leave 64 bits (nothing is known then).
std::optional<Operands> operands(const UOp& u) {
  const UOp& d = u->src(1);
  if (!d->is_const() || d->const_int() <= 0) return std::nullopt;
  auto f = form_of(u->src(0));
  if (!f) return std::nullopt;
  return Operands{std::move(*f), d->const_int()};
}

UOp build(const Split& s, bool div) {
  LinearForm out = div ? s.quotient : s.remainder;
  const int64_t scale = div ? s.div_scale : s.mod_scale;
  if (!scale) return from_linear_form(out);
  const UOp inner = from_linear_form(s.inner);
  const UOp part = div ? floordiv(inner, s.divisor) : floormod(inner, s.divisor);
  return add_scaled(out, part, scale) ? from_linear_form(out) : UOp();
}

template <Step step, bool div>
UOp apply_step(const UOp& u) {
  const auto o = operands(u);
  if (!o) return {};
  const auto s = step(o->f, o->c);
  return s ? build(*s, div) : UOp();
}

// (x//a + k)//b = (x + k*a)//(a*b)
UOp div_of_div(const UOp& u) {
  const auto o = operands(u);
  if (!o || o->f.terms.size() != 1 || o->f.terms[0].second != 1) return {};
  const UOp& t = o->f.terms[0].first;
  if (t->op != Op::FloorDiv || !t->src(1)->is_const() || t->src(1)->const_int() <= 0) return {};
  const int64_t a = t->src(1)->const_int();
  int64_t ab, ka;
  if (__builtin_mul_overflow(a, o->c, &ab) || __builtin_mul_overflow(a, o->f.constant, &ka))
    return {};
  return floordiv(t->src(0) + ka, ab);
}

// (x % (a*b)) // a = (x//a) % b
UOp div_of_mod(const UOp& u) {
  const UOp &t = u->src(0), &a = u->src(1);
  if (!a->is_const() || t->op != Op::FloorMod || !t->src(1)->is_const() || a->const_int() <= 0)
    return {};
  const int64_t d = t->src(1)->const_int();
  if (d <= 0 || d % a->const_int()) return {};
  return floormod(floordiv(t->src(0), a), d / a->const_int());
}

UOp mod_of_mod(const UOp& u) {
  const auto o = operands(u);
  return o ? without_inner_mod(o->f, o->c) : UOp();
}

// ---- symbolic divisors ------------------------------------------------------------------------

// term / divisor if the factors of the divisor are among the term's.
std::optional<UOp> divided_term(const UOp& term, const std::vector<UOp>& divisor) {
  std::vector<UOp> rest = factors(term);
  for (const UOp& d : divisor) {
    auto at = std::find(rest.begin(), rest.end(), d);
    if (at == rest.end()) return std::nullopt;
    rest.erase(at);
  }
  return product(std::move(rest));
}

// f = quotient*d + rest, by what the first term of d divides.
std::optional<std::pair<LinearForm, LinearForm>> divide_terms(const LinearForm& f, const UOp& d) {
  const auto form = form_of(d);
  if (!form || form->terms.empty()) return std::nullopt;
  const std::vector<UOp> leading = factors(form->terms[0].first);
  const int64_t scale = form->terms[0].second;
  LinearForm quotient, rest = f;
  for (const auto& [t, a] : f.terms) {
    const auto q = a % scale == 0 ? divided_term(t, leading) : std::nullopt;
    if (q && !add_scaled(quotient, *q, a / scale)) return std::nullopt;
  }
  const auto multiple = multiply(quotient, *form);
  if (!multiple || !add_scaled(rest, *multiple, -1)) return std::nullopt;
  return std::pair(std::move(quotient), std::move(rest));
}

// Multiples of a symbolic divisor d >= 1 leave the dividend; what stays is a remainder if it is
// provably in 0..d-1.
UOp symbolic_divmod(const UOp& u) {
  const bool div = u->op == Op::FloorDiv;
  const UOp &x = u->src(0), &d = u->src(1);
  if (d->is_const() || d->min < 1) return {};
  const auto f = form_of(x);
  if (!f) return {};
  if (x == d) return index_const(div ? 1 : 0);
  const auto is_remainder = [&](const LinearForm& rest) {
    LinearForm below = rest;
    return add_scaled(below, d, -1) && tight_interval(rest).lo >= 0 && tight_interval(below).hi < 0;
  };
  if (is_remainder(*f)) return div ? index_const(0) : x;
  auto parts = divide_terms(*f, d);
  if (!parts) return {};
  auto& [quotient, rest] = *parts;
  if (is_remainder(rest)) return from_linear_form(div ? quotient : rest);
  const bool nothing_left = quotient.terms.empty() && quotient.constant == 0;
  if (nothing_left || d->op == Op::Add) return {};  // by a sum it might go on for ever
  const UOp left = from_linear_form(rest);
  if (!div) return floormod(left, d);
  return add_scaled(quotient, floordiv(left, d), 1) ? from_linear_form(quotient) : UOp();
}

}  // namespace

std::vector<Rule> divmod_rules() {
  const Roots div = index_op({Op::FloorDiv}), mod = index_op({Op::FloorMod});
  return {
      {"div-bounds", div, apply_step<bounded, true>},
      {"mod-bounds", mod, apply_step<bounded, false>},
      {"div-two-values", div, apply_step<two_valued, true>},
      {"mod-two-values", mod, apply_step<two_valued, false>},
      {"div-congruence", div, apply_step<congruent, true>},
      {"mod-congruence", mod, apply_step<congruent, false>},
      {"div-of-div", div, div_of_div},
      {"div-of-mod", div, div_of_mod},
      {"mod-of-mod", mod, mod_of_mod},
      {"div-gcd", div, apply_step<by_gcd, true>},
      {"mod-gcd", mod, apply_step<by_gcd, false>},
      {"div-residue", div, apply_step<other_residue, true>},
      {"mod-residue", mod, apply_step<other_residue, false>},
      {"div-factor", div, apply_step<by_factor, true>},
      {"mod-factor", mod, apply_step<by_factor, false>},
      {"div-negate", div, apply_step<negated, true>},
      {"mod-negate", mod, apply_step<negated, false>},
      {"divmod-symbolic", index_op({Op::FloorDiv, Op::FloorMod}), symbolic_divmod},
  };
}

}  // namespace tuff::ir
