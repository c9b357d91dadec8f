#include "kernel/opt/tiling.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "kernel/analysis/kept_rows.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/stage.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kMostGroups = int64_t(1) << 48;  // where products saturate

// Axes that one End closes or computes with are one nest, and so are those of Ends that share some.
void find_nests(Tiling& t) {
  for (size_t i = 0; i < t.axes.size(); i++) t.axes[i].nest = int(i);
  for (const UOp& end : t.ast->src()) {
    std::vector<int> members;
    for (const Node* n : toposort(end)) {
      if (n->op == Op::Range && axis_of(t, n) >= 0) members.push_back(axis_of(t, n));
    }
    for (int m : members) {
      const int from = t.axes[m].nest, to = t.axes[members[0]].nest;
      for (Axis& a : t.axes) a.nest = a.nest == from ? to : a.nest;
    }
  }
  std::vector<int> first;
  for (Axis& a : t.axes) {
    const auto it = std::find(first.begin(), first.end(), a.nest);
    const int number = int(it - first.begin());
    if (it == first.end()) first.push_back(a.nest);
    a.nest = number;
  }
  t.nests = std::max(int(first.size()), 1);
}

void find_columns(Tiling& t) {
  if (!keeps_rows(t)) return;
  for (int a = 0; a < int(t.axes.size()); a++) {
    t.axes[size_t(a)].column =
        !t.axes[size_t(a)].reduced && std::ranges::none_of(t.stored, [&](const Tiling::Stored& s) {
          return s.kept_bytes && contains(s.around, a);
        });
  }
}

// ---- slabs ----

void find_slab_axes(Tiling& t) {
  const auto walked = columns_of_rows(t.ast);
  if (!walked || walked->empty() ||
      std::ranges::any_of(*walked, [&](auto& r) { return axis_of(t, r.get()) < 0; }))
    return;
  const auto sweep = one_sweep(t.ast, *walked);
  if (!sweep) return;
  t.scales_sums = sweep->max && sweep->others.empty();
  std::vector<int> found;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    if (!contains(*walked, axis.range)) continue;
    const bool walks_a_row = axis.kept || axis.reduced;
    const UOp& size = axis.range->src(0);
    if (!walks_a_row || (!found.empty() && !(size == t.axes[size_t(found[0])].range->src(0))))
      return;
    found.push_back(a);
  }
  t.slab_axes = std::move(found);
}

}  // namespace

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

Tiling::Tiling(const UOp& kernel, const Target& device) : ast(kernel), target(device) {
  auto add = [&](const UOp& r, bool reduced) {
    if (axis_of(*this, r.get()) >= 0) return;
    Axis a;
    a.range = r;
    a.reduced = reduced;
    a.parts.push_back({kind_of(r.get()), r->src(0)});
    order.push_back(int(axes.size()));
    axes.push_back(std::move(a));
  };
  const std::vector<const Node*> nodes = toposort(ast);
  for (const UOp& end : ast->src()) {
    for (const UOp& r : end->src().subspan(1)) add(r, false);
  }
  for (bool reduced : {false, true}) {
    for (const Node* n : nodes) {
      if (n->op != (reduced ? Op::Reduce : Op::End)) continue;
      for (const UOp& r : n->src().subspan(1)) add(r, reduced);
    }
  }
  find_nests(*this);
  RangeDeps deps(ast);
  const std::map<int32_t, int32_t> overwrites = overwritten_rows(ast);
  for (const Node* n : nodes) {
    if (n->op == Op::End) {
      Tiling::Stored& s = stored.emplace_back();
      for (const UOp& r : deps.list(deps.of(n->src(0)))) s.axes.push_back(axis_of(*this, r.get()));
      for (const UOp& r : deps.list(deps.of(UOp(n)))) s.around.push_back(axis_of(*this, r.get()));
      const Node* memory = n->src(0)->src(0)->src(0).get();
      if (memory->op == Op::Shared) {
        const int64_t count =
            target.has_local ? row_pitch(UOp(memory)) : memory->get<SharedArg>().count;
        s.element_bytes = int64_t(size_bytes(memory->dtype));
        s.kept_bytes = count * s.element_bytes;
        s.overwrites = overwrites.contains(memory->get<SharedArg>().number);
        for (const UOp& r : n->src().subspan(1)) axes[size_t(axis_of(*this, r.get()))].kept = true;
      }
    }
    if (n->op != Op::Reduce) continue;
    Tiling::Reduction& r = reductions.emplace_back();
    for (const UOp& x : n->src().subspan(1)) r.own.push_back(axis_of(*this, x.get()));
    for (const UOp& x : deps.list(deps.of(UOp(n)))) r.around.push_back(axis_of(*this, x.get()));
    // Renderers hold narrow numbers in workgroup memory as they hold registers.
    const DType sum = is_float(n->dtype) ? accumulator(n->dtype) : n->dtype;
    r.bytes = std::max<int64_t>(int64_t(size_bytes(sum)), 4);
  }
  find_columns(*this);
  find_slab_axes(*this);
  factors = factors_of(ast, deps, *this);
  if (target.has_local && nests == 1) loads = transposed_loads(ast, deps, *this);
}

