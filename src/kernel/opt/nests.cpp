// The schedule of loop nests that sched put beside each other in one kernel: the same vector lanes
// in each that has room for them, the launch shared out over the longest axis of each.
#include <algorithm>
#include <bit>

#include "kernel/opt/schedules.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// The longest axis of a nest; -1 where nothing can be split.
int longest_axis(const Tiling& t, int nest) {
  int best = -1;
  for (int a = 0; a < int(t.axes().size()); a++) {
    const Axis& x = t.axes()[size_t(a)];
    if (x.nest != nest || x.reduced || !x.main_is_const()) continue;
    if (best < 0 || x.main_size() >= t.axes()[size_t(best)].main_size()) best = a;
  }
  return best;
}

bool walks_vectors(const AxisShape& x) {
  return x.unit_loads + x.unit_stores > x.strided && x.gated == 0;
}

// A workgroup for every row of every nest: each makes one iteration of one nest's loop. Fewer
// that loop are slower, on lavapipe up to four times.
int64_t gpu_groups(const Tiling& t) {
  int64_t rows = 0;
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) rows += ceil_div(t.axes()[size_t(a)].main_size(), t.spread_row(nest));
  }
  return std::min(rows, t.groups_left());
}

// Several rows of a sum are loaded at once.
void unroll_sums(Tiling& t, const KernelShape& k, int64_t most) {
  for (int a = 0; a < int(k.axes.size()); a++) {
    if (!k.axes[size_t(a)].reduced || k.axes[size_t(a)].gated) continue;
    const int64_t n = divisor_up_to(t.axes()[size_t(a)].main_size(), most);
    if (n > 1) t.try_apply({OptKind::Unroll, a, n});
  }
}

// A sum that one invocation would make is a chain of loads, each as long as memory takes: where
// columns are long, invocations share each of them.
bool share_sums(Tiling& t, const KernelShape& k, const Target& target) {
  constexpr int64_t kShares = 16, kTogether = 8, kWorkgroup = 512, kSubgroup = 32;
  if (target.loads_are_expensive()) return false;
  const int64_t invocations =
      std::min<int64_t>({kWorkgroup, target.max_invocations, target.max_local[0]});
  int64_t longest = 0;
  for (const Axis& a : t.axes()) {
    if (a.reduced && a.main_is_const()) longest = std::max(longest, a.main_size());
  }
  const auto shares = int64_t(std::bit_floor(
      uint64_t(std::min({kShares, invocations / kSubgroup, longest / kTogether}))));
  if (shares < 2) return false;
  unroll_sums(t, k, kTogether);
  bool any = false;
  for (int a = 0; a < int(t.axes().size()); a++) {
    if (t.axes()[size_t(a)].reduced && t.axes()[size_t(a)].main_size() >= shares)
      any = t.try_apply({OptKind::GroupReduce, a, shares}) || any;
  }
  return any;
}

}  // namespace

void spread_nests(Tiling& t, const UOp& ast, const Target& target) {
  const KernelShape k = shape_of(ast, t);
  const int64_t lanes = target.has_local ? 4 : std::max<int64_t>(target.vector_bytes / 4, 4) * 2;
  const bool shares = target.has_local && share_sums(t, k, target);
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0 && walks_vectors(k.axes[size_t(a)]) && !t.shares_sums(nest))
      t.try_apply({OptKind::Vector, a, lanes});
  }
  if (target.has_local && !shares) unroll_sums(t, k, 4);
  const int64_t groups = target.has_local ? gpu_groups(t) : worthwhile_groups(k, target);
  if (groups < 2 && !target.has_local) return;
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) t.try_apply({OptKind::Spread, a, std::max<int64_t>(groups, 2)});
  }
}

}  // namespace tuff::kernel
