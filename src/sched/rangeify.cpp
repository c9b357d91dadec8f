#include "sched/rangeify.h"

#include <algorithm>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "ir/variants.h"
#include "ir/walk.h"
#include "sched/canonical.h"
#include "sched/index_map.h"
#include "sched/pick.h"
#include "sched/prepare.h"

namespace tuff::sched {

using namespace ir;

namespace {

// Values by (node, index tuple, gate).
struct ValueKey {
  uint32_t node;
  const Node* gate;
  IndexTuple index;
  bool operator==(const ValueKey&) const = default;
};
struct ValueKeyHash {
  size_t operator()(const ValueKey& k) const {
    uint64_t h = k.node * 0x9fb21c651e98df25ull + reinterpret_cast<uintptr_t>(k.gate);
    for (const UOp& u : k.index)
      h = (h ^ reinterpret_cast<uintptr_t>(u.get())) * 0x9fb21c651e98df25ull + (h >> 32);
    return h;
  }
};

class Builder {
 public:
  Builder(const FusePlan& plan, const KernelSpec& spec)
      : plan_(plan), spec_(spec), part_(assigned_part(*plan.nodes[spec.root])) {
    const bool value_alone = spec.part_step == PartStep::Value;
    kernel_.args = {uint32_t(value_alone ? spec.value_slot : (*spec.slot_of)[spec.root])};
  }

  Kernel run() {
    if (spec_.part_step == PartStep::ByIndex) return run_by_index();
    std::vector<UOp> ranges;
    for (const Dim& d : walked().shape) add_loop(d, AxisKind::Loop, ranges);
    out_offset_ = simplify(stored_offset());
    const UOp stored = body();
    const UOp store = make_store(make_index(output_param(), out_offset_), stored);
    kernel_.ast = drop_unused_arguments(sink({{make_end(store, ranges)}}));
    recognize_copy(stored);
    kernel_.ast = canonicalize(kernel_.ast);
    return std::move(kernel_);
  }

 private:
  void add_loop(const Dim& d, AxisKind kind, std::vector<UOp>& ranges) {
    if (d == 1) {
      out_index_.push_back(index_const(0));
    } else {
      out_index_.push_back(range(d.uop(), next_range_++, kind));
      ranges.push_back(out_index_.back());
    }
  }

  // What a Scatter puts into its target, whose memory is there.
  Kernel run_by_index() {
    const Node& n = *plan_.nodes[spec_.root];
    const auto& arg = n.get<ScatterArg>();
    const auto axis = size_t(arg.axis);
    const auto src = plan_.sources(spec_.root);
    const bool ordered = arg.named == Named::Any;
    const Shape& shape = n.src(1)->shape;
    std::vector<UOp> ranges;
    const UOp owner = owner_loop(ordered ? spec_.ordered.owners : 1, ranges);
    for (size_t d = 0; d < shape.size(); d++) {
      const bool along = ordered && d == axis;
      add_loop(along ? spec_.ordered.count : shape[d], along ? AxisKind::Ordered : AxisKind::Loop,
               ranges);
    }
    const UOp step = out_index_[axis];
    if (ordered) out_index_[axis] = simplify(step + spec_.ordered.first.uop());
    const UOp place = cast(value(src[2], out_index_, {}), DType::Index);
    UOp gate = inside(place, n.shape[axis].uop());
    IndexTuple to = out_index_;
    // As where an element is picked (sched/pick.h): the offset stays within the buffer's bounds.
    to[axis] = n.shape[axis].is_const() ? floormod(place, n.shape[axis].uop()) : place;
    if (owner) gate = logical_and(gate, is_owned(to[axis], owner, n.shape[axis].max()));
    const UOp offset = simplify(flat_offset(n.shape, to));
    const UOp memory = output_param();
    // What comes to places of others is not read.
    UOp stored = value(src[1], out_index_, owner ? gate : UOp());
    const bool atomic = arg.named == Named::Unordered;
    if (arg.op != Op::Assign && !atomic) {
      // Each iteration reads what the one before has stored, wherever the index comes from.
      const bool again = ordered && step->op == Op::Range;
      const UOp before = again ? make_after(memory, {step}) : memory;
      stored = alu(arg.op, {make_load(make_index(before, offset, gate)), stored});
    }
    const UOp target = make_index(memory, offset, gate);
    const UOp store = atomic ? combining_store(target, stored, arg.op, ranges)
                             : make_store(target, stored);
    kernel_.ast = drop_unused_arguments(sink({{make_end(store, ranges)}}));
    kernel_.ast = canonicalize(kernel_.ast);
    return std::move(kernel_);
  }
  // One that is combined as often as its loops run. Of those that it does not depend on a kernel may
  // make one iteration: they go.
  static UOp combining_store(const UOp& target, UOp value, Op op, std::vector<UOp>& ranges) {
    UOp count = index_const(1);
    std::erase_if(ranges, [&](const UOp& r) {
      const bool varies = depends_on(target, r) || depends_on(value, r);
      if (!varies) count = count * r->src(0);
      return !varies;
    });
    if (op == Op::Add && !count->is_const_int(1))
      value = alu(Op::Mul, {value, cast(count, value->dtype)});
    return make(Op::Store, DType::Void, {target, value}, ReduceArg{op, {}});
  }
  UOp owner_loop(int64_t owners, std::vector<UOp>& ranges) {
    if (owners < 2) return {};
    ranges.push_back(range(index_const(owners), next_range_++, AxisKind::Loop));
    return ranges.back();
  }
  static UOp inside(const UOp& place, const UOp& extent) {
    return logical_and(ge(place, index_const(0)), lt(place, extent));
  }
  UOp is_owned(const UOp& place, const UOp& owner, int64_t extent) const {
    const int64_t run = (extent + spec_.ordered.owners - 1) / spec_.ordered.owners;
    const UOp first = owner * run;
    return logical_and(ge(place, first), lt(place, first + run));
  }