int axis_of(const Tiling& t, const Node* range) {
  for (size_t i = 0; i < t.axes.size(); i++) {
    if (t.axes[i].range.get() == range) return int(i);
  }
  return -1;
}

bool needs_slabs(const Tiling& t) {
  return std::ranges::any_of(t.slab_axes, [&](int a) {
    const Axis& axis = t.axes[size_t(a)];
    return axis.kept && !axis.slabs && !axis.main_is_const();
  });
}

bool has_part(const Tiling& t, int axis, AxisKind kind) {
  for (int a = 0; a < int(t.axes.size()); a++) {
    if (axis >= 0 && a != axis) continue;
    for (const AxisPart& p : t.axes[a].parts) {
      if (p.kind == kind) return true;
    }
  }
  return false;
}

int64_t lane_count(const Tiling& t) {
  int64_t n = 1;
  for (const Axis& a : t.axes) n *= a.lanes();
  return n;
}

double useful(const Tiling& t) {
  double share = 1;
  for (const Axis& a : t.axes) {
    if (!a.padded) continue;
    double covered = 1;
    for (const AxisPart& p : a.parts) covered *= double(p.size->max);
    share *= double(a.range->src(0)->max) / covered;
  }
  return share;
}

bool keeps_rows(const Tiling& t) {
  return std::ranges::any_of(t.stored, [](const Tiling::Stored& s) { return s.kept_bytes > 0; });
}

int64_t local_size(const Tiling& t) {
  int64_t n = t.matrices ? t.target.subgroup_size : t.spread.width;
  n *= columns_together(t);
  for (const Axis& a : t.axes) {
    if (a.rows || a.column) continue;
    for (const AxisPart& p : a.parts) n *= p.kind == AxisKind::Local ? p.size->max : 1;
  }
  return n;
}

int64_t groups_left(const Tiling& t) {
  auto times = [](int64_t n, int64_t by) { return n > kMostGroups / by ? kMostGroups : n * by; };
  int64_t most = 1, used = std::max<int64_t>(t.spread.groups, 1);
  for (const uint32_t limit : t.target.max_groups) most = times(most, std::max(limit, 1u));
  for (const Axis& a : t.axes) {
    if (a.rows) continue;
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::Group) used = times(used, std::max<int64_t>(p.size->max, 1));
    }
  }
  return most / used;
}

bool has_invocations(const Tiling& t) { return t.matrices || has_part(t, -1, AxisKind::Local); }

int64_t columns_together(const Tiling& t) {
  for (const Axis& a : t.axes) {
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::GroupReduce || (a.column && p.kind == AxisKind::Local))
        return p.size->max;
    }
  }
  return 1;
}

bool columns_without_axis(const Tiling& t) {
  return columns_together(t) > 1 && std::ranges::none_of(t.axes, [](const Axis& a) {
           return a.column && std::ranges::any_of(a.parts, [](const AxisPart& p) {
                    return p.kind == AxisKind::Local;
                  });
         });
}

bool is_shared(const Tiling& t, const Tiling::Reduction& r) {
  return std::ranges::any_of(r.own, [&](int a) { return has_part(t, a, AxisKind::GroupReduce); });
}

bool shares_sums(const Tiling& t, int nest) {
  return std::ranges::any_of(t.reductions, [&](const Tiling::Reduction& r) {
    return is_shared(t, r) && t.axes[size_t(r.own[0])].nest == nest;
  });
}

// Whether the invocations along an output axis are those that share reductions. Of kept rows, see
// is_column.
bool is_beside_shared(const Tiling& t, int axis) {
  return !keeps_rows(t) && has_part(t, -1, AxisKind::GroupReduce) &&
         std::ranges::none_of(t.reductions,
                              [&](const Tiling::Reduction& r) { return contains(r.around, axis); });
}

bool is_column(const Tiling& t, const Opt& o) {
  return o.kind == OptKind::GroupReduce ||
         (o.kind == OptKind::Local && t.axes[size_t(o.axis)].column);
}

int64_t spread_width(const Tiling& t) {
  constexpr int64_t kWidth = 64;
  if (!t.target.has_local) return 1;
  const int64_t shares = columns_together(t);
  const int64_t most = std::min<int64_t>(t.target.max_invocations, t.target.max_local[0]);
  return int64_t(std::bit_floor(uint64_t(
      shares > 1 ? std::clamp<int64_t>(most / shares, 1, kSharedRow) : std::min(kWidth, most))));
}

int64_t spread_row(const Tiling& t, int nest) {
  return spread_width(t) * (shares_sums(t, nest) ? 1 : columns_together(t));
}

}  // namespace tuff::kernel
