// Reductions become loops over accumulators: a Register for the serial part, a fold of lanes for
// the unrolled part, a tree in workgroup memory for the part that invocations share.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "kernel/analysis/access.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

struct ReduceParts {
  std::vector<UOp> serial, unrolled, shared;
};

class ReduceLowerer {
 public:
  // `outermost`: neighbouring invocations have a part each of different reductions. `shares_rows`:
  // as Lowering's.
  ReduceLowerer(const UOp& ast, const Target& target, bool outermost, bool shares_rows)
      : deps_(ast), target_(target), outermost_(outermost), stored_(stored_params(ast)) {
    int64_t rows = 1, width = 1;
    bool matrices = false;
    for (const Node* n : toposort(ast)) {
      if (n->op == Op::Range && kind_of(n) == AxisKind::Local) rows *= n->src(0)->max;
      if (n->op == Op::Range && kind_of(n) == AxisKind::GroupReduce) width = n->src(0)->max;
      matrices = matrices || (n->op == Op::Range && kind_of(n) == AxisKind::Subgroup);
      reduces_ += n->op == Op::Reduce;
      if (n->op == Op::Register) registers_ = std::max(registers_, register_number(n) + 1);
      if (n->op == Op::Shared) shared_ = std::max(shared_, n->get<SharedArg>().number + 1);
    }
    // Reductions in one loop begin and end together, inside all that one of them stands in.
    for (const Node* n : toposort(ast)) {
      if (n->op != Op::Reduce || shares_rows) continue;
      for (const UOp& r : closed_ranges(n)) around_[r.get()] |= deps_.of(UOp(n));
    }
    by_lanes_ = !outermost && !matrices && folds_in_subgroups(target, width, rows * width);
  }

  // A register that is scaled, and the sum of one iteration added to it: the register itself then
  // sums up the iteration.
  bool continues(const UOp& u) const {
    const UOp& sum = u->op == Op::MulAdd ? u->src(2) : u;
    if (u->op != Op::MulAdd || sum->op != Op::Reduce || sum->get<ReduceArg>().op != Op::Add)
      return false;
    const bool carried =
        u->src(0)->op == Op::Load && without_after(u->src(0)->src(0).get())->op == Op::Register;
    const ReduceParts parts = parts_of(sum);
    return carried && accumulator(sum->dtype) == sum->dtype && !parts.serial.empty() &&
           parts.shared.empty();
  }
  // Sources of `u`: the load of the register, the scale, the Reduce, which is not lowered yet.
  UOp lower_continued(const UOp& u) {
    const ReduceParts parts = parts_of(u->src(2));
    const UOp &current = u->src(0)->src(0), value = u->src(2)->src(0);
    const UOp reg(without_after(current.get()));
    const UOp first = make_store(current, alu(Op::Mul, {u->src(0), u->src(1)}));
    const bool chain = target_.has_local && adds_products(Op::Add, value, parts.unrolled);
    return summed(Op::Add, value, parts.serial, parts.unrolled,
                  make_after(reg, sources(first, parts.serial)), reg, chain);
  }

  UOp lower(const UOp& reduce) {
    const Op op = reduce->get<ReduceArg>().op;
    const DType t = reduce->dtype;
    const DType acc = is_float(t) ? accumulator(t) : t;
    const ReduceParts parts = parts_of(reduce);
    UOp value = cast(reduce->src(0), acc);
    value = parts.serial.empty() ? sum_of_lanes(op, value, parts.unrolled)
                                 : accumulate(op, value, parts);
    for (const UOp& r : parts.shared) value = across(op, value, r);
    return cast(value, t);
  }

