#include "kernel/opt/opt.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "kernel/analysis/kept_rows.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/matrices.h"
#include "kernel/opt/stage.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

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
      {"upcast", AxisKind::Lane, true, true},
      {"vector", AxisKind::Vector, true, true},
      {"unroll", AxisKind::ReduceLane, false, true},
      {"group", AxisKind::Group, true, true},
      {"local", AxisKind::Local, true, true},
      {"group_reduce", AxisKind::GroupReduce, false, true},
      {"swap", AxisKind::Loop, true, false},
      {"slab", AxisKind::Reduce, true, false},
      {"spread", AxisKind::Group, true, true},
      {"stage", AxisKind::Loop, true, false},
      {"ahead", AxisKind::Loop, true, false},
      {"matrix", AxisKind::Matrix, true, false},
  };
  return rows[size_t(k)];
}

}  // namespace

const char* name(OptKind k) { return row_of(k).name; }
bool allows(const Target& target, OptKind k) {
  if (k == OptKind::Local || k == OptKind::GroupReduce) return target.has_local;
  if (k == OptKind::Ahead) return target.has_local && target.shared_bytes > 0;
  // No kernel's rows are kept for a workgroup where loads are expensive (docs/design/attention.md).
  if (k == OptKind::Slab)
    return target.has_local && target.shared_bytes > 0 && !target.loads_are_expensive();
  if (k == OptKind::Matrix) return target.has_local && !target.matrix_shapes.empty();
  return k != OptKind::Stage || target.shared_bytes > 0;
}
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
  for (const UOp& end : ast->src()) {
    for (const UOp& r : end->src().subspan(1)) add(r, false);
  }
  for (bool reduced : {false, true}) {
    for (const Node* n : order) {
      if (n->op != (reduced ? Op::Reduce : Op::End)) continue;
      for (const UOp& r : n->src().subspan(1)) add(r, reduced);
    }
  }
  find_nests();
  RangeDeps deps(ast);
  const std::map<int32_t, int32_t> overwrites = overwritten_rows(ast);
  for (const Node* n : order) {
    if (n->op == Op::End) {
      Stored& s = stored_.emplace_back();
      for (const UOp& r : deps.list(deps.of(n->src(0)))) s.axes.push_back(axis_of(r.get()));
      for (const UOp& r : deps.list(deps.of(UOp(n)))) s.around.push_back(axis_of(r.get()));
      const Node* memory = n->src(0)->src(0)->src(0).get();
      if (memory->op == Op::Shared) {
        const int64_t count =
            target.has_local ? row_pitch(UOp(memory)) : memory->get<SharedArg>().count;
        s.element_bytes = int64_t(size_bytes(memory->dtype));
        s.kept_bytes = count * s.element_bytes;
        s.overwrites = overwrites.contains(memory->get<SharedArg>().number);
        for (const UOp& r : n->src().subspan(1)) axes_[size_t(axis_of(r.get()))].kept = true;
      }
    }
    if (n->op != Op::Reduce) continue;
    Reduction& r = reductions_.emplace_back();
    for (const UOp& x : n->src().subspan(1)) r.own.push_back(axis_of(x.get()));
    for (const UOp& x : deps.list(deps.of(UOp(n)))) r.around.push_back(axis_of(x.get()));
    r.bytes = int64_t(size_bytes(is_float(n->dtype) ? accumulator(n->dtype) : n->dtype));
  }
  find_columns();
  if (target.has_local) find_slab_axes();
  factors_ = factors_of(ast, deps, *this);
}

// Axes that one End closes or computes with are one nest, and so are those of Ends that share some.
void Tiling::find_nests() {
  for (size_t i = 0; i < axes_.size(); i++) axes_[i].nest = int(i);
  for (const UOp& end : ast_->src()) {
    std::vector<int> members;
    for (const Node* n : toposort(end)) {
      if (n->op == Op::Range && axis_of(n) >= 0) members.push_back(axis_of(n));
    }
    for (int m : members) {
      const int from = axes_[m].nest, to = axes_[members[0]].nest;
      for (Axis& a : axes_) a.nest = a.nest == from ? to : a.nest;
    }
  }
  std::vector<int> first;
  for (Axis& a : axes_) {
    const auto it = std::find(first.begin(), first.end(), a.nest);
    const int number = int(it - first.begin());
    if (it == first.end()) first.push_back(a.nest);
    a.nest = number;
  }
  nests_ = std::max(int(first.size()), 1);
}

