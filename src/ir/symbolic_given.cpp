// simplify_given: an expression where a condition is known to hold. What the condition says of a
// term becomes the bounds of a fresh Variable that stands for it while the rules run.
#include <algorithm>

#include "ir/linear_form.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

constexpr int kRounds = 3;      // facts about one term may tighten another
constexpr size_t kMaxSums = 4;  // sums of terms that are tried as variables of their own

struct TermBounds {
  UOp term;
  int64_t lo, hi;
};

// The facts of a condition: forms that are below zero, and the bounds of terms that follow.
class Facts {
 public:
  explicit Facts(const std::vector<UOp>& conjuncts) {
    for (const UOp& c : conjuncts) add(c);
    for (int round = 0; round < kRounds && tighten(); round++) {}
  }
  bool impossible() const {
    return std::any_of(terms_.begin(), terms_.end(),
                       [](const TermBounds& b) { return b.lo > b.hi; });
  }
  const std::vector<LinearForm>& below_zero() const { return forms_; }
  const std::vector<TermBounds>& terms() const { return terms_; }

 private:
  void add(const UOp& c) {
    if ((c->op != Op::CmpLt && c->op != Op::CmpEq) || c->src(0)->dtype != DType::Index) return;
    const auto f = difference(c->src(0), c->src(1));
    if (!f || f->terms.empty()) return;
    if (c->op == Op::CmpLt) return add_form(*f);
    for (int64_t sign : {1, -1}) {  // f == 0 is f-1 < 0 and -f-1 < 0
      LinearForm g;
      g.constant = -1;
      if (add_scaled(g, *f, sign)) add_form(g);
    }
  }
  void add_form(const LinearForm& f) {
    for (const auto& [t, a] : f.terms) bounds_of(t);
    forms_.push_back(f);
  }
  TermBounds& bounds_of(const UOp& t) {
    for (TermBounds& b : terms_) {
      if (b.term == t) return b;
    }
    return terms_.emplace_back(TermBounds{t, t->min, t->max});
  }
  bool tighten() {
    bool changed = false;
    for (const LinearForm& f : forms_) {
      for (size_t i = 0; i < f.terms.size(); i++) changed |= tighten(f, i);
    }
    return changed;
  }
  // a*t + rest < 0, so a*t <= -1 - min(rest).
  bool tighten(const LinearForm& f, size_t i) {
    Wide most = -1 - Wide(f.constant);
    for (size_t j = 0; j < f.terms.size(); j++) {
      if (j == i) continue;
      const TermBounds& b = bounds_of(f.terms[j].first);
      const int64_t a = f.terms[j].second;
      if ((a > 0 ? b.lo == INT64_MIN : b.hi == INT64_MAX)) return false;
      most -= Wide(a) * (a > 0 ? b.lo : b.hi);
    }
    if (most >= INT64_MAX / 2 || most <= INT64_MIN / 2) return false;
    const int64_t a = f.terms[i].second;
    if (a == INT64_MIN) return false;
    TermBounds& b = bounds_of(f.terms[i].first);
    const int64_t limit = a > 0 ? floor_div(int64_t(most), a) : -floor_div(int64_t(most), -a);
    if (a > 0 ? limit >= b.hi : limit <= b.lo) return false;
    (a > 0 ? b.hi : b.lo) = limit;
    return true;
  }

  std::vector<LinearForm> forms_;
  std::vector<TermBounds> terms_;
};

// Names with a blank cannot be a user's.
UOp stand_in(size_t number, int64_t lo, int64_t hi) {
  return lo == hi ? index_const(lo) : variable(fmt::format("given {}", number), lo, hi);
}

// The substitution of terms by stand-ins, and back.
struct Substitution {
  UOpMap<UOp> there, back;
  void add(const UOp& term, const UOp& by) {
    there[term] = by;
    if (!by->is_const()) back[by] = term;
  }
};

Substitution tightened_terms(const Facts& facts, const UOp& except = {}) {
  Substitution s;
  for (const TermBounds& b : facts.terms()) {
    if (b.term == except || (b.lo == b.term->min && b.hi == b.term->max)) continue;
    s.add(b.term, stand_in(s.there.size(), b.lo, b.hi));
  }
  return s;
}

// As substitute, but a Range keeps its size: another size would make it another loop's counter.
UOp substitute_values(const UOp& x, UOpMap<UOp> map) {
  for (const Node* n : toposort(x)) {
    if (n->op == Op::Range || n->op == Op::Special) map.try_emplace(UOp(n), UOp(n));
  }
  return substitute(x, map);
}

UOp simplify_under(const UOp& x, const Substitution& s) {
  if (s.there.empty()) return x;
  return simplify(substitute_values(simplify(substitute_values(x, s.there)), s.back));
}

constexpr uint64_t kDivisionCost = 1000;  // divisions cost most, then everything else
uint64_t cost(const UOp& x) {
  uint64_t sum = 0;
  for (const Node* n : toposort(x))
    sum += n->op == Op::FloorDiv || n->op == Op::FloorMod ? kDivisionCost : 1;
  return sum;
}

// A sum of several terms with bounds tighter than those of its terms give.
struct Sum {
  LinearForm form;  // constant 0
  int64_t lo, hi;
};

