#include "kernel/opt/opt.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/kept_rows.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/matrices.h"
#include "kernel/opt/stage.h"

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
      {"slab", AxisKind::Reduce, true, true},
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
  if (k == OptKind::Ahead || k == OptKind::Slab)
    return target.has_local && target.shared_bytes > 0;
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
    // Renderers hold narrow numbers in workgroup memory as they hold registers.
    const DType sum = is_float(n->dtype) ? accumulator(n->dtype) : n->dtype;
    r.bytes = std::max<int64_t>(int64_t(size_bytes(sum)), 4);
  }
  find_columns();
  if (target.has_local) find_slab_axes();
  factors_ = factors_of(ast, deps, *this);
  if (target.has_local && nests_ == 1) loads_ = transposed_loads(ast, deps, *this);
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
  n *= columns_together();
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

std::string Tiling::check_kind(const Opt& o) const {
  if (o.kind == OptKind::Matrix) return check_matrix(o);
  if (matrices_)
    if (std::string why = check_beside_matrices(o); !why.empty()) return why;
  if (o.kind == OptKind::Stage) return check_stage(o);
  if (o.kind == OptKind::Ahead) return check_ahead(o);
  if (!staged_.empty()) return "what is staged has been copied for the loops as they are";
  if (o.axis < 0 || o.axis >= int(axes_.size())) return "there is no such axis";
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Swap) {
    if (o.amount < 0 || o.amount >= int64_t(axes_.size())) return "there is no such axis";
    if (axes_[o.amount].reduced != axis.reduced)
      return "an output axis and a reduced one cannot change places";
    if (!keeps_stores_outside(o))
      return "a loop would go around a store that stands outside of it";
    return {};
  }
  if (o.kind == OptKind::Slab) return check_slab(o);
  if (o.kind != OptKind::Split && row_of(o.kind).output == axis.reduced) {
    return axis.reduced ? "the axis is reduced" : "the axis is not reduced";
  }
  if (!is_loop(axis.parts[axis.main].kind)) return "nothing is left of the axis";
  if (keeps_rows())
    if (std::string why = check_kept(o); !why.empty()) return why;
  if (workgroup_bytes(o) > std::max<int64_t>(target_.shared_bytes, workgroup_bytes()))
    return fmt::format("rows and sums of so many lanes exceed {} bytes of fast memory",
                       target_.shared_bytes);
  if (axis.rows) return "what is left of the axis is shared out to the launch";
  if (o.kind == OptKind::Vector) return check_vector(o);
  if (o.kind == OptKind::Local || o.kind == OptKind::GroupReduce) return check_shared(o);
  return o.kind == OptKind::Spread ? check_spread(o) : "";
}

// One vector axis for all that is stored together; all of one width.
std::string Tiling::check_vector(const Opt& o) const {
  for (int a = 0; a < int(axes_.size()); a++) {
    for (const AxisPart& p : axes_[size_t(a)].parts) {
      if (p.kind != AxisKind::Vector) continue;
      for (const Stored& s : stored_) {
        if (contains(s.axes, a) && contains(s.axes, o.axis))
          return "the nest has a vector axis already";
      }
      if (p.size->max != o.amount) return "another nest has vectors of another width";
    }
  }
  return {};
}

std::string Tiling::check_spread(const Opt& o) const {
  for (const Axis& a : axes_) {
    if (a.rows && a.nest == axes_[o.axis].nest) return "the nest is shared out already";
  }
  if (spread_groups_ && spread_groups_ != o.amount)
    return "another nest is shared out to another number of groups";
  if (has_part(o.axis, AxisKind::Group)) return "the axis has launch groups of its own";
  if (!spread_groups_ && has_part(-1, AxisKind::Local))
    return "the workgroup holds an axis of its own";
  return {};
}