int Tiling::axis_of(const Node* range) const {
  for (size_t i = 0; i < axes_.size(); i++) {
    if (axes_[i].range.get() == range) return int(i);
  }
  return -1;
}

int64_t Tiling::local_size() const {
  int64_t n = matrices_ ? target_.subgroup_size : spread_width_;
  if (keeps_rows()) n *= columns_together();
  for (const Axis& a : axes_) {
    if (a.rows || a.column) continue;
    for (const AxisPart& p : a.parts) n *= p.kind == AxisKind::Local ? p.size->max : 1;
  }
  return n;
}

int64_t Tiling::groups_left() const {
  auto times = [](int64_t n, int64_t by) { return n > kMostGroups / by ? kMostGroups : n * by; };
  int64_t most = 1, used = std::max<int64_t>(spread_groups_, 1);
  for (const uint32_t limit : target_.max_groups) most = times(most, std::max(limit, 1u));
  for (const Axis& a : axes_) {
    if (a.rows) continue;
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

double Tiling::useful() const {
  double share = 1;
  for (const Axis& a : axes_) {
    if (!a.padded) continue;
    double covered = 1;
    for (const AxisPart& p : a.parts) covered *= double(p.size->max);
    share *= double(a.range->src(0)->max) / covered;
  }
  return share;
}

// Loops that two stores have in common stand around those that only one of them has.
bool Tiling::keeps_stores_outside(const Opt& swap) const {
  const auto position = [&](int axis) {
    const int now = axis == swap.axis ? int(swap.amount) : axis == swap.amount ? swap.axis : axis;
    return std::ranges::find(order_, now) - order_.begin();
  };
  for (const Stored& s : stored_) {
    for (const Stored& t : stored_) {
      for (int own : s.axes) {
        if (contains(t.axes, own)) continue;
        const auto inside = [&](int a) {
          return contains(t.axes, a) && position(a) > position(own);
        };
        if (std::ranges::any_of(s.axes, inside)) return false;
      }
    }
  }
  return true;
}

void Tiling::refuse(const Opt& o, const std::string& why) {
  fail<InvalidArgument>("{}: {}", to_string(o), why);
}

void Tiling::check_kind(const Opt& o) const {
  if (o.kind == OptKind::Matrix) return check_matrix(o);
  if (matrices_) check_beside_matrices(o);
  if (o.kind == OptKind::Stage) return check_stage(o);
  if (o.kind == OptKind::Ahead) return check_ahead(o);
  if (!staged_.empty()) refuse(o, "what is staged has been copied for the loops as they are");
  if (o.axis < 0 || o.axis >= int(axes_.size())) refuse(o, "there is no such axis");
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Swap) {
    if (o.amount < 0 || o.amount >= int64_t(axes_.size())) refuse(o, "there is no such axis");
    if (axes_[o.amount].reduced != axis.reduced)
      refuse(o, "an output axis and a reduced one cannot change places");
    if (!keeps_stores_outside(o))
      refuse(o, "a loop would go around a store that stands outside of it");
    return;
  }
  if (o.kind == OptKind::Slab) return check_slab(o);
  if (o.kind != OptKind::Split && row_of(o.kind).output == axis.reduced) {
    refuse(o, axis.reduced ? "the axis is reduced" : "the axis is not reduced");
  }
  if (!is_loop(axis.parts[axis.main].kind)) refuse(o, "nothing is left of the axis");
  if (keeps_rows()) check_kept(o);
  if (axis.rows) refuse(o, "what is left of the axis is shared out to the launch");
  if (o.kind == OptKind::Vector) check_vector(o);
  if (o.kind == OptKind::Local || o.kind == OptKind::GroupReduce) check_shared(o);
  if (o.kind == OptKind::Spread) check_spread(o);
}

// One vector axis for all that is stored together; all of one width.
void Tiling::check_vector(const Opt& o) const {
  for (int a = 0; a < int(axes_.size()); a++) {
    for (const AxisPart& p : axes_[size_t(a)].parts) {
      if (p.kind != AxisKind::Vector) continue;
      for (const Stored& s : stored_) {
        if (contains(s.axes, a) && contains(s.axes, o.axis))
          refuse(o, "the nest has a vector axis already");
      }
      if (p.size->max != o.amount) refuse(o, "another nest has vectors of another width");
    }
  }
}

void Tiling::check_spread(const Opt& o) const {
  for (const Axis& a : axes_) {
    if (a.rows && a.nest == axes_[o.axis].nest) refuse(o, "the nest is shared out already");
  }
  if (spread_groups_ && spread_groups_ != o.amount)
    refuse(o, "another nest is shared out to another number of groups");
  if (has_part(o.axis, AxisKind::Group)) refuse(o, "the axis has launch groups of its own");
  if (has_part(-1, AxisKind::GroupReduce) || (!spread_groups_ && has_part(-1, AxisKind::Local)))
    refuse(o, "the workgroup holds an axis of its own");
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
  if (!target_.has_local) refuse(o, "the target has no workgroups");
  if (keeps_rows()) return is_column(o) ? check_columns(o) : void();
  if (spread_groups_) refuse(o, "the workgroup takes rows of axes that are shared out");
  const bool shared = has_part(-1, AxisKind::GroupReduce);
  if (o.kind == OptKind::Local) {
    if (!shared) return;
    if (has_part(-1, AxisKind::Local))
      refuse(o, "the workgroup holds an output axis beside its shared reduction");
    for (const Reduction& r : reductions_) {
      if (contains(r.around, o.axis))
        refuse(o, "a reduction that the workgroup shares depends on the axis");
    }
    return;
  }
  if (has_part(-1, AxisKind::Local)) refuse(o, "the workgroup holds output axes");
  check_nested(o);
}

void Tiling::check_nested(const Opt& o) const {
  for (const Reduction& r : reductions_) {
    for (const auto* axes : {&r.own, &r.around}) {
      for (int a : *axes) {
        const bool together =
            contains(r.own, o.axis) || (contains(r.around, o.axis) && contains(r.own, a));
        if (together && has_part(a, AxisKind::GroupReduce))
          refuse(o, "a reduction around or inside it is shared already");
      }
    }
  }
}

void Tiling::check_amount(const Opt& o) const {
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Group && (o.amount == 0 ? axis.main_size() : o.amount) > groups_left())
    refuse(o, fmt::format("the launch grid has room for {} times as many workgroups",
                          groups_left()));
  if (o.kind == OptKind::Group && o.amount == 0) {
    for (const Node* n : toposort(axis.parts[axis.main].size)) {
      if (n->op == Op::Range) refuse(o, "the axis has as many iterations as its launch group says");
    }
    return;
  }
  if (!axis.main_is_const()) refuse(o, "the axis has a symbolic size");
  if (o.kind == OptKind::Spread) {
    const int64_t most = spread_groups_ ? o.amount : groups_left();
    if (o.amount < 2 || o.amount > most) refuse(o, fmt::format("2 to {} is possible", most));
    return;
  }
  const bool pads = row_of(o.kind).pads && !matrices_ && !axis.slabs;
  // A vector may be longer than the whole axis: masked, it takes the place of scalars.
  const bool vectors = pads && (o.kind == OptKind::Vector || o.kind == OptKind::Unroll);
  const int64_t most =
      vectors ? int64_t(std::bit_ceil(uint64_t(axis.main_size()))) : axis.main_size();
  if (o.amount < 2 || o.amount > most) refuse(o, fmt::format("2 to {} is possible", most));
  if (!pads && axis.main_size() % o.amount != 0) {
    refuse(o, fmt::format("{} does not divide {}", o.amount, axis.main_size()));
  }
  const bool power = std::has_single_bit(uint64_t(o.amount));
  if ((o.kind == OptKind::Vector || o.kind == OptKind::GroupReduce) && !power)
    refuse(o, "no power of two");
  if (o.kind == OptKind::Local || o.kind == OptKind::GroupReduce) check_workgroup(o);
}

