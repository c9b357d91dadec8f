// 64-bit integers on a Target without them: every value, register, element of memory and fold of
// lanes becomes two 32-bit words. A buffer of n elements is seen as 2n words, the low one first.
#include <algorithm>
#include <array>

#include "ir/kernel_floor.h"
#include "kernel/lower/int64_pair.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/lower/words.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

bool is_wide(DType t) { return t == DType::I64 || t == DType::U64; }

class WordPairs {
 public:
  WordPairs(const UOp& ast, const Target& target) : deps_(ast), target_(target) {
    for (const Node* n : toposort(ast)) {
      if (n->op == Op::Register) registers_ = std::max(registers_, register_number(n) + 1);
    }
  }

  UOp lower(const UOp& ast) {
    for (const Node* n : toposort(ast)) parts_[n] = parts_of(UOp(n));
    return parts_.at(ast.get()).at(0);
  }

 private:
  // What stands for a node: one node, or the low and the high word.
  using Parts = std::vector<UOp>;
  const Parts& parts(const UOp& u) const { return parts_.at(u.get()); }
  const UOp& one(const UOp& u) const { return parts(u).at(0); }
  Pair pair(const UOp& u) const { return {parts(u).at(0), parts(u).at(1)}; }

  Parts parts_of(const UOp& u) {
    if (u->op == Op::Store) return stores(u);
    if (u->op == Op::End) return ends(u);
    if (u->op == Op::After) return afters(u);
    if (is_alu(u->op)) return alu_parts(u);
    if (!is_wide(u->dtype)) return {with_src(u, flat(u->src()))};
    switch (u->op) {
      case Op::Const: return split(pair_const(u->get<Scalar>().bits));
      case Op::Param: {
        const ParamArg& p = u->get<ParamArg>();
        return {make(Op::Param, DType::U32, {}, ParamArg{p.slot, p.count * 2, p.device})};
      }
      case Op::Shared: {
        const SharedArg& s = u->get<SharedArg>();
        return {make(Op::Shared, DType::U32, {}, SharedArg{s.number, s.count * 2})};
      }
      case Op::Register: {
        const std::vector<UOp> lanes = flat(u->src());
        return {make(Op::Register, DType::U32, lanes, u->get<int64_t>()),
                make(Op::Register, DType::U32, lanes, registers_++)};
      }
      case Op::Index: return indices(u);
      case Op::Load: return each(parts(u->src(0)), make_load);
      case Op::Reduce: return fold(u);
      default: refuse(u);
    }
  }

  static Parts split(const Pair& p) { return {p.lo, p.hi}; }
  template <class F>
  static Parts each(const Parts& of, F f) {
    Parts out;
    for (const UOp& u : of) out.push_back(f(u));
    return out;
  }
  std::vector<UOp> flat(std::span<const UOp> src) const {
    std::vector<UOp> out;
    for (const UOp& s : src) out.insert(out.end(), parts(s).begin(), parts(s).end());
    return out;
  }
  [[noreturn]] void refuse(const UOp& u) const {
    fail<Unsupported>("{} of {}: {} has no 64-bit integers: use int32", ir::name(u->op),
                      tuff::name(u->dtype), target_.describe());
  }

  // ---- memory and control ----
  Parts indices(const UOp& u) const {
    const UOp &memory = one(u->src(0)), low = one(u->src(1)) * 2;
    const UOp gate = u->src_count > 2 ? one(u->src(2)) : UOp();
    return {make_index(memory, low, gate), make_index(memory, low + 1, gate)};
  }
  Parts stores(const UOp& u) {
    const Parts &to = parts(u->src(0)), &value = parts(u->src(1));
    Parts out;
    for (size_t i = 0; i < to.size(); i++) out.push_back(in_loops_of(u, make_store(to[i], value[i])));
    return out;
  }
  // A word that is the same in all steps of a loop, as the high one of a widened number is 0, is
  // stored in each of them nevertheless: the next fold overwrites workgroup memory.
  UOp in_loops_of(const UOp& u, const UOp& store) {
    const UOp& place = store->src(0);
    if (place->op != Op::Index || without_after(place->src(0).get())->op != Op::Shared)
      return store;
    const RangeMask missing = deps_.of(u) & ~deps_.of(store) & deps_.kinds(is_loop);
    if (!missing) return store;
    std::vector<UOp> index(place->src().begin(), place->src().end());
    index[0] = make_after(index[0], deps_.list(missing));
    return make_store(with_src(place, index), store->src(1));
  }
  Parts ends(const UOp& u) const {
    const std::vector<UOp> ranges = flat(closed_ranges(u.get()));
    return each(parts(u->src(0)), [&](const UOp& store) { return make_end(store, ranges); });
  }
  Parts afters(const UOp& u) const {
    const std::vector<UOp> before = flat(u->src().subspan(1));
    return each(parts(u->src(0)), [&](const UOp& x) { return make_after(x, before); });
  }

