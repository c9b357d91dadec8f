// Index arithmetic becomes I32, or I64 where bounds need it; floor division becomes what devices
// have.
#include <algorithm>
#include <limits>

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

class IndexLowerer {
 public:
  explicit IndexLowerer(DType t) : type_(t) {}

  UOp operator()(const UOp& old, std::span<const UOp> src) const {
    if (old->dtype != DType::Index) {
      if (!is_alu(old->op) || old->op == Op::Cast || old->op == Op::Bitcast) return {};
      return make(old->op, old->dtype, src, old->arg);
    }
    switch (old->op) {
      case Op::Const: return number(old->const_int());
      case Op::Variable:
      case Op::Special: return cast(make(old->op, DType::I32, narrow(src), old->arg), type_);
      case Op::Range: return make(Op::Range, type_, src, old->arg);
      case Op::FloorDiv: return divide(old, src[0], src[1]);
      case Op::FloorMod: return remainder(old, src[0], src[1]);
      case Op::Cast: return cast(src[0], type_);
      default: return make(old->op, type_, src, old->arg);
    }
  }

 private:
  UOp number(int64_t v) const { return int_const(type_, v); }
  static std::vector<UOp> narrow(std::span<const UOp> src) {
    std::vector<UOp> out;
    for (const UOp& s : src) out.push_back(cast(s, DType::I32));
    return out;
  }
  // q = floor(a/b): exact shifts where b is a power of two, else a shift of the origin by a
  // multiple of b makes the truncating division right; symbolic divisors correct the quotient.
  UOp divide(const UOp& old, const UOp& a, const UOp& b) const {
    const Node& oa = *old->src(0);
    if (const int k = b->is_const() ? log2_exact(b->const_int()) : -1; k >= 0)
      return alu(Op::Shr, {a, number(k)});
    if (oa.min >= 0) return alu(Op::IDiv, {a, b});
    if (b->is_const() && oa.min > -(int64_t(1) << 30) && oa.max < (int64_t(1) << 30)) {
      const int64_t d = b->const_int(), lift = (-oa.min + d - 1) / d;
      return alu(Op::IDiv, {a + lift * d, b}) - lift;
    }
    const UOp q = alu(Op::IDiv, {a, b});
    return q - cast(lt(a - q * b, number(0)), type_);
  }
  UOp remainder(const UOp& old, const UOp& a, const UOp& b) const {
    if (b->is_const() && log2_exact(b->const_int()) >= 0)
      return alu(Op::And, {a, number(b->const_int() - 1)});
    if (old->src(0)->min >= 0) return alu(Op::IMod, {a, b});
    return a - divide(old, a, b) * b;
  }

  DType type_;
};

// Sums and products may wrap on their way to an offset, which is right wherever it is used, and low
// bits are right of what wrapped; what compares, divides or converts must see the true number.
bool needs_i64(const Node* n) {
  if (n->op == Op::Param) return n->get<ParamArg>().count > std::numeric_limits<int32_t>::max();
  if (n->op == Op::Range && !fits_i32(n)) return true;
  const bool low_bits = n->op == Op::FloorMod && n->src(1)->is_const() && fits_i32(n) &&
                        log2_exact(n->src(1)->const_int()) >= 0;
  const bool wraps =
      n->op == Op::Index || low_bits ||
      (n->dtype == DType::Index && (n->op == Op::Add || n->op == Op::Sub || n->op == Op::Mul ||
                                    n->op == Op::Neg || n->op == Op::Where));
  if (wraps) return false;
  return std::any_of(n->src().begin(), n->src().end(),
                     [](const UOp& s) { return s->dtype == DType::Index && !fits_i32(s.get()); });
}

int depth_of(const UOp& term, RangeDeps& deps, const LoopTree& tree, RangeMask lanes) {
  const RangeMask m = deps.of(term);
  return m & lanes ? 1000 : tree.depth(tree.deepest(m));
}

}  // namespace

void pass_index_type(Lowering& l) {
  DType type = DType::I32;
  for (const Node* n : toposort(l.ast)) {
    if (needs_i64(n)) type = DType::I64;
    if ((n->op == Op::Variable || n->op == Op::Special) && !fits_i32(n)) {
      fail<Unsupported>("a variable or launch size beyond 32 bits (up to {})", n->max);
    }
  }
  if (type == DType::I64 && !l.target.features.i64) {
    fail<Unsupported>("index: offsets beyond 32 bits need int64, which the device lacks");
  }
  const IndexLowerer lowerer(type);
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
