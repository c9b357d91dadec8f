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
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& x = t.axes[size_t(a)];
    if (x.nest != nest || x.reduced || !x.main_is_const()) continue;
    if (best < 0 || x.main_size() >= t.axes[size_t(best)].main_size()) best = a;
  }
  return best;
}

bool walks_vectors(const AxisShape& x) {
  return x.unit_loads + x.unit_stores > x.strided && x.gated == 0;
}

// A workgroup for every row of every nest: each makes one iteration of one nest's loop.
int64_t gpu_groups(const Tiling& t) {
  int64_t rows = 0;
  for (int nest = 0; nest < t.nests; nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) rows += ceil_div(t.axes[size_t(a)].main_size(), spread_row(t, nest));
  }
  return std::min(rows, groups_left(t));
}

// Several rows of a sum are loaded at once.
void unroll_sums(Tiling& t, const KernelShape& k, int64_t most) {
  for (int a = 0; a < int(k.axes.size()); a++) {
    if (!k.axes[size_t(a)].reduced || k.axes[size_t(a)].gated) continue;
    const int64_t n = divisor_up_to(t.axes[size_t(a)].main_size(), most);
    if (n > 1) try_apply(t, {OptKind::Unroll, a, n});
  }
}

// Among how many invocations each sum is shared: one alone would follow a long column load by load,
// and wait for memory each time.
int64_t shares_of_sums(const Tiling& t, const Target& target) {
  constexpr int64_t kMost = 16, kLeastSteps = 8, kWorkgroup = 512;
  // Not where workgroup memory is main memory, as on CPUs through OpenCL.
  if (!target.has_local || !target.has_fast_shared) return 1;
  const int64_t invocations =
      std::min<int64_t>({kWorkgroup, target.max_invocations, target.max_local[0]});
  int64_t longest = 1;
  for (const Axis& a : t.axes) {
    if (a.reduced && a.main_is_const()) longest = std::max(longest, a.main_size());
  }
  const int64_t most = std::min(
      {kMost, invocations / kSharedRow, longest / kLeastSteps});
  return int64_t(std::bit_floor(uint64_t(std::max<int64_t>(most, 1))));
}

void share_sums(Tiling& t, int64_t shares) {
  for (int a = 0; shares > 1 && a < int(t.axes.size()); a++) {
    if (t.axes[size_t(a)].reduced) try_apply(t, {OptKind::GroupReduce, a, shares});
  }
}

}  // namespace

void spread_nests(Tiling& t, const UOp& ast, const Target& target) {
  const KernelShape k = shape_of(ast, t);
  const int64_t lanes = target.has_local ? 4 : cost::cpu::lanes(target) * 2;
  const int64_t shares = shares_of_sums(t, target);
  if (target.has_local) unroll_sums(t, k, shares > 1 ? 8 : 4);
  share_sums(t, shares);
  for (int nest = 0; nest < t.nests; nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0 && walks_vectors(k.axes[size_t(a)]) && !shares_sums(t, nest))
      try_apply(t, {OptKind::Vector, a, lanes});
  }
  const int64_t groups = target.has_local ? gpu_groups(t) : cost::worthwhile_groups(k.work, target);
  if (groups < 2 && !target.has_local) return;
  for (int nest = 0; nest < t.nests; nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) try_apply(t, {OptKind::Spread, a, std::max<int64_t>(groups, 2)});
  }
}

}  // namespace tuff::kernel
