#include "kernel/opt/opt.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "graph/scalar_eval.h"
#include "graph/walk.h"
#include "kernel/lower/ranges.h"

namespace tuff::kernel {

using namespace graph;

namespace {

constexpr int64_t kMostGroups = int64_t(1) << 48;  // where products saturate

struct OptRow {
  const char* name;
  AxisKind part;  // kind of the new part
  bool output;    // applies to output axes (else to reduced ones); Split and Swap to both
  bool pads;      // an amount that does not divide is masked
};
const OptRow& row_of(OptKind k) {
  static constexpr OptRow rows[] = {
      {"split", AxisKind::Loop, true, false},
      {"upcast", AxisKind::Lane, true, false},
      {"vector", AxisKind::Vector, true, false},
      {"unroll", AxisKind::ReduceLane, false, true},
      {"group", AxisKind::Group, true, true},
      {"local", AxisKind::Local, true, true},
      {"group_reduce", AxisKind::GroupReduce, false, true},
      {"swap", AxisKind::Loop, true, false},
  };
  return rows[size_t(k)];
}

}  // namespace

const char* name(OptKind k) { return row_of(k).name; }
std::string to_string(const Opt& o) {
  return fmt::format("{}({},{})", name(o.kind), o.axis, o.amount);
}
std::string to_string(std::span<const Opt> opts) {
  std::string out;
  for (const Opt& o : opts) out += (out.empty() ? "" : " ") + to_string(o);
  return out;
}

std::optional<std::array<uint32_t, 3>> workgroup_shape(int64_t invocations, const Target& target) {
  if (invocations > int64_t(target.max_invocations)) return {};
  for (int64_t x = std::min<int64_t>(invocations, target.max_local[0]); x > 0; x--) {
    if (invocations % x != 0) continue;
    const int64_t rest = invocations / x;
    for (int64_t y = std::min<int64_t>(rest, target.max_local[1]); y > 0; y--) {
      if (rest % y == 0 && rest / y <= int64_t(target.max_local[2]))
        return std::array{uint32_t(x), uint32_t(y), uint32_t(rest / y)};
    }
  }
  return {};
}

int64_t Axis::lanes() const {
  int64_t n = 1;
  for (const AxisPart& p : parts) n *= is_lane(p.kind) ? p.size->max : 1;
  return n;
}

Tiling::Tiling(const UOp& ast, const Target& target) : ast_(ast), target_(target) {
  auto add = [&](const UOp& r, bool reduced) {
    if (axis_of(r.get()) >= 0) return;
    Axis a;
    a.range = r;
    a.reduced = reduced;
    a.parts.push_back({kind_of(r.get()), r->src(0)});
    order_.push_back(int(axes_.size()));
    axes_.push_back(std::move(a));
  };
  const std::vector<const Node*> order = toposort(ast);
  for (bool reduced : {false, true}) {
    for (const Node* n : order) {
      if (n->op != (reduced ? Op::Reduce : Op::End)) continue;
      for (const UOp& r : n->src().subspan(1)) add(r, reduced);
    }
  }
  RangeDeps deps(ast);
  for (const Node* n : order) {
    if (n->op != Op::Reduce) continue;
    Reduction& r = reductions_.emplace_back();
    for (const UOp& x : n->src().subspan(1)) r.own.push_back(axis_of(x.get()));
    for (const UOp& x : deps.list(deps.of(UOp(n)))) r.around.push_back(axis_of(x.get()));
  }
}

int Tiling::axis_of(const Node* range) const {
  for (size_t i = 0; i < axes_.size(); i++) {
    if (axes_[i].range.get() == range) return int(i);
  }
  return -1;
}

int64_t Tiling::local_size() const {
  int64_t n = 1;
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts) n *= p.kind == AxisKind::Local ? p.size->max : 1;
  }
  return n;
}

int64_t Tiling::groups_left() const {
  auto times = [](int64_t n, int64_t by) { return n > kMostGroups / by ? kMostGroups : n * by; };
  int64_t most = 1, used = 1;
  for (const uint32_t limit : target_.max_groups) most = times(most, std::max(limit, 1u));
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::Group) used = times(used, std::max<int64_t>(p.size->max, 1));
    }
  }
  return most / used;
}

int64_t Tiling::lane_count() const {
  int64_t n = 1;
  for (const Axis& a : axes_) n *= a.lanes();
  return n;
}

