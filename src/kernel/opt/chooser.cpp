#include "kernel/opt/chooser.h"

#include <algorithm>
#include <tuple>

namespace tuff::kernel {

namespace {

constexpr int64_t kMaxUnrolledLoads = 512;  // load instances of one body: compile time, code size

}  // namespace

int Chooser::vector_score(int a) const {
  const AxisShape& x = axis(a);
  // What a CPU's vectors can be shuffled from is no gather.
  const int gathers = target_.has_local ? x.strided : x.strided - x.repeated - x.interleaved;
  return 2 * x.unit_loads + 2 * x.unit_stores - 2 * gathers;
}

int64_t Chooser::lanes_along(int a, int64_t most) const {
  constexpr uint32_t kMaskingBytes = 64;
  constexpr int64_t kShortVectors = 4;
  const int64_t n = left(a), exact = divisor_up_to(n, most, true);
  const bool is_short = n <= kShortVectors * cpu_lanes();
  if (target_.has_local || target_.vector_bytes < kMaskingBytes || exact >= cpu_lanes() ||
      exact == n || !is_short)
    return exact;
  const auto cost = [&](int64_t lanes) {
    const int64_t times = (n + lanes - 1) / lanes;
    return std::tuple(times * std::max<int64_t>(lanes / cpu_lanes(), 1), times, lanes);
  };
  int64_t best = exact;
  for (int64_t lanes = 4; lanes <= most; lanes *= 2) {
    if (cost(lanes) < cost(best)) best = lanes;
  }
  return best;
}

int Chooser::best_vector_axis(int64_t least) const {
  int best = -1;
  for (int a = 0; a < count(); a++) {
    const bool usable = !axis(a).reduced && fixed(a) && lanes_along(a, 64) >= least;
    if (!usable || vector_score(a) <= 0) continue;
    if (best < 0 || vector_score(a) >= vector_score(best)) best = a;
  }
  return best;
}

void Chooser::vectorize_outputs(int64_t lanes) {
  const int a = best_vector_axis(2);
  if (a < 0) return;
  const int64_t n = lanes_along(a, lanes);
  if (n > 1) t_.try_apply({OptKind::Vector, a, n});
}

bool Chooser::reads_pairs() const {
  return target_.component_bytes >= 8 && target_.features.device_address && target_.features.i64;
}

int64_t Chooser::outputs_together(int64_t most, uint64_t least) const {
  int64_t n = reads_pairs() ? most : 4;
  while (n > 4 && k_.outputs / uint64_t(n) < least) n /= 2;
  return n;
}

std::vector<int> Chooser::reused_axes() const {
  std::vector<int> tile;
  for (int a = 0; a < count(); a++) {
    if (axis(a).shared && fixed(a) && axis(a).broadcast > 0 && axis(a).broadcast < k_.main_loads)
      tile.push_back(a);
  }
  return tile;
}

int Chooser::contiguous_reduction() const {
  int best = -1;
  for (int a : k_.main_axes) {
    const bool contiguous = axis(a).unit_loads > 0 && axis(a).unit_loads >= axis(a).strided;
    if (contiguous && fixed(a) && (best < 0 || left(a) > left(best))) best = a;
  }
  return best;
}

int64_t Chooser::steps_of(int a, int64_t most) const {
  constexpr int64_t kLittle = 16;
  const int64_t n = divisor_up_to(left(a), most, true);
  return n < most && left(a) >= kLittle * most ? most : n;
}

uint64_t Chooser::wanted_invocations() const {
  return target_.cores > 1 ? uint64_t(target_.cores) * target_.subgroup_size * 4 : 4096;
}

void Chooser::unroll_main(int64_t most, bool contiguous_first) {
  int a = contiguous_first ? contiguous_reduction() : -1;
  if (a < 0 && !k_.main_axes.empty()) a = k_.main_axes.back();
  if (a < 0 || !fixed(a) || axis(a).gated > 0) return;
  const int64_t instances = t_.lane_count() * std::max(k_.main_loads, 1);
  while (most > 1 && instances * most > kMaxUnrolledLoads) most /= 2;
  const int64_t divisor = divisor_up_to(left(a), most);
  const bool masks = k_.main_is_product && divisor == 1 && target_.load_cost >= kDearLoad;
  const int64_t n = masks ? steps_of(a, most) : divisor;
  if (n > 1) t_.try_apply({OptKind::Unroll, a, n});
}

}  // namespace tuff::kernel