std::vector<Sum> bounded_sums(const Facts& facts) {
  std::vector<Sum> out;
  for (const LinearForm& f : facts.below_zero()) {
    if (f.terms.size() < 2 || f.constant <= INT64_MIN / 4 || f.constant >= INT64_MAX / 4) continue;
    auto known = std::find_if(out.begin(), out.end(), [&](const Sum& s) {
      return same_terms(s.form, f) || opposite_terms(s.form, f);
    });
    if (known == out.end()) {
      LinearForm terms = f;
      terms.constant = 0;
      const Interval i = interval(terms);
      if (!is_finite(i)) continue;
      known = out.insert(out.end(), {terms, int64_t(i.lo), int64_t(i.hi)});
    }
    if (same_terms(known->form, f))
      known->hi = std::min(known->hi, -f.constant - 1);
    else
      known->lo = std::max(known->lo, f.constant + 1);
  }
  return out;
}

// n, where f holds n times the terms of `part`.
std::optional<int64_t> multiple_within(const LinearForm& f, const LinearForm& part) {
  std::optional<int64_t> times;
  for (const auto& [t, a] : part.terms) {
    const auto own = std::ranges::find(f.terms, t, &std::pair<UOp, int64_t>::first);
    if (own == f.terms.end() || own->second % a != 0) return std::nullopt;
    if (times && *times != own->second / a) return std::nullopt;
    times = own->second / a;
  }
  return times;
}

// x with the sum as one variable: a term with coefficient 1 or -1, the pivot, is expressed by the
// sum and the others. What is known of the other terms is used as well.
std::optional<UOp> simplify_with_sum(const UOp& x, const Facts& facts, const Sum& sum,
                                     const std::pair<UOp, int64_t>& pivot) {
  if (std::abs(pivot.second) != 1 || sum.lo > sum.hi || !depends_on(x, pivot.first))
    return std::nullopt;
  Substitution s = tightened_terms(facts, pivot.first);
  const UOp whole = stand_in(s.there.size(), sum.lo, sum.hi);
  LinearForm expressed;  // pivot = a*(sum - others)
  for (const auto& [t, a] : sum.form.terms) {
    if (t == pivot.first) continue;
    auto known = s.there.find(t);
    if (!add_scaled(expressed, known == s.there.end() ? t : known->second, -a * pivot.second))
      return std::nullopt;
  }
  if (!add_scaled(expressed, whole, pivot.second)) return std::nullopt;
  s.there[pivot.first] = from_linear_form(expressed);
  if (!whole->is_const()) s.back[whole] = from_linear_form(sum.form);
  return simplify_under(x, s);
}

// What the condition says outright: its conjuncts are true, their negations false.
UOp with_known_truths(const UOp& x, const std::vector<UOp>& conjuncts) {
  UOpMap<UOp> known;
  for (const UOp& c : conjuncts) {
    known[c] = bool_const(true);
    known[simplify(logical_not(c))] = bool_const(false);
  }
  return simplify(substitute_values(x, std::move(known)));
}

}  // namespace

UOp simplify_given(const UOp& x, const UOp& condition) {
  const UOp plain = simplify(x);
  if (plain->src_count == 0 && plain->op != Op::Variable) return plain;
  const std::vector<UOp> known = conjuncts(simplify(condition));
  if (known.empty()) return plain;
  const Facts facts(known);
  if (facts.impossible()) return plain;
  const UOp base = with_known_truths(plain, known);
  UOp best = simplify_under(base, tightened_terms(facts));
  const std::vector<Sum> sums = bounded_sums(facts);
  for (size_t i = 0; i < std::min(sums.size(), kMaxSums); i++) {
    for (auto pivot = sums[i].form.terms.rbegin(); pivot != sums[i].form.terms.rend(); ++pivot) {
      const auto candidate = simplify_with_sum(best, facts, sums[i], *pivot);
      if (candidate && cost(*candidate) < cost(best)) best = *candidate;
    }
  }
  return best;
}

bool is_inside_given(const UOp& x, int64_t count, const UOp& condition) {
  const Facts facts(conjuncts(condition));
  LinearForm rest = linear_form(x);
  Wide lo = 0, hi = 0;
  for (const Sum& sum : bounded_sums(facts)) {
    const std::optional<int64_t> times = multiple_within(rest, sum.form);
    if (!times || !add_scaled(rest, sum.form, -*times)) continue;
    lo += Wide(*times) * (*times > 0 ? sum.lo : sum.hi);
    hi += Wide(*times) * (*times > 0 ? sum.hi : sum.lo);
  }
  for (const TermBounds& b : facts.terms()) {
    const auto t = std::ranges::find(rest.terms, b.term, &std::pair<UOp, int64_t>::first);
    if (t == rest.terms.end() || b.lo == INT64_MIN || b.hi == INT64_MAX) continue;
    lo += Wide(t->second) * (t->second > 0 ? b.lo : b.hi);
    hi += Wide(t->second) * (t->second > 0 ? b.hi : b.lo);
    rest.terms.erase(t);
  }
  const Interval i = interval(rest);
  return is_finite(i) && lo + i.lo >= 0 && hi + i.hi < count;
}

UOp simplify_conjunction(const UOp& condition) {
  std::vector<UOp> all = conjuncts(condition);
  bool changed = false;
  for (size_t i = 0; i < all.size() && all.size() > 1; i++) {
    if (cost(all[i]) < kDivisionCost) continue;
    UOp others;
    for (size_t j = 0; j < all.size(); j++) {
      if (j != i) others = others ? logical_and(others, all[j]) : all[j];
    }
    const UOp simpler = simplify_given(all[i], others);
    if (cost(simpler) >= cost(all[i])) continue;
    all[i] = simpler;
    changed = true;
  }
  if (!changed) return condition;
  UOp out;
  for (const UOp& c : all) out = out ? logical_and(out, c) : c;
  return simplify(out);
}

}  // namespace tuff::ir
