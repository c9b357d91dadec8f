#include "ir/linear_form.h"

#include <algorithm>
#include <numeric>

#include "ir/walk.h"

namespace tuff::ir {
namespace {

int rank_of(Op op) {
  switch (op) {
    case Op::Variable: return 0;
    case Op::Range: return 1;
    case Op::Special: return 2;
    default: return 3 + int(op);
  }
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_leaves(const Node& a, const Node& b) {
  switch (a.op) {
    case Op::Variable: return three_way(a.get<VariableArg>().name, b.get<VariableArg>().name);
    case Op::Range: return three_way(a.get<RangeArg>().id, b.get<RangeArg>().id);
    case Op::Special: {
      const SpecialArg &x = a.get<SpecialArg>(), &y = b.get<SpecialArg>();
      return three_way(std::pair(x.space, x.axis), std::pair(y.space, y.axis));
    }
    default: return 0;
  }
}

// x = term * c with a constant c; a term is never a product with a constant itself.
bool is_scaled(const Node& x) { return x.op == Op::Mul && x.src(1)->is_const(); }

}  // namespace


int compare_structure(const UOp& a, const UOp& b) {
  if (a == b) return 0;
  if (int c = three_way(rank_of(a->op), rank_of(b->op))) return c;
  if (int c = compare_leaves(*a, *b)) return c;
  if (int c = three_way(a->key, b->key)) return c;
  return three_way(a->serial, b->serial);  // differ in their Storages alone
}

bool add_term(LinearForm& into, const UOp& term, int64_t coefficient) {
  if (coefficient == 0) return true;
  auto& t = into.terms;
  auto at = std::lower_bound(t.begin(), t.end(), term, [](const auto& p, const UOp& x) {
    return compare_structure(p.first, x) < 0;
  });
  if (at == t.end() || !(at->first == term)) {
    t.insert(at, {term, coefficient});
    return true;
  }
  if (__builtin_add_overflow(at->second, coefficient, &at->second)) return false;
  if (at->second == 0) t.erase(at);
  return true;
}

namespace {

struct Scaled {
  const Node* node;
  int64_t scale;
};

bool add_constant(LinearForm& into, int64_t value, int64_t scale) {
  int64_t product;
  return !__builtin_mul_overflow(value, scale, &product) &&
         !__builtin_add_overflow(into.constant, product, &into.constant);
}

// One node of the sum: its parts go to the work list, or it is a term itself.
bool add_node(LinearForm& into, const Scaled& s, std::vector<Scaled>& work) {
  const Node& n = *s.node;
  if (n.min == n.max) return add_constant(into, n.min, s.scale);
  if (s.scale == INT64_MIN) return false;
  if (n.op == Op::Add || n.op == Op::Sub) {
    work.push_back({n.src(1).get(), n.op == Op::Sub ? -s.scale : s.scale});
    work.push_back({n.src(0).get(), s.scale});
    return true;
  }
  if (n.op == Op::Neg) {
    work.push_back({n.src(0).get(), -s.scale});
    return true;
  }
  if (n.op == Op::Mul) {
    const int c = n.src(1)->is_const() ? 1 : n.src(0)->is_const() ? 0 : -1;
    if (c >= 0) {
      int64_t scale;
      if (__builtin_mul_overflow(s.scale, n.src(c)->const_int(), &scale)) return false;
      work.push_back({n.src(1 - c).get(), scale});
      return true;
    }
  }
  return add_term(into, UOp(s.node), s.scale);
}

}  // namespace

bool add_scaled(LinearForm& into, const UOp& x, int64_t scale) {
  if (scale == 0) return true;
  static thread_local std::vector<Scaled> work;
  const size_t base = work.size();
  work.push_back({x.get(), scale});
  bool ok = true;
  while (work.size() > base) {
    const Scaled s = work.back();
    work.pop_back();
    ok = ok && add_node(into, s, work);
  }
  return ok;
}

bool add_scaled(LinearForm& into, const LinearForm& f, int64_t scale) {
  for (const auto& [term, c] : f.terms) {
    int64_t product;
    if (__builtin_mul_overflow(c, scale, &product) || !add_term(into, term, product)) return false;
  }
  return add_constant(into, f.constant, scale);
}

std::optional<LinearForm> form_of(const UOp& x) {
  LinearForm f;
  if (!add_scaled(f, x, 1)) return std::nullopt;
  return f;
}

std::optional<LinearForm> difference(const UOp& x, const UOp& y) {
  LinearForm f;
  if (!add_scaled(f, x, 1) || !add_scaled(f, y, -1)) return std::nullopt;
  return f;
}

LinearForm linear_form(const UOp& x) {
  if (auto f = form_of(x)) return *f;
  LinearForm whole;
  whole.terms.push_back({x, 1});
  return whole;
}

UOp from_linear_form(const LinearForm& f) {
  UOp sum;
  for (const auto& [term, c] : f.terms) {
    const UOp part = c == 1 ? term : make(Op::Mul, DType::Index, {term, index_const(c)});
    sum = sum ? make(Op::Add, DType::Index, {sum, part}) : part;
  }
  if (!sum) return index_const(f.constant);
  return f.constant ? make(Op::Add, DType::Index, {sum, index_const(f.constant)}) : sum;
}

bool is_spelled(const UOp& x, const LinearForm& f) {
  const Node* n = x.get();
  if (f.terms.empty()) return n->is_const_int(f.constant);
  if (f.constant) {
    if (n->op != Op::Add || !n->src(1)->is_const_int(f.constant)) return false;
    n = n->src(0).get();
  }
  for (size_t i = f.terms.size(); i-- > 0;) {
    if (i > 0 && n->op != Op::Add) return false;
    const Node* part = i > 0 ? n->src(1).get() : n;
    const auto& [term, c] = f.terms[i];
    const bool same =
        c == 1 ? part == term.get()
               : is_scaled(*part) && part->src(0) == term && part->src(1)->const_int() == c;
    if (!same) return false;
    if (i > 0) n = n->src(0).get();
  }
  return true;
}

bool same_terms(const LinearForm& a, const LinearForm& b) { return a.terms == b.terms; }

bool opposite_terms(const LinearForm& a, const LinearForm& b) {
  return std::equal(
      a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
      [](const auto& x, const auto& y) { return x.first == y.first && x.second == -y.second; });
}

std::vector<UOp> factors(const UOp& term) { return chain_operands(Op::Mul, term); }

UOp product(std::vector<UOp> factors) {
  std::sort(factors.begin(), factors.end(),
            [](const UOp& a, const UOp& b) { return compare_structure(a, b) < 0; });
  UOp out;
  for (const UOp& f : factors) out = out ? make(Op::Mul, DType::Index, {out, f}) : f;
  return out ? out : index_const(1);
}

std::optional<LinearForm> multiply(const LinearForm& f, const LinearForm& g) {
  LinearForm out;
  for (const auto& [a, ca] : f.terms) {
    const std::vector<UOp> fa = factors(a);
    for (const auto& [b, cb] : g.terms) {
      std::vector<UOp> both = factors(b);
      both.insert(both.end(), fa.begin(), fa.end());
      int64_t c;
      if (__builtin_mul_overflow(ca, cb, &c) || !add_term(out, product(std::move(both)), c))
        return std::nullopt;
    }
  }
  LinearForm f_terms = f;
  f_terms.constant = 0;
  if (!add_scaled(out, f_terms, g.constant) || !add_scaled(out, g, f.constant)) return std::nullopt;
  return out;
}

Interval interval(const LinearForm& f) {
  Interval i{f.constant, f.constant};
  for (const auto& [term, c] : f.terms) {
    const Wide a = Wide(term->min) * c, b = Wide(term->max) * c;
    // An unknown bound must stay unknown whatever is added to it.
    constexpr Wide kFar = Wide(1) << 90;
    const bool open_low = c > 0 ? term->min == INT64_MIN : term->max == INT64_MAX;
    const bool open_high = c > 0 ? term->max == INT64_MAX : term->min == INT64_MIN;
    i.lo += open_low ? -kFar : std::min(a, b);
    i.hi += open_high ? kFar : std::max(a, b);
  }
  return i;
}

namespace {

bool has_symbolic_size(const Node& n) { return n.op == Op::Range && !n.src(0)->is_const(); }
bool is_of_extents(const Node& n) {
  if (n.op == Op::Range || n.op == Op::Special || n.op == Op::Load) return false;
  return std::ranges::all_of(n.src(), [](const UOp& s) { return is_of_extents(*s); });
}
// x // constant of what varies from call to call alone, as the extent of windows with a stride is.
bool is_quotient_of_extents(const Node& n) {
  return n.op == Op::FloorDiv && n.src(1)->is_const() && n.src(1)->const_int() > 1 &&
         is_of_extents(*n.src(0));
}
bool may_tighten(const LinearForm& f) {
  return std::any_of(f.terms.begin(), f.terms.end(), [](const auto& t) {
    return t.first->op == Op::Mul || has_symbolic_size(*t.first) ||
           is_quotient_of_extents(*t.first);
  });
}

// An upper bound of coefficient*term (coefficient > 0) that is itself a form: one Range of the
// product at its largest value, the other factors kept.
std::optional<LinearForm> largest(const UOp& term) {
  const std::vector<UOp> all = factors(term);
  size_t at = all.size();
  for (size_t i = 0; i < all.size(); i++) {
    if (all[i]->min < 0) return std::nullopt;
    if (all[i]->op == Op::Range && (at == all.size() || has_symbolic_size(*all[i]))) at = i;
  }
  if (at == all.size()) return std::nullopt;
  LinearForm last, others;
  if (has_symbolic_size(*all[at])) {
    if (all[at]->src(0)->min < 1 || !add_scaled(last, all[at]->src(0), 1)) return std::nullopt;
    last.constant -= 1;
  } else {
    last.constant = all[at]->max;
  }
  std::vector<UOp> rest = all;
  rest.erase(rest.begin() + std::ptrdiff_t(at));
  if (rest.empty()) return last;
  others.terms.push_back({product(std::move(rest)), 1});
  return multiply(last, others);
}

// An upper bound of c * (x // d) with a divisor that is smaller by g = gcd(c, d):
// x // (d/g) - (g-1) <= g * (x // d) <= x // (d/g).
std::optional<LinearForm> with_smaller_divisor(const UOp& term, int64_t c) {
  if (c == INT64_MIN || !is_quotient_of_extents(*term)) return std::nullopt;
  const int64_t d = term->src(1)->const_int(), g = std::gcd(c, d);
  LinearForm out;
  if (g == 1 || !add_scaled(out, simplify(floordiv(term->src(0), d / g)), c / g))
    return std::nullopt;
  int64_t slack;
  if (c < 0 && (__builtin_mul_overflow(-c / g, g - 1, &slack) ||
                __builtin_add_overflow(out.constant, slack, &out.constant)))
    return std::nullopt;
  return out;
}

// What f cannot exceed, with every term replaced by its largest value where one is known.
LinearForm upper_form(const LinearForm& f) {
  LinearForm out;
  out.constant = f.constant;
  for (const auto& [term, c] : f.terms) {
    if (const auto top = with_smaller_divisor(term, c)) {
      if (!add_scaled(out, *top, 1)) return f;
      continue;
    }
    std::optional<LinearForm> top;
    if (c > 0) top = largest(term);
    if (!(top ? add_scaled(out, *top, c) : add_term(out, term, c))) return f;
  }
  return out;
}

Wide upper_bound(const LinearForm& f) {
  Wide best = interval(f).hi;
  LinearForm g = f;
  for (int round = 0; round < 4; round++) {
    LinearForm next = upper_form(g);
    if (same_terms(next, g)) break;
    g = std::move(next);
    best = std::min(best, interval(g).hi);
  }
  return best;
}

}  // namespace

Interval tight_interval(const LinearForm& f) {
  Interval i = interval(f);
  if (!may_tighten(f)) return i;
  i.hi = std::min(i.hi, upper_bound(f));
  LinearForm negative;
  if (add_scaled(negative, f, -1)) i.lo = std::max(i.lo, -upper_bound(negative));
  return i;
}

std::pair<int64_t, int64_t> tight_bounds(const UOp& x) {
  const auto f = form_of(x);
  if (!f) return {x->min, x->max};
  const Interval i = tight_interval(*f);
  return {int64_t(std::max<Wide>(i.lo, x->min)), int64_t(std::min<Wide>(i.hi, x->max))};
}

}  // namespace tuff::ir