void Tiling::check_kind(const Opt& o) const {
  auto refuse = [&](const char* why) { fail<InvalidArgument>("{}: {}", to_string(o), why); };
  if (o.axis < 0 || o.axis >= int(axes_.size())) refuse("there is no such axis");
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Swap) {
    if (o.amount < 0 || o.amount >= int64_t(axes_.size())) refuse("there is no such axis");
    if (axes_[o.amount].reduced != axis.reduced)
      refuse("an output axis and a reduced one cannot change places");
    return;
  }
  if (o.kind != OptKind::Split && row_of(o.kind).output == axis.reduced) {
    refuse(axis.reduced ? "the axis is reduced" : "the axis is not reduced");
  }
  if (!is_loop(axis.parts[axis.main].kind)) refuse("nothing is left of the axis");
  if (o.kind == OptKind::Vector && has_part(-1, AxisKind::Vector))
    refuse("the kernel has a vector axis already");
  if (o.kind == OptKind::Local || o.kind == OptKind::GroupReduce) check_shared(o);
}

bool Tiling::has_part(int axis, AxisKind kind) const {
  for (int a = 0; a < int(axes_.size()); a++) {
    if (axis >= 0 && a != axis) continue;
    for (const AxisPart& p : axes_[a].parts) {
      if (p.kind == kind) return true;
    }
  }
  return false;
}

// Invocations of a workgroup are either outputs of their own or share reductions; the latter must
// not stand inside each other, since both would be split over the same invocations.
void Tiling::check_shared(const Opt& o) const {
  auto refuse = [&](const char* why) { fail<InvalidArgument>("{}: {}", to_string(o), why); };
  auto contains = [](const std::vector<int>& v, int a) {
    return std::find(v.begin(), v.end(), a) != v.end();
  };
  if (!target_.has_local) refuse("the target has no workgroups");
  const bool shared = has_part(-1, AxisKind::GroupReduce);
  if (o.kind == OptKind::Local) {
    if (!shared) return;
    if (has_part(-1, AxisKind::Local))
      refuse("the workgroup holds an output axis beside its shared reduction");
    for (const Reduction& r : reductions_) {
      if (contains(r.around, o.axis))
        refuse("a reduction that the workgroup shares depends on the axis");
    }
    return;
  }
  if (has_part(-1, AxisKind::Local)) refuse("the workgroup holds output axes");
  for (const Reduction& r : reductions_) {
    for (const auto* axes : {&r.own, &r.around}) {
      for (int a : *axes) {
        const bool together =
            contains(r.own, o.axis) || (contains(r.around, o.axis) && contains(r.own, a));
        if (together && has_part(a, AxisKind::GroupReduce))
          refuse("a reduction around or inside it is shared already");
      }
    }
  }
}

void Tiling::check_amount(const Opt& o) const {
  auto refuse = [&](const std::string& why) { fail<InvalidArgument>("{}: {}", to_string(o), why); };
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Group && (o.amount == 0 ? axis.main_size() : o.amount) > groups_left())
    refuse(fmt::format("the launch grid has room for {} times as many workgroups", groups_left()));
  if (o.kind == OptKind::Group && o.amount == 0) return;
  if (!axis.main_is_const()) refuse("the axis has a symbolic size");
  if (o.amount < 2 || o.amount > axis.main_size())
    refuse(fmt::format("2 to {} is possible", axis.main_size()));
  if (!row_of(o.kind).pads && axis.main_size() % o.amount != 0) {
    refuse(fmt::format("{} does not divide {}", o.amount, axis.main_size()));
  }
  const bool power = std::has_single_bit(uint64_t(o.amount));
  if ((o.kind == OptKind::Vector || o.kind == OptKind::GroupReduce) && !power)
    refuse("no power of two");
  if (o.kind == OptKind::Local || o.kind == OptKind::GroupReduce) {
    const int64_t total = o.amount * (o.kind == OptKind::Local ? local_size() : 1);
    const bool fits = o.kind == OptKind::Local && !has_part(-1, AxisKind::GroupReduce)
                          ? workgroup_shape(total, target_).has_value()
                          : o.amount <= int64_t(target_.max_local[0]);
    if (total > int64_t(target_.max_invocations) || !fits) {
      refuse(fmt::format("a workgroup has at most {} invocations, ({},{},{}) along its axes",
                         target_.max_invocations, target_.max_local[0], target_.max_local[1],
                         target_.max_local[2]));
    }
  }
  if (o.kind != OptKind::GroupReduce && o.kind != OptKind::Local) return;
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::GroupReduce && p.size->max != o.amount)
        refuse("a reduction is shared by another number");
    }
  }
}

