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
int64_t gpu_groups(const Tiling& t, const Target& target) {
  const int64_t width = Tiling::spread_width(target);
  int64_t rows = 0;
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) rows += ceil_div(t.axes()[size_t(a)].main_size(), width);
  }
  return std::min(rows, t.groups_left());
}

// Several rows of a sum are loaded at once.
void unroll_sums(Tiling& t, const KernelShape& k) {
  for (int a = 0; a < int(k.axes.size()); a++) {
    if (!k.axes[size_t(a)].reduced || k.axes[size_t(a)].gated) continue;
    const int64_t n = divisor_up_to(t.axes()[size_t(a)].main_size(), 4);
    if (n > 1) t.try_apply({OptKind::Unroll, a, n});
  }
}

}  // namespace

void spread_nests(Tiling& t, const UOp& ast, const Target& target) {
  const KernelShape k = shape_of(ast, t);
  const int64_t lanes = target.has_local ? 4 : std::max<int64_t>(target.vector_bytes / 4, 4) * 2;
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0 && walks_vectors(k.axes[size_t(a)])) t.try_apply({OptKind::Vector, a, lanes});
  }
  if (target.has_local) unroll_sums(t, k);
  const int64_t groups = target.has_local ? gpu_groups(t, target) : worthwhile_groups(k, target);
  if (groups < 2 && !target.has_local) return;
  for (int nest = 0; nest < t.nests(); nest++) {
    const int a = longest_axis(t, nest);
    if (a >= 0) t.try_apply({OptKind::Spread, a, std::max<int64_t>(groups, 2)});
  }
}

}  // namespace tuff::kernel
