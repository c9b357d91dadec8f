// Factors that are the same in unrolled steps of a sum leave the sum of those steps: a block's
// scale is multiplied once by what its numbers give, not by each of them. A sum of such products,
// as a scale and a minimum make, becomes a sum of their sums. The same value but for rounding,
// where what is summed is finite.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// A range of unrolled steps as several, one for each digit that offsets and values take it apart
// into: what depends on one of them only is then seen. `vector`: the lanes of a CPU's register, the
// fastest of them have no more; 0 where lanes are no vectors.
UOp with_lane_digits(const UOp& ast, int64_t vector) {
  const std::vector<const Node*> order = toposort(ast);
  int32_t next_id = RangeDeps(ast).free_id();
  UOpMap<std::vector<UOp>> digits;  // the slowest first
  UOpMap<UOp> joined;
  for (const Node* n : order) {
    if (n->op != Op::Range || kind_of(n) != AxisKind::ReduceLane) continue;
    const UOp r(n);
    std::vector<int64_t> cuts = digit_cuts(r, order);
    if (vector && !cuts.empty() && cuts[0] > vector && cuts[0] % vector == 0)
      cuts.insert(cuts.begin(), vector);
    if (cuts.size() < 2) continue;
    UOp sum = index_const(0);
    int64_t below = 1;
    for (const int64_t cut : cuts) {
      const UOp d = range(index_const(cut / below), next_id++, AxisKind::ReduceLane);
      digits[r].insert(digits[r].begin(), d);
      sum = sum + d * below;
      below = cut;
    }
    joined.emplace(r, sum);
  }
  if (digits.empty()) return ast;
  return simplify(rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (const auto it = joined.find(old); it != joined.end()) return it->second;
    // The loops of a copy end as those of a sum do.
    if (old->op != Op::Reduce && old->op != Op::End) return {};
    std::vector<UOp> closed{src[0]};
    for (size_t i = 1; i < old->src_count; i++) {
      const UOp& r = old->src(i);
      if (const auto it = digits.find(r); it != digits.end())
        closed.insert(closed.end(), it->second.begin(), it->second.end());
      else
        closed.push_back(r);
    }
    return with_src(old, closed);
  }));
}

// A product as what is different in all unrolled steps, and what is not.
struct Term {
  UOp varying, rest;  // empty: one
};

class LaneFactors {
 public:
  // vectors: the widest lanes of a sum are those of registers, and stay in it.
  LaneFactors(const UOp& ast, bool vectors)
      : deps_(ast), lane_mask_(deps_.kinds(AxisKind::ReduceLane)), vectors_(vectors) {}

  // Empty: nothing leaves the sum.
  UOp operator()(const UOp& reduce) {
    const UOp& value = reduce->src(0);
    if (reduce->get<ReduceArg>().op != Op::Add || value->dtype != DType::F32) return {};
    RangeMask own = 0;
    for (const UOp& r : closed_ranges(reduce.get())) own |= deps_.bit(r);
    lanes_ = own & lane_mask_ & deps_.of(value);
    if (!lanes_) return {};
    const auto found = terms(value);
    if (!found) return {};
    RangeMask inner = vectors_ ? lanes_ & ~widest() : lanes_;
    for (const Term& t : *found) {
      if (!t.rest || !t.varying) return {};
      inner &= ~deps_.of(t.rest);
      if (vectors_ && shares_numbers(t)) return {};
    }
    if (!inner) return {};
    return sum_of_sums(reduce, *found, deps_.list(inner));
  }

 private:
  static constexpr size_t kMostTerms = 2;