void Tiling::split_main(Axis& axis, AxisKind kind, int64_t amount) {
  AxisPart& main = axis.parts[axis.main];
  const int64_t size = main.size->max;
  if (size % amount != 0) axis.padded = true;
  if (kind == AxisKind::Loop && axis.reduced) kind = AxisKind::Reduce;
  main.size = index_const((size + amount - 1) / amount);
  axis.parts.insert(axis.parts.begin() + axis.main + 1, {kind, index_const(amount)});
}

void Tiling::group(Axis& axis, int64_t amount) {
  AxisPart& main = axis.parts[axis.main];
  if (amount == 0 || (main.size->is_const() && amount == main.size->max)) {
    main.kind = AxisKind::Group;
    return;
  }
  if (main.size->max % amount != 0) axis.padded = true;
  main.size = index_const((main.size->max + amount - 1) / amount);
  axis.parts.insert(axis.parts.begin() + axis.main, {AxisKind::Group, index_const(amount)});
  axis.main++;
}

void Tiling::apply(const Opt& o) {
  check_kind(o);
  if (o.kind == OptKind::Swap) {
    const auto a = std::find(order_.begin(), order_.end(), o.axis);
    const auto b = std::find(order_.begin(), order_.end(), int(o.amount));
    std::iter_swap(a, b);
  } else {
    check_amount(o);
    if (o.kind == OptKind::Group) {
      group(axes_[o.axis], o.amount);
    } else {
      split_main(axes_[o.axis], row_of(o.kind).part, o.amount);
    }
  }
  applied_.push_back(o);
}

bool Tiling::try_apply(const Opt& o) {
  try {
    apply(o);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

namespace {

// An axis as the rebuilt AST sees it.
struct BuiltAxis {
  UOp value;                // replaces the range; inside it even where the axis is padded
  UOp valid;                // empty: always
  std::vector<UOp> ranges;  // outermost first
};

BuiltAxis build_axis(const Axis& axis, int32_t& next_id) {
  BuiltAxis b;
  for (const AxisPart& p : axis.parts) {
    if (p.size->is_const_int(1)) continue;
    const UOp r = range(p.size, next_id++, p.kind);
    b.value = b.value ? b.value * p.size + r : r;
    b.ranges.push_back(r);
  }
  if (!b.value) b.value = index_const(0);
  if (axis.padded) {
    const int64_t size = axis.range->src(0)->max;
    b.valid = lt(b.value, index_const(size));
    b.value = where(b.valid, b.value, index_const(size - 1));
  }
  return b;
}

UOp and_gate(const UOp& index, const UOp& gate) {
  const UOp g = index->src_count > 2 ? logical_and(index->src(2), gate) : gate;
  return make(Op::Index, index->dtype, {index->src(0), index->src(1), g});
}

}  // namespace

UOp Tiling::build() const {
  std::vector<BuiltAxis> built(axes_.size());
  std::unordered_map<const Node*, int> axis_index;
  int32_t next_id = 0;
  for (size_t i = 0; i < axes_.size(); i++) {
    built[i] = build_axis(axes_[i], next_id);
    axis_index[axes_[i].range.get()] = int(i);
  }
  // The axes a node closes, in loop order.
  auto closed = [&](const UOp& old) {
    std::vector<int> axes;
    for (const UOp& r : old->src().subspan(1)) axes.push_back(axis_index.at(r.get()));
    auto position = [&](int a) { return std::find(order_.begin(), order_.end(), a); };
    std::sort(axes.begin(), axes.end(), [&](int a, int b) { return position(a) < position(b); });
    return axes;
  };
  return rebuild(ast_, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op == Op::Range) return built[axis_index.at(old.get())].value;
    if (old->op != Op::End && old->op != Op::Reduce)
      return is_alu(old->op) && old->op != Op::Cast && old->op != Op::Bitcast
                 ? alu(old->op, src, old->arg)
                 : UOp();
    std::vector<UOp> out{src[0]};
    for (int a : closed(old)) {
      const BuiltAxis& b = built[a];
      out.insert(out.end(), b.ranges.begin(), b.ranges.end());
      if (!b.valid) continue;
      if (old->op == Op::End) {
        out[0] = make(Op::Store, DType::Void, {and_gate(out[0]->src(0), b.valid), out[0]->src(1)});
      } else {
        const ReduceArg& arg = old->get<ReduceArg>();
        out[0] = where(b.valid, out[0], constant(reduce_identity(arg.op, out[0]->dtype)));
      }
    }
    if (old->op == Op::Reduce && out.size() == 1) return out[0];
    return with_src(old, out);
  });
}

}  // namespace tuff::kernel
