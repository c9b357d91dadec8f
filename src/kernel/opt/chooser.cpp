#include "kernel/opt/chooser.h"

#include <algorithm>

namespace tuff::kernel {

namespace {

constexpr int64_t kMaxUnrolledLoads = 512;  // load instances of one body: compile time, code size

}  // namespace

int Chooser::vector_score(int a) const {
  const AxisShape& x = axis(a);
  return 2 * x.unit_loads + 2 * x.unit_stores - 2 * x.strided;
}

int64_t Chooser::vector_width(int a, int64_t most) const {
  const int64_t size = left(a), whole = divisor_up_to(size, most, true);
  if (target_.has_local || axis(a).strided > 0) return whole;
  const auto vectors = [&](int64_t n) {
    return (size + n - 1) / n * ((n + cpu_lanes() - 1) / cpu_lanes());
  };
  int64_t best = whole;
  int64_t cost = 2 * vectors(whole);
  for (int64_t n = most; n > whole; n /= 2)
    if (3 * vectors(n) < cost) best = n, cost = 3 * vectors(n);
  return best;
}

int Chooser::best_vector_axis(int64_t least) const {
  int best = -1;
  for (int a = 0; a < count(); a++) {
    const bool usable = !axis(a).reduced && fixed(a) && vector_width(a, 64) >= least;
    if (!usable || vector_score(a) <= 0) continue;
    if (best < 0 || vector_score(a) >= vector_score(best)) best = a;
  }
  return best;
}

void Chooser::vectorize_outputs(int64_t lanes) {
  const int a = best_vector_axis(2);
  if (a < 0) return;
  const int64_t n = vector_width(a, lanes);
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
