// Sums and products: like terms collected, products distributed, digits of a number put together.
#include "ir/linear_form.h"
#include "ir/symbolic_rules.h"

namespace tuff::ir {
namespace {

UOp collect(const UOp& u) {
  const auto f = form_of(u);
  return f && !is_spelled(u, *f) ? from_linear_form(*f) : UOp();
}

size_t addends(const LinearForm& f) { return f.terms.size() + (f.constant != 0); }

// x*y without constants: factors sorted; distributed when one of them is a single addend, so that
// r*(a+b) and r*a + r*b are the same. Products of two sums stay (they would grow).
UOp multiply_out(const UOp& u) {
  const UOp &x = u->src(0), &y = u->src(1);
  if (x->is_const() || y->is_const()) return {};
  const auto f = form_of(x), g = form_of(y);
  if (!f || !g || (addends(*f) > 1 && addends(*g) > 1)) return {};
  const auto h = multiply(*f, *g);
  return h && !is_spelled(u, *h) ? from_linear_form(*h) : UOp();
}

// The digits of `number` in a mixed radix: (number // low) % (high / low), high 0: all above low.
struct Digits {
  UOp number;
  int64_t low = 1, high = 0;
};

std::vector<Digits> readings(const UOp& term) {
  auto divisor = [](const UOp& u) { return u->src(1)->is_const() ? u->src(1)->const_int() : 0; };
  std::vector<Digits> out{{term, 1, 0}};
  const int64_t c = term->op == Op::FloorDiv || term->op == Op::FloorMod ? divisor(term) : 0;
  if (c <= 0) return out;
  const UOp& x = term->src(0);
  if (term->op == Op::FloorDiv) {
    out.push_back({x, c, 0});
    return out;
  }
  out.push_back({x, 1, c});
  // (y//a + k) % c are the digits of y + k*a above a.
  const bool shifted = x->op == Op::Add && x->src(1)->is_const();
  const UOp& q = shifted ? x->src(0) : x;
  int64_t high, offset = 0;
  if (q->op != Op::FloorDiv || divisor(q) <= 0 || __builtin_mul_overflow(divisor(q), c, &high))
    return out;
  if (shifted && __builtin_mul_overflow(x->src(1)->const_int(), divisor(q), &offset)) return out;
  out.push_back({q->src(0) + offset, divisor(q), high});
  return out;
}

UOp digits_node(const Digits& d) {
  const UOp q = floordiv(d.number, d.low);
  return d.high ? floormod(q, d.high / d.low) : q;
}

using Term = std::pair<UOp, int64_t>;

// low digits * k + high digits * k * (base of the low ones): together again; empty if they do not
// fit.
UOp joined(const Term& low, const Term& high) {
  for (const Digits& l : readings(low.first)) {
    if (!l.high) continue;
    int64_t scale;
    if (__builtin_mul_overflow(low.second, l.high / l.low, &scale) || scale != high.second)
      continue;
    for (const Digits& h : readings(high.first)) {
      if (h.number == l.number && h.low == l.high) return digits_node({l.number, l.low, h.high});
    }
  }
  return {};
}

// x - (x//c)*c where x is a term: the low digits.
UOp cut(const Term& whole, const Term& high) {
  for (const Digits& h : readings(high.first)) {
    int64_t scale;
    if (h.low == 1 || h.high || !(h.number == whole.first)) continue;
    if (!__builtin_mul_overflow(whole.second, -h.low, &scale) && scale == high.second)
      return floormod(h.number, h.low);
  }
  return {};
}

UOp replace_pair(LinearForm f, size_t low, size_t high, const UOp& by) {
  const int64_t scale = f.terms[low].second;
  f.terms.erase(f.terms.begin() + std::ptrdiff_t(std::max(low, high)));
  f.terms.erase(f.terms.begin() + std::ptrdiff_t(std::min(low, high)));
  return add_scaled(f, by, scale) ? from_linear_form(f) : UOp();
}

template <UOp (*join)(const Term& low, const Term& high)>
UOp join_terms(const UOp& u) {
  const auto f = form_of(u);
  if (!f) return {};
  for (size_t low = 0; low < f->terms.size(); low++) {
    for (size_t high = 0; high < f->terms.size(); high++) {
      if (low == high) continue;
      if (const UOp by = join(f->terms[low], f->terms[high]))
        return replace_pair(*f, low, high, by);
    }
  }
  return {};
}

// x//c*c + y%c where y was reduced modulo c and x was not: equal if x%c simplifies to y%c.
UOp joined_modulo(const Term& low, const Term& high) {
  const UOp &mod = low.first, &div = high.first;
  if (mod->op != Op::FloorMod || div->op != Op::FloorDiv || !(mod->src(1) == div->src(1)))
    return {};
  if (!mod->src(1)->is_const() || mod->src(0) == div->src(0)) return {};
  int64_t scale;
  if (__builtin_mul_overflow(low.second, mod->src(1)->const_int(), &scale) || scale != high.second)
    return {};
  return simplify(floormod(div->src(0), div->src(1))) == mod ? div->src(0) : UOp();
}

}  // namespace

std::vector<Rule> linear_rules() {
  return {
      {"linear-collect", index_op({Op::Add, Op::Sub, Op::Neg, Op::Mul}), collect},
      {"product-order", index_op({Op::Mul}), multiply_out},
      {"digits-join", index_op({Op::Add}), join_terms<joined>},
      {"digits-cut", index_op({Op::Add}), join_terms<cut>},
      {"digits-join-modulo", index_op({Op::Add}), join_terms<joined_modulo>},
  };
}

}  // namespace tuff::ir