 private:
  UOp across(Op op, const UOp& value, const UOp& id) {
    if (by_lanes_ && shuffles(target_, value->dtype) && (deps_.of(value) & deps_.bit(id)))
      return across_lanes(op, value, id);
    return across_workgroup(op, value, id);
  }
  static ReduceParts parts_of(const UOp& reduce) {
    ReduceParts parts;
    for (const UOp& r : closed_ranges(reduce.get())) {
      const AxisKind k = kind_of(r.get());
      (k == AxisKind::ReduceLane    ? parts.unrolled
       : k == AxisKind::GroupReduce ? parts.shared
                                    : parts.serial)
          .push_back(r);
    }
    return parts;
  }
  // Lanes around a reduction, those of reductions around it included; not its own.
  std::vector<UOp> lanes_of(const UOp& u, const std::vector<UOp>& own) {
    RangeMask m = deps_.of(u) & deps_.kinds(is_lane);
    for (const UOp& r : own) m &= ~deps_.bit(r);
    return deps_.list(m);
  }
  UOp fold_lanes(Op op, const UOp& value, const std::vector<UOp>& lanes) {
    return kernel::fold_lanes(deps_, op, value, lanes);
  }
  // Partial sums per unrolled lane vectorize, have short dependency chains and keep products and
  // additions fused, while registers last: on a GPU a quarter of them for those of all reductions.
  bool keeps_partial_sums(const std::vector<UOp>& lanes, const ReduceParts& parts, DType t) const {
    const int64_t registers =
        target_.has_local
            ? std::max<int64_t>(16, int64_t(target_.vector_registers) / 4 / reduces_)
            : int64_t(target_.vector_registers) * target_.vector_bytes / 2 / int64_t(size_bytes(t));
    return !parts.unrolled.empty() && extent(lanes) * extent(parts.unrolled) <= registers;
  }
  // Which of the unrolled lanes have sums of their own. Where registers do not last for all of a
  // CPU's, those of a vector: products along the others are added one after the other.
  std::vector<UOp> partial_lanes(Op op, const UOp& value, const std::vector<UOp>& lanes,
                                 const ReduceParts& parts) {
    if (keeps_partial_sums(lanes, parts, value->dtype)) return parts.unrolled;
    if (target_.has_local || parts.unrolled.size() < 2) return {};
    const int64_t width = int64_t(target_.vector_bytes / size_bytes(value->dtype));
    for (const UOp& r : parts.unrolled) {
      const std::vector<UOp> others = without(parts.unrolled, {r});
      if (r->src(0)->max == width && keeps_partial_sums(lanes, {{}, {r}, {}}, value->dtype) &&
          is_dot(op, value, others))
        return {r};
    }
    return {};
  }
  static std::vector<UOp> without(std::vector<UOp> all, const std::vector<UOp>& some) {
    std::erase_if(all, [&](const UOp& r) { return contains(some, r); });
    return all;
  }

  // Without partial sums, unrolled products of floats are added one after the other: each then is
  // one multiply-add, and of several outputs there are enough to wait for none.
  bool adds_products(Op op, const UOp& value, const std::vector<UOp>& unrolled) {
    constexpr int64_t kLeastOutputs = 4;  // cycles of a dependent multiply-add, about
    return is_dot(op, value, unrolled) && extent(lanes_of(value, unrolled)) >= kLeastOutputs;
  }
  // Products of floats that are another in each of these lanes.
  bool is_dot(Op op, const UOp& value, const std::vector<UOp>& unrolled) {
    RangeMask lanes = 0;
    for (const UOp& r : unrolled) lanes |= deps_.bit(r);
    return op == Op::Add && value->op == Op::Mul && is_float(value->dtype) && lanes && (deps_.of(value) & lanes) == lanes;
  }

  // Unrolled and no more: a chain of multiply-adds begins at zero. A CPU's are lanes of vectors.
  UOp sum_of_lanes(Op op, const UOp& value, const std::vector<UOp>& unrolled) {
    return target_.has_local && is_dot(op, value, unrolled)
               ? make_dot(value, constant(value->dtype, 0), unrolled)
               : fold_lanes(op, value, unrolled);
  }