  // What the root's loops walk.
  const Node& walked() const {
    return *plan_.nodes[part_ ? plan_.sources(spec_.root)[1] : spec_.root];
  }
  UOp stored_offset() const {
    if (!part_ || spec_.part_step == PartStep::Value)
      return flat_offset(walked().shape, out_index_);
    IndexTuple index = out_index_;
    for (size_t d = 0; d < index.size(); d++) index[d] = index[d] + (*part_)[d].a.uop();
    return flat_offset(plan_.nodes[spec_.root]->shape, index);
  }

  UOp output_param() const {
    const Node& n = spec_.part_step == PartStep::Value ? walked() : *plan_.nodes[spec_.root];
    return param(0, n.dtype, element_count(n.shape));
  }

  UOp body() {
    const Node& n = *plan_.nodes[spec_.root];
    const std::span<const uint32_t> src = plan_.sources(spec_.root);
    if (spec_.part_step == PartStep::Store) {
      const UOp offset = simplify(flat_offset(walked().shape, out_index_));
      return make_load(make_index(argument(spec_.value_slot, walked(), offset, {}), offset));
    }
    if (n.op == Op::Contiguous || n.op == Op::Copy || n.op == Op::Scatter) return value(src[0], out_index_, {});
    if (n.op == Op::Assign) return value(src[1], out_index_, {});
    return value(spec_.root, out_index_, {}, true);
  }

  // The value of node i at an index tuple, where gate (empty: always) holds.
  UOp value(uint32_t i, IndexTuple index, const UOp& gate, bool is_body = false) {
    UOp valid;
    while (is_movement(plan_.nodes[i]->op) && (is_body || !plan_.realized[i])) {
      SourceIndex s = through_movement(*plan_.nodes[i], index);
      valid = both(valid, s.valid);
      index = std::move(s.index);
      i = plan_.sources(i)[0];
      is_body = false;
    }
    if (!valid) return at_node(i, index, gate, is_body);
    const DType t = plan_.nodes[i]->dtype;
    valid = simplify_conjunction(gate ? simplify_given(valid, gate) : simplify(valid));
    if (valid->is_const_int(0)) return constant(Scalar::of_int(t, 0));
    if (valid->is_const_int(1)) return at_node(i, index, gate, is_body);
    const UOp all = simplify(both(gate, valid));
    const UOp v = at_node(i, index, all, is_body);
    if (is_load_gated_by(v, all)) return v;  // gives 0 already
    if (is_finite_product(*plan_.nodes[i]) && has_factor_gated_by(v, all)) return v;
    if (v->is_const() && t == DType::Bool && v->get<Scalar>().as_bool()) return valid;
    return where(valid, v, constant(Scalar::of_int(t, 0)));
  }