void Tiling::check_workgroup(const Opt& o) const {
  int64_t total = o.amount * (o.kind == OptKind::Local ? local_size() : 1);
  if (keeps_rows())
    total = is_column(o) ? local_size() / columns_together() * o.amount : local_size() * o.amount;
  const int64_t along_x = matrices_ ? total : o.amount;
  const bool flat = o.kind == OptKind::Local && !has_part(-1, AxisKind::GroupReduce) && !matrices_;
  const bool fits = flat || keeps_rows() ? workgroup_shape(total, target_).has_value()
                                         : along_x <= int64_t(target_.max_local[0]);
  if (total > int64_t(target_.max_invocations) || !fits) {
    refuse(o, fmt::format("a workgroup has at most {} invocations, ({},{},{}) along its axes",
                       target_.max_invocations, target_.max_local[0], target_.max_local[1],
                       target_.max_local[2]));
  }
  if (keeps_rows()) return;
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::GroupReduce && p.size->max != o.amount)
        refuse(o, "a reduction is shared by another number");
    }
  }
}

void Tiling::split_main(Axis& axis, AxisKind kind, int64_t amount) {
  AxisPart& main = axis.parts[axis.main];
  const int64_t size = main.size->max;
  if (size % amount != 0) axis.padded = true;
  if (kind == AxisKind::Loop && axis.reduced) kind = AxisKind::Reduce;
  main.size = index_const(ceil_div(size, amount));
  axis.parts.insert(axis.parts.begin() + axis.main + 1, {kind, index_const(amount)});
}