  UOp accumulate(Op op, UOp value, const ReduceParts& parts) {
    std::vector<UOp> lanes = lanes_of(value, parts.unrolled);
    RangeMask inner = 0, around = deps_.of(value);
    for (const auto* list : {&parts.serial, &parts.unrolled, &parts.shared}) {
      for (const UOp& r : *list) inner |= deps_.bit(r);
    }
    for (const UOp& r : parts.serial)
      if (const auto it = around_.find(r.get()); it != around_.end()) around |= it->second;
    // A sum that another one's loop makes besides waits for none, and has few registers.
    const bool besides = target_.has_local && ((around ^ deps_.of(value)) & ~inner) &&
                         is_dot(op, value, parts.unrolled);
    const std::vector<UOp> partial =
        besides ? std::vector<UOp>() : partial_lanes(op, value, lanes, parts);
    const std::vector<UOp> together = without(parts.unrolled, partial);
    lanes.insert(lanes.end(), partial.begin(), partial.end());
    const UOp reg = make(Op::Register, value->dtype, lanes, register_arg(value));
    std::vector<UOp> before;
    for (const UOp& r : deps_.list(around & ~inner)) {
      if (is_loop(kind_of(r.get()))) before.push_back(r);
    }
    const UOp init = make_store(make_after(reg, before), identity_of(op, value));
    const UOp current = make_after(reg, sources(init, parts.serial));
    const bool may_chain = target_.has_local || !partial.empty();
    const bool chain = besides || (may_chain && adds_products(op, value, together));
    const UOp result = summed(op, value, parts.serial, together, current, reg, chain);
    return partial.empty() ? result : fold_lanes(op, result, partial);
  }
  // The register once all steps are added to what it has before the first. `together`: unrolled
  // lanes that are steps of it, as a chain of multiply-adds or folded.
  UOp summed(Op op, const UOp& value, const std::vector<UOp>& serial,
             const std::vector<UOp>& together, const UOp& current, const UOp& reg, bool chain) {
    const UOp sum = make_load(current);
    const UOp next = together.empty() ? combine(op, sum, value)
                     : chain          ? make_dot(value, sum, together)
                                      : combine(op, sum, fold_lanes(op, value, together));
    return make_load(make_after(reg, {make_end(make_store(current, next), serial)}));
  }

  // What is summed may be cooperative matrices: a product of two is added by one op.
  Arg register_arg(const UOp& value) {
    const int64_t number = registers_++;
    if (!matrix_of(value.get())) return number;
    MatrixArg arg = *matrix_of(value.get());
    arg.number = number;
    return arg;
  }
  static UOp identity_of(Op op, const UOp& value) {
    const UOp one = constant(reduce_identity(op, value->dtype));
    const MatrixArg* matrix = matrix_of(value.get());
    return matrix ? make(Op::MatrixFill, value->dtype, {one}, *matrix) : one;
  }
  UOp combine(Op op, const UOp& sum, const UOp& value) const {
    if (value->op == Op::MatrixMulAdd)
      return make(Op::MatrixMulAdd, value->dtype, {value->src(0), value->src(1), sum}, value->arg);
    if (op == Op::Add && value->op == Op::Mul && is_float(value->dtype)) {
      return make(Op::MulAdd, value->dtype, {value->src(0), value->src(1), sum});
    }
    // A scale's product and a minimum's, one after the other.
    const bool two = op == Op::Add && value->op == Op::Add && is_float(value->dtype) &&
                     value->src(0)->op == Op::Mul && value->src(1)->op == Op::Mul;
    if (two && !target_.has_local) return combine(op, combine(op, sum, value->src(0)), value->src(1));
    return make(op, value->dtype, {sum, value});
  }

  // Neighbours, then pairs of neighbours (a butterfly): both of a pair add the same two numbers, so
  // that all lanes have the same bits. Wider than a subgroup, the sums of subgroups meet in memory.
  UOp across_lanes(Op op, UOp value, const UOp& id) {
    const int64_t lanes = target_.subgroup_size, width = id->src(0)->max;
    const UOp lane = cast(
        make(Op::Special, DType::Index, {index_const(lanes)}, SpecialArg{'s', 0}), DType::I32);
    for (int64_t apart = 1; apart < std::min(width, lanes); apart *= 2) {
      const UOp other = make(Op::Xor, DType::I32, {lane, int_const(DType::I32, apart)});
      value = make(op, value->dtype, {value, make(Op::Shuffle, value->dtype, {value, other})});
    }
    // No shuffle keeps what a lane stores behind what others have read.
    if (width <= lanes)
      return reads_any(value, stored_) ? make_after(value, {make_barrier({value})}) : value;
    const int64_t subgroups = width / lanes;
    std::vector<UOp> rows = deps_.list(deps_.kinds(AxisKind::Local));
    for (const UOp& l : lanes_of(value, {})) rows.push_back(l);
    const UOp memory = make(Op::Shared, value->dtype, {},
                            SharedArg{shared_++, subgroups * extent(rows)});
    const UOp first = flat_index(rows) * subgroups;
    const UOp is_first = lt(floormod(id, index_const(lanes)), index_const(1));
    const UOp place = make_index(memory, first + floordiv(id, index_const(lanes)), is_first);
    const UOp part = range(index_const(subgroups), deps_.free_id(), AxisKind::ReduceLane);
    const UOp complete = make_after(memory, {make_barrier({make_store(place, value)})});
    const UOp result = fold_lanes(op, make_load(make_index(complete, first + part)), {part});
    return make_after(result, {make_barrier({result})});
  }