bool Tiling::shares_sums(int nest) const {
  return std::ranges::any_of(reductions_, [&](const Reduction& r) {
    return is_shared(r) && axes_[size_t(r.own[0])].nest == nest;
  });
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

bool Tiling::is_shared(const Reduction& r) const {
  return std::ranges::any_of(r.own, [&](int a) { return has_part(a, AxisKind::GroupReduce); });
}

// Whether the invocations along an output axis are those that share reductions. Of kept rows, see
// is_column.
bool Tiling::is_beside_shared(int axis) const {
  return !keeps_rows() && has_part(-1, AxisKind::GroupReduce) &&
         std::ranges::none_of(reductions_,
                              [&](const Reduction& r) { return contains(r.around, axis); });
}

// Invocations of a workgroup are outputs of their own, or share reductions, or a grid of both;
// shared reductions must not stand inside each other, since both would be split over the same
// invocations.
std::string Tiling::check_shared(const Opt& o) const {
  if (!target_.has_local) return "the target has no workgroups";
  for (const Reduction& r : reductions_) {
    if (target_.max_loop_trips && contains(r.own, o.axis) && walks_far(r))
      return "barriers go wrong where a device that ends loops counts beyond 32 bits";
  }
  if (keeps_rows()) return is_column(o) ? check_columns(o) : "";
  if (spread_groups_) return "the workgroup takes rows of axes that are shared out";
  if (o.kind == OptKind::GroupReduce) {
    std::string why = check_nested(o);
    for (const Reduction& r : reductions_)
      if (why.empty() && contains(r.own, o.axis)) why = check_beside(r);
    return why;
  }
  if (!has_part(-1, AxisKind::GroupReduce)) return {};
  bool holds_outputs = false;
  for (int a = 0; a < int(axes_.size()); a++) {
    if (is_beside_shared(o.axis) && axes_[size_t(a)].column)
      return "the workgroup holds an output axis beside its shared reduction";
    holds_outputs = holds_outputs || (has_part(a, AxisKind::Local) && !axes_[size_t(a)].column);
  }
  if (is_beside_shared(o.axis)) return {};
  if (holds_outputs && !shares_outermost_)
    return "other output axes stand outside of the shared reductions";
  for (const Reduction& r : reductions_) {
    if (is_shared(r) && !contains(r.around, o.axis))
      return "a reduction that the workgroup shares does not depend on the axis";
  }
  return {};
}

// About 2^31 steps or more, so that positions may need 64 bits: see docs/design/vulkan.md.
bool Tiling::walks_far(const Reduction& r) const {
  constexpr double kFar = 1 << 30;
  double steps = 1;
  for (int a = 0; a < int(axes_.size()); a++) {
    const int64_t extent = axes_[size_t(a)].range->src(0)->max;
    if (contains(r.own, a) || contains(r.around, a)) steps *= double(std::max<int64_t>(extent, 1));
  }
  return steps >= kFar;
}

// A reduction that is to be shared, beside the output axes that the workgroup holds.
std::string Tiling::check_beside(const Reduction& r) const {
  for (int a = 0; a < int(axes_.size()); a++) {
    if (has_part(a, AxisKind::Local) && axes_[size_t(a)].column == contains(r.around, a))
      return axes_[size_t(a)].column ? "the reduction depends on an axis beside shared ones"
                                     : "the workgroup holds outputs of other reductions";
  }
  return {};
}

std::string Tiling::check_nested(const Opt& o) const {
  for (const Reduction& r : reductions_) {
    for (const auto* axes : {&r.own, &r.around}) {
      for (int a : *axes) {
        const bool together =
            contains(r.own, o.axis) || (contains(r.around, o.axis) && contains(r.own, a));
        if (together && has_part(a, AxisKind::GroupReduce))
          return "a reduction around or inside it is shared already";
      }
    }
  }
  return {};
}

std::string Tiling::check_amount(const Opt& o) const {
  const Axis& axis = axes_[o.axis];
  if (o.kind == OptKind::Group && (o.amount == 0 ? axis.main_size() : o.amount) > groups_left())
    return fmt::format("the launch grid has room for {} times as many workgroups",
                       groups_left());
  if (o.kind == OptKind::Group && o.amount == 0) {
    for (const Node* n : toposort(axis.parts[axis.main].size)) {
      if (n->op == Op::Range) return "the axis has as many iterations as its launch group says";
    }
    return {};
  }
  if (!axis.main_is_const()) return "the axis has a symbolic size";
  if (o.kind == OptKind::Spread) {
    const int64_t most = spread_groups_ ? o.amount : groups_left();
    if (o.amount < 2 || o.amount > most) return fmt::format("2 to {} is possible", most);
    return {};
  }
  const bool pads = row_of(o.kind).pads && !matrices_ && !axis.slabs;
  // A vector may be longer than the whole axis: masked, it takes the place of scalars.
  const bool vectors = pads && (o.kind == OptKind::Vector || o.kind == OptKind::Unroll);
  const int64_t most =
      vectors ? int64_t(std::bit_ceil(uint64_t(axis.main_size()))) : axis.main_size();
  const int64_t least = o.kind == OptKind::Group ? 1 : 2;
  if (o.amount < least || o.amount > most)
    return fmt::format("{} to {} is possible", least, most);
  if (!pads && axis.main_size() % o.amount != 0) {
    return fmt::format("{} does not divide {}", o.amount, axis.main_size());
  }
  const bool power = std::has_single_bit(uint64_t(o.amount));
  if ((o.kind == OptKind::Vector || o.kind == OptKind::GroupReduce) && !power)
    return "no power of two";
  return o.kind == OptKind::Local || o.kind == OptKind::GroupReduce ? check_workgroup(o) : "";
}

std::string Tiling::check_workgroup(const Opt& o) const {
  const bool shares = is_column(o) || is_beside_shared(o.axis);
  const int64_t total = (shares ? local_size() / columns_together() : local_size()) * o.amount;
  const bool fits = matrices_ ? total <= int64_t(target_.max_local[0])
                              : workgroup_shape(total, target_).has_value();
  if (total > int64_t(target_.max_invocations) || !fits) {
    return fmt::format("a workgroup has at most {} invocations, ({},{},{}) along its axes",
                       target_.max_invocations, target_.max_local[0], target_.max_local[1],
                       target_.max_local[2]);
  }
  if (!keeps_rows() && shares && columns_together() > 1 && columns_together() != o.amount)
    return "a reduction is shared by another number";
  return {};
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

int64_t Tiling::spread_width() const {
  constexpr int64_t kWidth = 64;
  if (!target_.has_local) return 1;
  const int64_t shares = columns_together();
  const int64_t most = std::min<int64_t>(target_.max_invocations, target_.max_local[0]);
  return int64_t(std::bit_floor(uint64_t(
      shares > 1 ? std::clamp<int64_t>(most / shares, 1, kSharedRow) : std::min(kWidth, most))));
}
int64_t Tiling::spread_row(int nest) const {
  return spread_width() * (shares_sums(nest) ? 1 : columns_together());
}

// A row is what one workgroup takes at once: an output to each of its invocations, or, in nests
// whose sums they share, to as many as have one of their own.
void Tiling::spread(Axis& axis, int64_t groups) {
  spread_groups_ = groups;
  spread_width_ = spread_width();
  const int64_t row = spread_row(axis.nest), shares = row / spread_width_;
  shares_outermost_ = columns_together() > 1;
  AxisPart& main = axis.parts[axis.main];
  axis.padded = axis.padded || main.size->max % row != 0;
  axis.rows = ceil_div(main.size->max, row);
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
  std::vector<AxisPart> inner{{AxisKind::Group, index_const(groups)}};
  if (shares > 1) inner.push_back({AxisKind::GroupReduce, index_const(shares)});
  inner.push_back({AxisKind::Local, index_const(spread_width_)});
  axis.parts.insert(at + 1, inner.begin(), inner.end());
}

// Beside shared reductions.
void Tiling::place_local(int axis) {
  if (keeps_rows() || !has_part(-1, AxisKind::GroupReduce)) return;
  if (is_beside_shared(axis)) {
    axes_[size_t(axis)].column = true;
  } else {
    shares_outermost_ = true;
  }
}

std::string Tiling::refusal(const Opt& o) const {
  std::string why = check_kind(o);
  const bool splits = o.kind != OptKind::Matrix && o.kind != OptKind::Stage &&
                      o.kind != OptKind::Ahead && o.kind != OptKind::Swap;
  return why.empty() && splits ? check_amount(o) : why;
}

void Tiling::apply(const Opt& o) {
  if (const std::string why = refusal(o); !why.empty())
    fail<InvalidArgument>("{}: {}", to_string(o), why);
  take(o);
}

bool Tiling::try_apply(const Opt& o) {
  const bool legal = refusal(o).empty();
  if (legal) take(o);
  return legal;
}

void Tiling::take(const Opt& o) {
  if (o.kind == OptKind::Matrix) {
    split_matrices(o);
  } else if (o.kind == OptKind::Stage) {
    staged_.push_back(o);
  } else if (o.kind == OptKind::Ahead) {
    ahead_.push_back(o);
  } else if (o.kind == OptKind::Swap) {
    const auto a = std::find(order_.begin(), order_.end(), o.axis);
    const auto b = std::find(order_.begin(), order_.end(), int(o.amount));
    std::iter_swap(a, b);
  } else if (o.kind == OptKind::Slab) {
    take_slabs(o.amount);
  } else if (o.kind == OptKind::Group) {
    group(axes_[o.axis], o.amount);
  } else if (o.kind == OptKind::Spread) {
    spread(axes_[o.axis], o.amount);
  } else {
    if (o.kind == OptKind::Local) place_local(o.axis);
    split_main(axes_[o.axis], row_of(o.kind).part, o.amount);
  }
  applied_.push_back(o);
}

}  // namespace tuff::kernel