void Tiling::group(Axis& axis, int64_t amount) {
  AxisPart& main = axis.parts[axis.main];
  if (amount == 0 || (main.size->is_const() && amount == main.size->max)) {
    main.kind = AxisKind::Group;
    return;
  }
  if (main.size->max % amount != 0) axis.padded = true;
  main.size = index_const(ceil_div(main.size->max, amount));
  axis.parts.insert(axis.parts.begin() + axis.main, {AxisKind::Group, index_const(amount)});
  axis.main++;
}

int64_t Tiling::spread_width(const Target& target) {
  constexpr int64_t kWidth = 64;
  if (!target.has_local) return 1;
  return int64_t(std::bit_floor(
      uint64_t(std::min<int64_t>({kWidth, target.max_invocations, target.max_local[0]}))));
}

// A row is what one workgroup takes at once.
void Tiling::spread(Axis& axis, int64_t groups) {
  spread_groups_ = groups;
  spread_width_ = spread_width(target_);
  AxisPart& main = axis.parts[axis.main];
  axis.padded = axis.padded || main.size->max % spread_width_ != 0;
  axis.rows = ceil_div(main.size->max, spread_width_);
  axis.first = spread_rows_ % groups;
  spread_rows_ += axis.rows;
  main.size = index_const(ceil_div(axis.rows, groups));
  const auto at = axis.parts.begin() + axis.main;
  if (!target_.has_local) {
    // A run each: groups beyond the last row find none left.
    axis.parts.insert(at, {AxisKind::Group, index_const(groups)});
    axis.main++;
    return;
  }
  axis.parts.insert(at + 1, {{AxisKind::Group, index_const(groups)},
                             {AxisKind::Local, index_const(spread_width_)}});
}