  // Every invocation stores its part; halves are added until the first holds all, which every
  // invocation then reads. The last barrier lets the memory be written again (next iteration of a
  // loop around).
  UOp across_workgroup(Op op, const UOp& value, const UOp& id) {
    // Those that have the same sum too: none stores what another reads.
    std::vector<UOp> rows = deps_.list(deps_.kinds(AxisKind::Local));
    std::vector<UOp> lanes = lanes_of(value, {});
    const int64_t width = id->src(0)->max, parts = width * extent(rows) * extent(lanes);
    const UOp memory = make(Op::Shared, value->dtype, {}, SharedArg{shared_++, parts});
    // Neighbouring invocations have neighbouring elements: no bank conflicts.
    std::vector<UOp> neighbours;
    if (outermost_) {
      neighbours = std::move(rows);
    } else {
      lanes.insert(lanes.begin(), rows.begin(), rows.end());
    }
    const UOp row = flat_index(lanes), neighbour = flat_index(neighbours);
    const auto element = [&](const UOp& from, const UOp& offset, const UOp& gate = {}) {
      return make_index(from, (row * width + offset) * extent(neighbours) + neighbour, gate);
    };
    UOp complete = make_after(memory, {make_barrier({make_store(element(memory, id), value)})});
    for (int64_t half = width / 2; half > 0; half /= 2) {
      // Those that have no part to add read their own element twice: nobody stores it meanwhile.
      const UOp adds = lt(id, index_const(half)), partner = where(adds, id + half, id);
      const UOp sum = make(op, value->dtype, {make_load(element(complete, id)),
                                              make_load(element(complete, partner))});
      complete = make_after(memory, {make_barrier({make_store(element(complete, id, adds), sum)})});
    }
    const UOp result = make_load(element(complete, index_const(0)));
    return make_after(result, {make_barrier({result})});
  }

  RangeDeps deps_;
  const Target& target_;
  const bool outermost_;
  const std::set<const Node*> stored_;
  int64_t reduces_ = 0;
  std::map<const Node*, RangeMask> around_;  // by range that is folded
  bool by_lanes_ = false;      // shared reductions: lanes hand each other their parts
  int64_t registers_ = 0;
  int32_t shared_ = 0;
};

}  // namespace

void pass_reduces(Lowering& l) {
  ReduceLowerer lowerer(l.ast, l.target, l.shares_outermost, l.shares_rows);
  std::map<const Node*, int> users;
  for (const Node* n : toposort(l.ast))
    for (const UOp& s : n->src()) users[s.get()]++;
  std::set<const Node*> continued;  // MulAdds, and their reductions
  for (const Node* n : toposort(l.ast)) {
    if (lowerer.continues(UOp(n)) && users[n->src(2).get()] == 1)
      continued.insert({n, n->src(2).get()});
  }
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    const bool waits = continued.contains(old.get());
    if (old->op == Op::Reduce) return waits ? UOp() : lowerer.lower(with_src(old, src));
    return waits ? lowerer.lower_continued(with_src(old, src)) : UOp();
  });
}

// Decompositions may find out that a value is the same in every lane: x modulo 0.
void pass_lost_lanes(Lowering& l) {
  std::vector<UOp> folds;
  for (const Node* n : toposort(l.ast)) {
    if (n->op == Op::Reduce || n->op == Op::Dot) folds.push_back(UOp(n));
  }
  if (folds.empty()) return;
  RangeDeps deps(l.ast);
  const auto has_lost = [&](const UOp& fold) {
    const bool dot = fold->op == Op::Dot;
    const RangeMask lanes = deps.of(fold->src(0)) | (dot ? deps.of(fold->src(1)) : 0);
    return std::ranges::any_of(dot ? dot_lanes(fold.get()) : closed_ranges(fold.get()),
                               [&](const UOp& r) { return !(lanes & deps.bit(r)); });
  };
  if (std::none_of(folds.begin(), folds.end(), has_lost)) return;
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op == Op::Dot && has_lost(old)) {
      const UOp product = alu(Op::Mul, {src[0], src[1]});
      return alu(Op::Add, {src[2], fold_lanes(deps, Op::Add, product, src.subspan(3))});
    }
    if (old->op != Op::Reduce) return {};
    return fold_lanes(deps, old->get<ReduceArg>().op, src[0], src.subspan(1));
  });
}

}  // namespace tuff::kernel
