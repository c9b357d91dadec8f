// Index arithmetic becomes I32, and I64 only where bounds need it; floor division becomes what
// devices have.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

int log2_exact(int64_t v) {
  return v > 0 && (v & (v - 1)) == 0 ? __builtin_ctzll(uint64_t(v)) : -1;
}

// Sums and products may wrap on their way to an offset, which is right wherever it is used, and low
// bits are right of what wrapped; what compares, divides or converts must see the true number.
bool may_wrap(const Node* n) {
  const bool low_bits = n->op == Op::FloorMod && n->src(1)->is_const() && fits_i32(n) &&
                        log2_exact(n->src(1)->const_int()) >= 0;
  const bool sums = n->op == Op::Add || n->op == Op::Sub || n->op == Op::Mul || n->op == Op::Neg ||
                    n->op == Op::Where;
  return low_bits || (n->dtype == DType::Index && sums);
}
bool is_far(const Node* memory) {
  const Node* m = without_after(memory);
  return m->op == Op::Param && m->get<ParamArg>().count > std::numeric_limits<int32_t>::max();
}

// The numbers that need 64 bits: those beyond 32 whose true value is wanted. All others take 32,
// which registers and GPUs have at half the cost or less.
std::unordered_set<const Node*> wide_numbers(const UOp& ast) {
  std::unordered_set<const Node*> wide;
  const std::vector<const Node*> order = toposort(ast);
  for (size_t i = order.size(); i-- > 0;) {
    const Node* n = order[i];
    if (n->op == Op::Range && !fits_i32(n)) wide.insert(n);
    const bool wants = n->op == Op::Index ? is_far(n->src(0).get())
                                          : !may_wrap(n) || wide.contains(n);
    for (const UOp& s : n->src())
      if (wants && s->dtype == DType::Index && !fits_i32(s.get())) wide.insert(s.get());
  }
  return wide;
}

class IndexLowerer {
 public:
  explicit IndexLowerer(std::unordered_set<const Node*> wide) : wide_(std::move(wide)) {}

  UOp operator()(const UOp& old, std::span<const UOp> src) const {
    const bool numbers = std::ranges::any_of(
        old->src(), [](const UOp& s) { return s->dtype == DType::Index; });
    if (old->dtype != DType::Index && !numbers) return {};
    if (old->dtype != DType::Index) {
      if (!is_alu(old->op) || old->op == Op::Cast || old->op == Op::Bitcast) return {};
      return make(old->op, old->dtype, as_one(old, src), old->arg);
    }
    const DType t = type_of(old.get());
    switch (old->op) {
      case Op::Const: return int_const(t, old->const_int());
      case Op::Variable:
      case Op::Special: return cast(make(old->op, DType::I32, narrow(src), old->arg), t);
      case Op::Range: return make(Op::Range, t, all_as(src, t), old->arg);
      case Op::FloorDiv:
      case Op::FloorMod: return divided(old, src, t);
      case Op::Cast: return cast(src[0], t);
      default: return make(old->op, t, all_as(src, t), old->arg);
    }
  }

