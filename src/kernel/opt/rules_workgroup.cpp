// Local, GroupReduce, Spread: who of a workgroup has which outputs, and shares which reductions.
#include <algorithm>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// About 2^31 steps or more, so that positions may need 64 bits: see docs/design/vulkan.md.
bool walks_far(const Tiling& t, const Tiling::Reduction& r) {
  constexpr double kFar = 1 << 30;
  double steps = 1;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const int64_t extent = t.axes[size_t(a)].range->src(0)->max;
    if (contains(r.own, a) || contains(r.around, a)) steps *= double(std::max<int64_t>(extent, 1));
  }
  return steps >= kFar;
}

// Whether the loop of another reduction makes it besides, for each of that one's outputs.
bool is_made_besides(const Tiling& t, const Tiling::Reduction& r, int axis) {
  return std::ranges::any_of(t.reductions, [&](const Tiling::Reduction& other) {
    return other.own == r.own && contains(other.around, axis) &&
           std::ranges::all_of(r.around, [&](int a) { return contains(other.around, a); });
  });
}

// A reduction that is to be shared, beside the output axes that the workgroup holds.
std::string beside_refusal(const Tiling& t, const Tiling::Reduction& r) {
  for (int a = 0; a < int(t.axes.size()); a++) {
    if (!contains(r.around, a) && is_made_besides(t, r, a)) continue;
    if (has_part(t, a, AxisKind::Local) && t.axes[size_t(a)].column == contains(r.around, a))
      return t.axes[size_t(a)].column ? "the reduction depends on an axis beside shared ones"
                                     : "the workgroup holds outputs of other reductions";
  }
  return {};
}

}  // namespace

std::string nested_refusal(const Tiling& t, const Opt& o) {
  for (const Tiling::Reduction& r : t.reductions) {
    for (const auto* axes : {&r.own, &r.around}) {
      for (int a : *axes) {
        const bool together =
            contains(r.own, o.axis) || (contains(r.around, o.axis) && contains(r.own, a));
        if (together && has_part(t, a, AxisKind::GroupReduce))
          return "a reduction around or inside it is shared already";
      }
    }
  }
  return {};
}

// Invocations of a workgroup are outputs of their own, or share reductions, or a grid of both;
// shared reductions must not stand inside each other, since both would be split over the same
// invocations.
std::string workgroup_refusal(const Tiling& t, const Opt& o) {
  if (!t.target.has_local) return "the target has no workgroups";
  for (const Tiling::Reduction& r : t.reductions) {
    if (t.target.max_loop_trips && contains(r.own, o.axis) && walks_far(t, r))
      return "barriers go wrong where a device that ends loops counts beyond 32 bits";
  }
  if (keeps_rows(t)) return is_column(t, o) ? columns_refusal(t, o) : "";
  if (t.spread.groups) return "the workgroup takes rows of axes that are shared out";
  if (o.kind == OptKind::GroupReduce) {
    std::string why = nested_refusal(t, o);
    for (const Tiling::Reduction& r : t.reductions)
      if (why.empty() && contains(r.own, o.axis)) why = beside_refusal(t, r);
    return why;
  }
  if (!has_part(t, -1, AxisKind::GroupReduce)) return {};
  bool holds_outputs = false;
  for (int a = 0; a < int(t.axes.size()); a++) {
    if (is_beside_shared(t, o.axis) && t.axes[size_t(a)].column)
      return "the workgroup holds an output axis beside its shared reduction";
    holds_outputs = holds_outputs || (has_part(t, a, AxisKind::Local) && !t.axes[size_t(a)].column);
  }
  if (is_beside_shared(t, o.axis)) return {};
  if (holds_outputs && !t.shares_outermost)
    return "other output axes stand outside of the shared reductions";
  for (const Tiling::Reduction& r : t.reductions) {
    if (is_shared(t, r) && !contains(r.around, o.axis))
      return "a reduction that the workgroup shares does not depend on the axis";
  }
  return {};
}

std::string workgroup_size_refusal(const Tiling& t, const Opt& o) {
  const bool shares = is_column(t, o) || is_beside_shared(t, o.axis);
  const int64_t total = (shares ? local_size(t) / columns_together(t) : local_size(t)) * o.amount;
  const bool fits = t.matrices ? total <= int64_t(t.target.max_local[0])
                              : workgroup_shape(total, t.target).has_value();
  if (total > int64_t(t.target.max_invocations) || !fits) {
    return fmt::format("a workgroup has at most {} invocations, ({},{},{}) along its axes",
                       t.target.max_invocations, t.target.max_local[0], t.target.max_local[1],
                       t.target.max_local[2]);
  }
  if (!keeps_rows(t) && shares && columns_together(t) > 1 && columns_together(t) != o.amount)
    return "a reduction is shared by another number";
  return {};
}

void take_local(Tiling& t, const Opt& o) {
  if (!keeps_rows(t) && has_part(t, -1, AxisKind::GroupReduce)) {
    if (is_beside_shared(t, o.axis)) {
      t.axes[size_t(o.axis)].column = true;
    } else {
      t.shares_outermost = true;
    }
  }
  split_main(t.axes[size_t(o.axis)], AxisKind::Local, o.amount);
}

std::string spread_refusal(const Tiling& t, const Opt& o) {
  for (const Axis& a : t.axes) {
    if (a.rows && a.nest == t.axes[o.axis].nest) return "the nest is shared out already";
  }
  if (t.spread.groups && t.spread.groups != o.amount)
    return "another nest is shared out to another number of groups";
  if (has_part(t, o.axis, AxisKind::Group)) return "the axis has launch groups of its own";
  if (!t.spread.groups && has_part(t, -1, AxisKind::Local))
    return "the workgroup holds an axis of its own";
  return {};
}

// A row is what one workgroup takes at once: an output to each of its invocations, or, in nests
// whose sums they share, to as many as have one of their own.
void take_spread(Tiling& t, const Opt& o) {
  Axis& axis = t.axes[size_t(o.axis)];
  const int64_t groups = o.amount;
  t.spread.groups = groups;
  t.spread.width = spread_width(t);
  const int64_t row = spread_row(t, axis.nest), shares = row / t.spread.width;
  t.shares_outermost = columns_together(t) > 1;
  AxisPart& main = axis.parts[axis.main];
  axis.padded = axis.padded || main.size->max % row != 0;
  axis.rows = ceil_div(main.size->max, row);
  axis.first = t.spread.rows % groups;
  t.spread.rows += axis.rows;
  main.size = index_const(ceil_div(axis.rows, groups));
  const auto at = axis.parts.begin() + axis.main;
  if (!t.target.has_local) {
    // A run each: groups beyond the last row find none left.
    axis.parts.insert(at, {AxisKind::Group, index_const(groups)});
    axis.main++;
    return;
  }
  std::vector<AxisPart> inner{{AxisKind::Group, index_const(groups)}};
  if (shares > 1) inner.push_back({AxisKind::GroupReduce, index_const(shares)});
  inner.push_back({AxisKind::Local, index_const(t.spread.width)});
  axis.parts.insert(at + 1, inner.begin(), inner.end());
}

}  // namespace tuff::kernel