  UOp at_node(uint32_t i, const IndexTuple& index, const UOp& gate, bool is_body) {
    const Node& n = *plan_.nodes[i];
    if (n.is_const() || n.op == Op::Variable) return UOp(&n);
    if (n.op == Op::Iota) return cast(index[0], n.dtype);
    ValueKey key{i, gate.get(), index};
    if (auto it = memo_.find(key); it != memo_.end()) return it->second;
    UOp v;
    if (n.src_count == 0 || n.op == Op::Assign || (plan_.realized[i] && !is_body)) {
      v = stored_value(i, index, gate);
    } else if (n.op == Op::Reduce) {
      v = reduced(i, index, gate);
    } else {
      v = elementwise(i, index, gate);
    }
    keep_alive_.push_back(gate);
    memo_.emplace(std::move(key), v);
    return v;
  }

  static bool is_load_gated_by(const UOp& v, const UOp& gate) {
    return v->op == Op::Load && v->src(0)->src_count > 2 && v->src(0)->src(2) == gate;
  }

  static bool has_factor_gated_by(const UOp& v, const UOp& gate) {
    return v->op == Op::Mul &&
           (is_load_gated_by(v->src(0), gate) || is_load_gated_by(v->src(1), gate));
  }

  // An operand of arithmetic whose result is selected by the gate: what it is elsewhere does not
  // matter, so a load that stays inside its buffer is not masked, lane by lane.
  static UOp without_needless_gate(const UOp& v, const UOp& gate) {
    if (!is_load_gated_by(v, gate)) return v;
    const UOp &memory = v->src(0)->src(0), &offset = v->src(0)->src(1);
    const Dim count = element_count(memory->shape);
    const bool inside = count.is_const() && offset->min >= 0 && offset->max < count.value();
    return inside ? make_load(make_index(memory, offset)) : v;
  }

  // Where one factor's gate makes a product 0, the other factor asks for no more than keeps it
  // inside its buffer: conjuncts that it does not depend on would mask it lane by lane.
  static void weaken_one_factor(std::vector<UOp>& factors, const UOp& gate) {
    if (!is_load_gated_by(factors[0], gate) || !is_load_gated_by(factors[1], gate)) return;
    const std::vector<UOp> needed[] = {needed_gate(factors[0], gate), needed_gate(factors[1], gate)};
    const size_t which = needed[0].size() < needed[1].size() ? 0 : 1;
    if (needed[which].size() == conjuncts(gate).size()) return;
    UOp weaker;
    for (const UOp& c : needed[which]) weaker = both(weaker, c);
    const UOp& index = factors[which]->src(0);
    factors[which] = make_load(make_index(index->src(0), index->src(1), simplify(weaker)));
  }
  // A smallest part of the gate, in its order, that keeps the load inside its buffer.
  static std::vector<UOp> needed_gate(const UOp& load, const UOp& gate) {
    std::vector<UOp> kept = conjuncts(gate);
    const Dim count = element_count(load->src(0)->src(0)->shape);
    for (size_t i = kept.size(); count.is_const() && i-- > 0;) {
      UOp others;
      for (size_t j = 0; j < kept.size(); j++) others = j == i ? others : both(others, kept[j]);
      if (others && is_inside_given(load->src(0)->src(1), count.value(), others))
        kept.erase(kept.begin() + std::ptrdiff_t(i));
    }
    return kept;
  }

  UOp elementwise(uint32_t i, const IndexTuple& index, const UOp& gate) {
    const Node& n = *plan_.nodes[i];
    std::vector<UOp> src;
    for (uint32_t s : plan_.sources(i)) {
      const UOp v = value(s, plan_.nodes[s]->shape.empty() ? IndexTuple{} : index, gate);
      src.push_back(gate ? without_needless_gate(v, gate) : v);
    }
    if (gate && is_finite_product(n)) weaken_one_factor(src, gate);
    if (n.op == Op::Cast) return cast(src[0], n.dtype);
    if (n.op == Op::Bitcast) return bitcast(src[0], n.dtype);
    return alu(n.op, src, is_finite_product(n) ? Arg() : n.arg);
  }

  UOp reduced(uint32_t i, const IndexTuple& index, const UOp& gate) {
    const Node& n = *plan_.nodes[i];
    const ReduceArg& arg = n.get<ReduceArg>();
    IndexTuple inner = index;
    std::vector<UOp> ranges;
    for (int64_t a : arg.axes) {
      const Dim& d = n.src(0)->shape[a];
      if (d == 1) continue;
      inner[a] = range(d.uop(), next_range_++, AxisKind::Reduce);
      ranges.push_back(inner[a]);
    }
    UOp v = value(plan_.sources(i)[0], inner, gate);
    if (arg.op == Op::Add) v = pick_elements(v, ranges);
    return fold_unused(arg.op, v, ranges);
  }