 private:
  DType type_of(const Node* n) const { return wide_.contains(n) ? DType::I64 : DType::I32; }
  static std::vector<UOp> all_as(std::span<const UOp> src, DType t) {
    std::vector<UOp> out;
    for (const UOp& s : src) out.push_back(s->dtype == DType::Bool ? s : cast(s, t));
    return out;
  }
  static std::vector<UOp> narrow(std::span<const UOp> src) { return all_as(src, DType::I32); }
  // Sources that were numbers, in the type of the widest of them.
  std::vector<UOp> as_one(const UOp& old, std::span<const UOp> src) const {
    DType t = DType::I32;
    for (const UOp& s : old->src()) t = wide_.contains(s.get()) ? DType::I64 : t;
    std::vector<UOp> out(src.begin(), src.end());
    for (size_t i = 0; i < out.size(); i++)
      if (old->src(i)->dtype == DType::Index) out[i] = cast(out[i], t);
    return out;
  }
  UOp divided(const UOp& old, std::span<const UOp> src, DType t) const {
    const std::vector<UOp> s = as_one(old, src);
    return cast(old->op == Op::FloorDiv ? divide(old, s[0], s[1]) : remainder(old, s[0], s[1]), t);
  }
  // q = floor(a/b): exact shifts where b is a power of two, else a shift of the origin by a
  // multiple of b makes the truncating division right; symbolic divisors correct the quotient.
  UOp divide(const UOp& old, const UOp& a, const UOp& b) const {
    const Node& oa = *old->src(0);
    const DType t = a->dtype;
    if (const int k = b->is_const() ? log2_exact(b->const_int()) : -1; k >= 0)
      return alu(Op::Shr, {a, int_const(t, k)});
    if (oa.min >= 0) return alu(Op::IDiv, {a, b});
    if (b->is_const() && oa.min > -(int64_t(1) << 30) && oa.max < (int64_t(1) << 30)) {
      const int64_t d = b->const_int(), lift = (-oa.min + d - 1) / d;
      return alu(Op::IDiv, {a + lift * d, b}) - lift;
    }
    const UOp q = alu(Op::IDiv, {a, b});
    return q - cast(lt(a - q * b, int_const(t, 0)), t);
  }
  UOp remainder(const UOp& old, const UOp& a, const UOp& b) const {
    if (b->is_const() && log2_exact(b->const_int()) >= 0)
      return alu(Op::And, {a, int_const(a->dtype, b->const_int() - 1)});
    if (old->src(0)->min >= 0) return alu(Op::IMod, {a, b});
    return a - divide(old, a, b) * b;
  }

  std::unordered_set<const Node*> wide_;
};

int depth_of(const UOp& term, RangeDeps& deps, const LoopTree& tree, RangeMask lanes) {
  const RangeMask m = deps.of(term);
  return m & lanes ? 1000 : tree.depth(tree.deepest(m));
}

}  // namespace

void pass_index_type(Lowering& l) {
  std::unordered_set<const Node*> wide = wide_numbers(l.ast);
  for (const Node* n : toposort(l.ast)) {
    if ((n->op == Op::Variable || n->op == Op::Special) && !fits_i32(n))
      fail<Unsupported>("a variable or launch size beyond 32 bits (up to {})", n->max);
  }
  if (!wide.empty() && !l.target.features.i64)
    fail<Unsupported>("index: offsets beyond 32 bits need int64, which the device lacks");
  const IndexLowerer lowerer(std::move(wide));
  l.ast =
      rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) { return lowerer(old, src); });
  for (Dim& d : l.out.groups) {
    TUFF_CHECK(d.max() <= int64_t(std::numeric_limits<int32_t>::max()), "launch of {} groups",
               d.max());
  }
}

void pass_index_order(Lowering& l) {
  RangeDeps deps(l.ast);
  const LoopTree tree(l.ast, deps);
  const RangeMask lanes = deps.kinds(is_lane);
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op != Op::Index || src[1]->op != Op::Add) return {};
    LinearForm form = linear_form(src[1]);
    std::vector<std::pair<int, UOp>> terms;
    for (const auto& [term, factor] : form.terms)
      terms.emplace_back(depth_of(term, deps, tree, lanes), term * factor);
    std::ranges::stable_sort(terms, {}, [](const auto& t) { return t.first; });
    UOp sum;
    for (const auto& [depth, term] : terms)
      sum = sum ? make(Op::Add, DType::Index, {sum, term}) : term;
    if (!sum) sum = index_const(0);
    std::vector<UOp> out(src.begin(), src.end());
    out[1] = form.constant ? make(Op::Add, DType::Index, {sum, index_const(form.constant)}) : sum;
    return with_src(old, out);
  });
}

}  // namespace tuff::kernel