  static UOp product(const UOp& x, const UOp& y) {
    return !x ? y : !y ? x : alu(Op::Mul, {x, y});
  }
  // Of a value that may be a sum of products; nothing where there are too many. What is added has
  // to be rounded already, as a product with what is the same in all steps is: a difference of
  // two numbers near each other is exact, that of their sums is not.
  std::optional<std::vector<Term>> terms(const UOp& u) {
    const RangeMask walked = deps_.of(u) & lanes_;
    if (walked != lanes_) return {{{UOp(), u}}};
    if (u->op == Op::Add || u->op == Op::Sub) {
      const auto x = terms(u->src(0)), y = terms(u->src(1));
      if (!x || !y || x->size() + y->size() > kMostTerms) return {};
      std::vector<Term> out = *x;
      for (const Term& t : *y)
        out.push_back({t.varying, u->op == Op::Sub && t.rest ? alu(Op::Neg, {t.rest}) : t.rest});
      if (!std::ranges::all_of(out, [](const Term& t) { return bool(t.rest); })) return {};
      return out;
    }
    if (u->op != Op::Mul) return {{{u, UOp()}}};
    const auto x = terms(u->src(0)), y = terms(u->src(1));
    if (!x || !y || x->size() * y->size() > kMostTerms) return {};
    std::vector<Term> out;
    for (const Term& a : *x) {
      for (const Term& b : *y)
        out.push_back({product(a.varying, b.varying), product(a.rest, b.rest)});
    }
    return out;
  }
  // Of several vectors by the same numbers, these are better scaled once.
  bool shares_numbers(const Term& t) {
    const RangeMask outputs = deps_.kinds(is_lane) & ~lane_mask_;
    return deps_.of(t.varying) & ~deps_.of(t.rest) & outputs;
  }
  // Those that LaneSpace takes for vectors.
  RangeMask widest() {
    UOp best;
    for (const UOp& r : deps_.list(lanes_))
      if (!best || r->src(0)->max > best->src(0)->max) best = r;
    return deps_.bit(best);
  }
  UOp sum_of_sums(const UOp& reduce, const std::vector<Term>& terms,
                  const std::vector<UOp>& inner) const {
    UOp value;
    for (const Term& t : terms) {
      // Vectors are multiplied and added at once, as sums in registers of a GPU are later.
      const UOp sum = vectors_ && t.varying->op == Op::Mul
                          ? make_dot(t.varying, constant(DType::F32, 0), inner)
                          : make(Op::Reduce, DType::F32, sources(t.varying, inner), reduce->arg);
      const UOp scaled = alu(Op::Mul, {t.rest, sum});
      value = value ? alu(Op::Add, {value, scaled}) : scaled;
    }
    std::vector<UOp> src{value};
    for (const UOp& r : closed_ranges(reduce.get()))
      if (!contains(inner, r)) src.push_back(r);
    return src.size() == 1 ? value : with_src(reduce, src);
  }

  RangeDeps deps_;
  const RangeMask lane_mask_;
  const bool vectors_;
  RangeMask lanes_ = 0;  // of the sum that is looked at
};

}  // namespace

// On a CPU the widest lanes are those of a vector register, whose sum costs more than the products.
void pass_lane_factors(Lowering& l) {
  const std::vector<const Node*> all = toposort(l.ast);
  const bool vectors = !l.target.has_local;
  const auto any = [&](auto test) { return std::ranges::any_of(all, test); };
  const bool unrolled = any([](const Node* n) {
    return n->op == Op::Range && kind_of(n) == AxisKind::ReduceLane;
  });
  const bool packed =
      any([](const Node* n) { return n->op == Op::Load && n->dtype == DType::U8; });
  if (!unrolled || (vectors && !packed)) return;
  const UOp ast = with_lane_digits(l.ast, vectors ? l.target.vector_bytes / 4 : 0);
  LaneFactors factors(ast, vectors);
  bool found = false;
  const UOp made = rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op != Op::Reduce || !(src[0] == old->src(0))) return {};
    const UOp out = factors(old);
    found = found || out;
    return out;
  });
  // Vectors of more than a digit would gather.
  if (found || vectors) l.ast = made;
}

}  // namespace tuff::kernel