  // Ranges that the value does not depend on: a sum counts them, a maximum ignores those that have
  // a value at all.
  UOp fold_unused(Op op, UOp v, const std::vector<UOp>& ranges) {
    std::vector<UOp> src{v};
    UOp count = index_const(1);
    for (const UOp& r : ranges) {
      const bool may_be_empty = r->src(0)->min < 1;
      if (op == Op::Mul || depends_on(v, r) || (op == Op::Max && may_be_empty)) {
        src.push_back(r);
      } else {
        count = count * r->src(0);
      }
    }
    const DType t = v->dtype;
    const bool counts = op == Op::Add && !count->is_const_int(1) && t != DType::Bool;
    // A sum is rounded once, after it was counted.
    const DType acc = counts && is_float(t) ? accumulator(t) : t;
    src[0] = v = cast(v, acc);
    if (src.size() > 1) v = make(Op::Reduce, acc, src, ReduceArg{op, {}});
    if (counts) v = alu(Op::Mul, {v, cast(count, acc)});
    return cast(v, t);
  }

  UOp stored_value(uint32_t i, const IndexTuple& index, const UOp& gate) {
    const Node& n = *plan_.nodes[i];
    const int32_t slot = (*spec_.slot_of)[i];
    UOp offset = flat_offset(n.shape, index);
    offset = gate ? simplify_given(offset, gate) : simplify(offset);
    return make_load(make_index(argument(slot, n, offset, gate), offset, gate));
  }

  UOp argument(int32_t slot, const Node& n, const UOp& offset, const UOp& gate) {
    if (slot == spec_.in_place_slot) {
      if (out_offset_ && offset == out_offset_ && !gate) {
        kernel_.in_place = true;
        return output_param();
      }
      kernel_.in_place_conflict = true;
    }
    size_t k = 1;
    while (k < kernel_.args.size() && kernel_.args[k] != uint32_t(slot)) k++;
    if (k == kernel_.args.size()) kernel_.args.push_back(uint32_t(slot));
    return param(int32_t(k), n.dtype, element_count(n.shape));
  }

  // Loads may have been folded away after their buffer was given a number.
  UOp drop_unused_arguments(const UOp& ast) {
    std::vector<uint8_t> used(kernel_.args.size(), 0);
    std::vector<UOp> params;
    for (const Node* n : toposort(ast)) {
      if (n->op != Op::Param) continue;
      used[size_t(n->get<ParamArg>().slot)] = 1;
      params.push_back(UOp(n));
    }
    if (params.size() == kernel_.args.size()) return ast;
    std::vector<int32_t> number(kernel_.args.size(), 0);
    std::vector<uint32_t> args;
    for (size_t k = 0; k < kernel_.args.size(); k++) {
      number[k] = int32_t(args.size());
      if (used[k]) args.push_back(kernel_.args[k]);
    }
    kernel_.args = std::move(args);
    UOpMap<UOp> map;
    for (const UOp& p : params) {
      const ParamArg& a = p->get<ParamArg>();
      if (number[size_t(a.slot)] != a.slot)
        map.emplace(p, param(number[size_t(a.slot)], p->dtype, a.count));
    }
    return substitute(ast, map);
  }

  void recognize_copy(const UOp& v) {
    kernel_.leaves_as_is = kernel_.in_place &&
                           v == make_load(make_index(output_param(), out_offset_));
    if (v->op != Op::Load || kernel_.in_place || part_) return;
    const UOp& from = v->src(0);
    if (from->src_count != 2 || v->dtype != plan_.nodes[spec_.root]->dtype) return;
    const UOp step = simplify(from->src(1) - out_offset_);
    if (!step->is_const()) return;
    kernel_.is_copy = true;
    kernel_.copy_offset = step->const_int();
  }

  const FusePlan& plan_;
  const KernelSpec& spec_;
  const Pairs* const part_;  // that the root stores; null: all
  Kernel kernel_;
  IndexTuple out_index_;
  UOp out_offset_;
  int32_t next_range_ = 0;
  std::unordered_map<ValueKey, UOp, ValueKeyHash> memo_;
  std::vector<UOp> keep_alive_;  // gates named by memo keys
};

}  // namespace

Kernel rangeify(const FusePlan& plan, const KernelSpec& spec) { return Builder(plan, spec).run(); }

}  // namespace tuff::sched