void Tiling::apply(const Opt& o) {
  check_kind(o);
  if (o.kind == OptKind::Matrix) {
    split_matrices(o);
  } else if (o.kind == OptKind::Stage) {
    staged_.push_back(o);
  } else if (o.kind == OptKind::Ahead) {
    ahead_.push_back(o.axis);
  } else if (o.kind == OptKind::Swap) {
    const auto a = std::find(order_.begin(), order_.end(), o.axis);
    const auto b = std::find(order_.begin(), order_.end(), int(o.amount));
    std::iter_swap(a, b);
  } else {
    check_amount(o);
    if (o.kind == OptKind::Slab) {
      take_slabs(o.amount);
    } else if (o.kind == OptKind::Group) {
      group(axes_[o.axis], o.amount);
    } else if (o.kind == OptKind::Spread) {
      spread(axes_[o.axis], o.amount);
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
  UOp value;                // replaces the range
  UOp base;                 // the same where a matrix begins
  UOp slab, within;         // the loop over slabs, and the place in one
  UOp valid;                // empty: always
  bool gates = false;       // loads are gated by `valid`; else `value` stays inside the range
  std::vector<UOp> ranges;  // outermost first
};

// Makes the ranges of all axes. Nests beside each other have vector lanes and the launch that they
// are shared out to in common: the same Ranges.
class AxisBuilder {
 public:
  explicit AxisBuilder(const Target& target) : target_(target) {}

  // `element`: what stands for the axis inside a matrix, if it has such a part.
  BuiltAxis build(const Axis& axis, const UOp& element) {
    BuiltAxis b;
    b.within = index_const(0);
    for (size_t i = 0; i < axis.parts.size(); i++) {
      const AxisPart& p = axis.parts[i];
      if (axis.slabs && i == 0) {
        b.value = b.slab = b.ranges.emplace_back(joint(p, p.kind));
        continue;
      }
      if (p.kind == AxisKind::Matrix) {
        const UOp whole = (b.value ? b.value : index_const(0)) * p.size;
        b.base = whole;
        b.value = whole + element;
        continue;
      }
      const bool shared_out = axis.rows && int(i) == axis.main;
      const UOp loop = shared_out ? rows_loop(axis) : UOp();
      if (loop ? loop->src(0)->is_const_int(1) : p.size->is_const_int(1)) continue;
      const UOp r = loop                ? loop
                    : is_joint(axis, p) ? joint(p, joint_kind(axis, p))
                                        : range(p.size, next_id_++, p.kind);
      const UOp at = axis.rows && p.kind == AxisKind::Group ? busy_turn(axis, p) : r;
      b.value = b.value ? b.value * p.size + at : at;
      b.within = b.within * p.size + at;
      b.ranges.push_back(r);
    }
    if (!b.value) b.value = index_const(0);
    if (!b.base) b.base = b.value;
    if (axis.padded) {
      const int64_t size = axis.range->src(0)->max;
      b.valid = lt(b.value, index_const(size));
      // What vector lanes walk stays contiguous: a gate costs less there than a gather.
      b.gates = std::ranges::any_of(axis.parts, [&](auto& p) { return is_vector(p); });
      if (!b.gates) b.value = where(b.valid, b.value, index_const(size - 1));
    }
    return b;
  }
  int32_t& next_id() { return next_id_; }

 private:
  // Partial sums of a CPU are lanes of vectors where they fill some.
  bool is_vector(const AxisPart& p) const {
    return p.kind == AxisKind::Vector ||
           (p.kind == AxisKind::ReduceLane && !target_.has_local &&
            p.size->max * int64_t(sizeof(float)) >= int64_t(target_.vector_bytes));
  }
  static bool is_joint(const Axis& axis, const AxisPart& p) {
    return p.kind == AxisKind::Vector || (axis.column && p.kind == AxisKind::Local) ||
           (axis.rows && (p.kind == AxisKind::Group || p.kind == AxisKind::Local));
  }
  // Columns of kept rows are the invocations that share reductions of them.
  static AxisKind joint_kind(const Axis& axis, const AxisPart& p) {
    return axis.column && p.kind == AxisKind::Local ? AxisKind::GroupReduce : p.kind;
  }
  UOp joint(const AxisPart& p, AxisKind kind) {
    for (const UOp& r : joint_) {
      if (r->get<RangeArg>().kind == kind) return r;
    }
    joint_.push_back(range(p.size, next_id_++, kind));
    return joint_.back();
  }
  // Which of the nest's groups this one is: nests begin where the one before ended, so that short
  // ones do not all go to the first groups.
  UOp turn(const Axis& axis, const AxisPart& groups) {
    const int64_t n = groups.size->max;
    const UOp group = joint(groups, AxisKind::Group);
    return axis.first ? floormod(group + (n - axis.first), n) : group;
  }
  // A group without rows makes no iteration, but what depends on the group alone leaves the loop:
  // it is done for the last group that has some.
  UOp busy_turn(const Axis& axis, const AxisPart& groups) {
    const UOp group = turn(axis, groups);
    const int64_t most = axis.parts[axis.main].size->max;
    const int64_t busy = shared_in_turn(axis) ? axis.rows : ceil_div(axis.rows, most);
    if (busy >= groups.size->max) return group;
    return where(lt(group, index_const(busy)), group, index_const(busy - 1));
  }
  static bool shared_in_turn(const Axis& axis) {
    const size_t next = size_t(axis.main) + 1;
    return next < axis.parts.size() && axis.parts[next].kind == AxisKind::Group;
  }
  // As many iterations as there are rows for this group: numbers known here, chosen by its id.
  UOp rows_loop(const Axis& axis) {
    const bool in_turn = shared_in_turn(axis);
    const AxisPart& groups = axis.parts[in_turn ? axis.main + 1 : axis.main - 1];
    const int64_t n = groups.size->max, most = axis.parts[axis.main].size->max;
    const int64_t full = in_turn ? axis.rows - (most - 1) * n : axis.rows / most;
    const int64_t rest = in_turn ? most - 1 : axis.rows % most;
    UOp size = index_const(most);
    if (full < n) {
      const UOp group = turn(axis, groups);
      const UOp others =
          in_turn ? index_const(rest)
                  : where(lt(group, index_const(full + 1)), index_const(rest), index_const(0));
      size = where(lt(group, index_const(full)), size, others);
    }
    return range(size, next_id_++, AxisKind::Loop);
  }

  const Target& target_;
  int32_t next_id_ = 0;
  std::vector<UOp> joint_;
};

UOp zero_unless(const UOp& valid, const UOp& value) {
  return where(valid, value, constant(reduce_identity(Op::Add, value->dtype)));
}

// Rebuilds a Tiling's AST over the parts of its axes.
class Builder {
 public:
  Builder(const Tiling& t, const UOp& ast, const std::vector<int>& order,
          const std::vector<Opt>& staged, const std::vector<int>& ahead)
      : t_(t),
        order_(order),
        ahead_(ahead),
        old_deps_(ast),
        axes_(t.target()),
        built_(t.axes().size()) {
    build_axes();
    for (const Node* n : toposort(ast)) {
      if (n->op == Op::Shared) copies_ = std::max(copies_, n->get<SharedArg>().number + 1);
    }
    for (const Opt& o : staged) staged_[t.factors()[size_t(o.axis)].product.get()].push_back(o);
    if (!staged.empty()) find_masked_copies(ast);
    for (size_t i = 0; i < built_.size(); i++) {
      if (built_[i].gates) gating_.push_back(i);
    }
  }

  UOp operator()(const UOp& old, std::span<const UOp> src) {
    switch (old->op) {
      case Op::Range: return built_[size_t(t_.axis_of(old.get()))].value;
      case Op::Index: return in_slab(old) ? element_of_slab(old, src) : gated(old, src);
      case Op::Shared: return slab_of(old);
      case Op::End:
      case Op::Reduce: return closing(old, src);
      case Op::Mul:
        if (const auto it = staged_.find(old.get()); it != staged_.end())
          return staged_product(old, it->second, src);
        break;
      default: break;
    }
    return is_alu(old->op) && old->op != Op::Cast && old->op != Op::Bitcast
               ? alu(old->op, src, old->arg)
               : UOp();
  }

 private:
  // Where a loop has as many iterations as a launch group says, the group is built first.
  void build_axes() {
    UOpMap<UOp> groups;
    if (const auto& m = t_.matrices())
      elements_ = matrix_elements(m->shape, t_.target().subgroup_size, axes_.next_id());
    for (const bool sized_by_groups : {false, true}) {
      for (size_t i = 0; i < built_.size(); i++) {
        Axis axis = t_.axes()[i];
        const bool by_groups = std::ranges::any_of(
            toposort(axis.range->src(0)), [](const Node* n) { return n->op == Op::Range; });
        if (by_groups != sized_by_groups) continue;
        for (AxisPart& p : axis.parts) p.size = by_groups ? substitute(p.size, groups) : p.size;
        built_[i] = axes_.build(axis, element_of(int(i)));
        groups.emplace(axis.range, built_[i].value);
      }
    }
  }

  UOp element_of(int axis) const {
    const auto& m = t_.matrices();
    if (!m || axis == m->k) return index_const(0);
    return axis == m->m ? elements_.row : axis == m->n ? elements_.column : UOp();
  }
  UOp matrices(std::span<const UOp> summed) {
    std::vector<MatrixAxis> axes;
    for (int a : order_) {
      const BuiltAxis& b = built_[size_t(a)];
      axes.push_back({t_.axes()[size_t(a)].range, b.base, b.ranges});
    }
    return matrix_sum(*t_.matrices(), axes, summed, elements_, copies_++);
  }

  bool walks(const UOp& offset, size_t axis) {
    return (old_deps_.of(offset) & old_deps_.bit(t_.axes()[axis].range)) != 0;
  }

  // Whether it is an element of a kept row that is taken slab by slab.
  bool in_slab(const UOp& index) const {
    const int axis = t_.axis_of(index->src(1).get());
    const bool keeps = without_after(index->src(0).get())->op == Op::Shared;
    return keeps && axis >= 0 && t_.axes()[size_t(axis)].slabs;
  }
  UOp element_of_slab(const UOp& index, std::span<const UOp> src) const {
    const BuiltAxis& b = built_[size_t(t_.axis_of(index->src(1).get()))];
    return make_index(src[0], b.within);
  }
  UOp slab_of(const UOp& memory) const {
    for (size_t a = 0; a < built_.size(); a++) {
      if (!t_.axes()[a].slabs) continue;
      const int64_t elements = memory->get<SharedArg>().count / built_[a].slab->src(0)->max;
      return make(Op::Shared, memory->dtype, {},
                  SharedArg{memory->get<SharedArg>().number, elements});
    }
    return memory;
  }

  UOp gated(const UOp& old, std::span<const UOp> src) {
    UOp index = with_src(old, src);
    for (size_t a : gating_) {
      if (walks(old->src(1), a)) index = with_gate(index, built_[a].valid);
    }
    return index;
  }

  UOp closing(const UOp& old, std::span<const UOp> src) {
    std::vector<UOp> out{src[0]};
    for (int a : closed(old)) {
      const BuiltAxis& b = built_[size_t(a)];
      for (const UOp& r : b.ranges) {
        // A row is filled inside the loop over its slabs.
        if (!(old->op == Op::End && r == b.slab)) out.push_back(r);
      }
      if (!b.valid) continue;
      if (old->op == Op::End) {
        if (b.gates && walks(old->src(0)->src(0)->src(1), size_t(a))) continue;
        out[0] = make_store(with_gate(out[0]->src(0), b.valid), out[0]->src(1));
      } else {
        out[0] = identity_unless(old, a, out[0]);
      }
    }
    if (t_.matrices() && old == t_.matrices()->reduce)
      return matrices(std::span<const UOp>(out).subspan(1));
    if (t_.matrices() && old->op == Op::End)
      out.insert(out.end(), elements_.ranges.begin(), elements_.ranges.end());
    if (old->op == Op::Reduce && out.size() == 1) return out[0];
    return with_src(old, out);
  }

  // What an iteration past the end adds. In a sum of products the factors become zero: a register
  // tile has fewer of them than products, and where a factor is copied the zero is in the copy.
  UOp identity_unless(const UOp& reduce, int axis, const UOp& value) const {
    const UOp& valid = built_[size_t(axis)].valid;
    const Op op = reduce->get<ReduceArg>().op;
    if (op != Op::Add || value->op != Op::Mul)
      return where(valid, value, constant(reduce_identity(op, value->dtype)));
    const auto factor = [&](int source) {
      const bool copied = contains(masked_, MaskedCopy{reduce->src(0).get(), source, axis});
      return copied ? value->src(size_t(source)) : zero_unless(valid, value->src(size_t(source)));
    };
    return alu(Op::Mul, {factor(0), factor(1)});
  }

  // Copies of what a padded sum adds up. Axes that do not depend on the factor are not the copy's.
  void find_masked_copies(const UOp& ast) {
    for (const Node* n : toposort(ast)) {
      const auto opts = n->op == Op::Reduce ? staged_.find(n->src(0).get()) : staged_.end();
      if (opts == staged_.end()) continue;
      for (const UOp& r : n->src().subspan(1)) {
        const int axis = t_.axis_of(r.get());
        if (!built_[size_t(axis)].valid) continue;
        for (const Opt& o : opts->second) {
          const auto source = int(source_of(o));
          if (walks(n->src(0)->src(size_t(source)), size_t(axis)))
            masked_.push_back({n->src(0).get(), source, axis});
        }
      }
    }
  }
  UOp masked(const UOp& product, size_t source, UOp value) const {
    for (const MaskedCopy& m : masked_) {
      if (m.product == product.get() && m.source == int(source))
        value = zero_unless(built_[size_t(m.axis)].valid, value);
    }
    return value;
  }

  // The axes a node closes, in loop order.
  std::vector<int> closed(const UOp& old) const {
    std::vector<int> axes;
    for (const UOp& r : old->src().subspan(1)) axes.push_back(t_.axis_of(r.get()));
    std::ranges::sort(axes, {}, [&](int a) { return std::ranges::find(order_, a); });
    return axes;
  }

  UOp staged_product(const UOp& old, const std::vector<Opt>& opts, std::span<const UOp> src) {
    std::vector<UOp> factors(src.begin(), src.end());
    const bool alone = workgroup().empty();
    for (size_t i = 0; i < opts.size(); i++) {
      // What is copied at one place has its barriers in common.
      std::vector<Opt> together{opts[i]};
      while (!alone && i + 1 < opts.size() && opts[i + 1].amount == opts[i].amount)
        together.push_back(opts[++i]);
      std::vector<UOp> values;
      for (const Opt& o : together) values.push_back(masked(old, source_of(o), src[source_of(o)]));
      const std::vector<UOp> copies =
          alone ? own_copy(old, together[0], values[0]) : shared_copies(old, together, values);
      for (size_t c = 0; c < copies.size(); c++) factors[source_of(together[c])] = copies[c];
    }
    return make(Op::Mul, factors[0]->dtype, factors);
  }
  size_t source_of(const Opt& o) const { return size_t(t_.factors()[size_t(o.axis)].source); }

  std::vector<UOp> own_copy(const UOp& old, const Opt& o, const UOp& value) {
    const int64_t vector_lanes = int64_t(t_.target().vector_bytes / size_bytes(value->dtype));
    std::vector<UOp> ranges, vector;
    for (const UOp& r : tile_ranges(old, o.amount).inside)
      (kind_of(r.get()) == AxisKind::Vector ? vector : ranges).push_back(r);
    // Lanes last, those of vectors, which are one for all, innermost.
    std::ranges::stable_partition(ranges, [](const UOp& r) { return is_loop(kind_of(r.get())); });
    if (!vector.empty()) ranges.push_back(vector[0]);
    return {stage_tile(value, ranges, copies_++, axes_.next_id(), vector_lanes)};
  }
  std::vector<UOp> shared_copies(const UOp& old, const std::vector<Opt>& opts,
                                 const std::vector<UOp>& values) {
    LocalTile tile = tile_ranges(old, opts[0].amount);
    tile.invocations = workgroup();
    std::vector<bool> ahead;
    for (const Opt& o : opts) ahead.push_back(contains(ahead_, o.axis));
    const int32_t first = copies_;
    copies_ += int32_t(opts.size());
    return stage_local(values, ahead, tile, first, axes_.next_id());
  }
  static bool is_invocation(AxisKind k) {
    return k == AxisKind::Local || k == AxisKind::GroupReduce;
  }
  // As they are numbered in the launch.
  std::vector<UOp> workgroup() const {
    std::vector<UOp> out;
    for (size_t a = 0; a < built_.size(); a++) {
      if (t_.axes()[a].reduced) continue;
      for (const UOp& r : built_[a].ranges) {
        if (is_invocation(kind_of(r.get()))) add_once(out, r);
      }
    }
    std::ranges::sort(out, {}, [](const UOp& r) { return r->get<RangeArg>().id; });
    return out;
  }

  // Ranges around a copy, as far as the product depends on them, and those that it is made over, as
  // they nest in the loops (see Tiling::tile_parts).
  LocalTile tile_ranges(const UOp& product, int64_t around) {
    LocalTile tile;
    tile.together = [&target = t_.target()](size_t bytes) {
      return target.elements_together(bytes);
    };
    for (bool reduced : {false, true}) {
      for (int a : order_) {
        const bool depends = walks(product, size_t(a));
        if (t_.axes()[size_t(a)].reduced != reduced || (reduced && !depends)) continue;
        for (const UOp& r : built_[size_t(a)].ranges) {
          const AxisKind k = kind_of(r.get());
          if (is_loop(k) && around-- > 0) {
            if (depends) tile.around.push_back(r);
          } else if (depends && (is_loop(k) || is_lane(k) || is_invocation(k))) {
            tile.inside.push_back(r);
          }
        }
      }
    }
    return tile;
  }

  const Tiling& t_;
  const std::vector<int>& order_;
  const std::vector<int>& ahead_;  // factors
  RangeDeps old_deps_;
  AxisBuilder axes_;
  std::vector<BuiltAxis> built_;
  MatrixElements elements_;     // where there are matrices
  std::vector<size_t> gating_;  // axes
  std::unordered_map<const Node*, std::vector<Opt>> staged_;
  // Factors that are zero past the end of a padded axis as they are copied.
  struct MaskedCopy {
    const Node* product;
    int source, axis;
    bool operator==(const MaskedCopy&) const = default;
  };
  std::vector<MaskedCopy> masked_;
  int32_t copies_ = 0;  // and rows that are kept: Shared memory numbered so far
};

}  // namespace

UOp Tiling::build() const {
  Builder builder(*this, ast_, order_, staged_, ahead_);
  return rebuild(ast_, [&](const UOp& old, std::span<const UOp> src) { return builder(old, src); });
}

}  // namespace tuff::kernel