  // ---- folds of lanes ----
  UOp fold_word(Op op, const UOp& x, std::span<const UOp> lanes) {
    return fold_lanes(deps_, op, x, lanes);
  }
  // Sums of 16-bit halves cannot overflow a word: fewer than 2^16 lanes.
  Pair fold_sum(const Pair& x, std::span<const UOp> lanes) {
    const UOp low = fold_word(Op::Add, word_and(x.lo, word(0xffff)), lanes);
    const UOp middle = fold_word(Op::Add, shr(x.lo, 16), lanes) + shr(low, 16);
    const UOp high = fold_word(Op::Add, x.hi, lanes);
    return {word_or(word_and(low, word(0xffff)), shl(middle, 16)), high + shr(middle, 16)};
  }
  // The largest high word, and the largest low word among those that have it.
  Pair fold_max(const Pair& x, DType t, std::span<const UOp> lanes) {
    const DType signedness = is_signed(t) ? DType::I32 : DType::U32;
    const UOp hi = bitcast(fold_word(Op::Max, bitcast(x.hi, signedness), lanes), DType::U32);
    return {fold_word(Op::Max, where(equal(x.hi, hi), x.lo, word(0)), lanes), hi};
  }
  Parts fold(const UOp& u) {
    const std::vector<UOp> lanes = flat(u->src().subspan(1));
    const int64_t count = extent(lanes);
    TUFF_CHECK(count < 65536, "a fold of {} lanes", count);
    switch (u->get<ReduceArg>().op) {
      case Op::Add: return split(fold_sum(pair(u->src(0)), lanes));
      case Op::Max: return split(fold_max(pair(u->src(0)), u->dtype, lanes));
      default:
        fail<Unsupported>(
            "a product of {} {} values: {} has no 64-bit integers, and loops that end after {} "
            "iterations: multiply in parts",
            count, tuff::name(u->dtype), target_.describe(), target_.max_loop_trips);
    }
  }

  // ---- arithmetic ----
  Parts alu_parts(const UOp& u) const {
    const bool from_wide = std::any_of(u->src().begin(), u->src().end(),
                                       [](const UOp& s) { return is_wide(s->dtype); });
    if (!is_wide(u->dtype) && !from_wide) return {with_src(u, flat(u->src()))};
    if (row(u->op).rule == DTypeRule::Bool)
      return {pair_compare(u->op, u->src(0)->dtype, pair(u->src(0)), pair(u->src(1)))};
    switch (u->op) {
      case Op::Where: return split(pair_where(one(u->src(0)), pair(u->src(1)), pair(u->src(2))));
      case Op::Cast: return cast_parts(u);
      case Op::Bitcast:
        if (!is_wide(u->dtype) || !is_wide(u->src(0)->dtype)) refuse(u);
        return parts(u->src(0));
      default: {
        std::array<Pair, 3> x;
        for (size_t i = 0; i < u->src_count; i++) x[i] = pair(u->src(i));
        return split(pair_alu(u->op, u->dtype, std::span(x).first(u->src_count)));
      }
    }
  }
  Parts cast_parts(const UOp& u) const {
    const UOp& x = u->src(0);
    if (!is_wide(u->dtype)) return {pair_to(pair(x), x->dtype, u->dtype)};
    return is_wide(x->dtype) ? parts(x) : split(pair_from(one(x), u->dtype));
  }

  RangeDeps deps_;
  const Target& target_;
  int64_t registers_ = 0;
  std::unordered_map<const Node*, Parts> parts_;  // keys live: the AST holds them
};

}  // namespace

// Products cannot be folded word by word: their lanes become loops again.
void pass_serial_products(Lowering& l) {
  if (l.target.features.i64) return;
  UOpMap<UOp> serial;
  for (const Node* n : toposort(l.ast)) {
    if (n->op != Op::Reduce || !is_wide(n->dtype) || n->get<ReduceArg>().op != Op::Mul) continue;
    for (const UOp& r : n->src().subspan(1)) {
      const RangeArg& arg = r->get<RangeArg>();
      if (arg.kind == AxisKind::ReduceLane) serial[r] = range(r->src(0), arg.id, AxisKind::Reduce);
    }
  }
  if (!serial.empty()) l.ast = substitute(l.ast, serial);
}

void pass_wide_integers(Lowering& l) {
  if (l.target.features.i64) return;
  const std::vector<const Node*> order = toposort(l.ast);
  if (std::none_of(order.begin(), order.end(), [](const Node* n) { return is_wide(n->dtype); }))
    return;
  l.ast = WordPairs(l.ast, l.target).lower(l.ast);
}

}  // namespace tuff::kernel
