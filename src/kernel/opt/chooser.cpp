#include "kernel/opt/chooser.h"

#include <algorithm>
#include <bit>

namespace tuff::kernel {

namespace {

// Outputs of one invocation; of a length that is no power of two all of them, if these are few.
constexpr int64_t kMostTogether = 64, kFewNeighbours = 8, kMostUneven = 12;
constexpr uint64_t kMostWorkEach = 64;      // operations of one of them: all are written out
constexpr int64_t kMaxUnrolledLoads = 512;  // load instances of one body: compile time, code size

}  // namespace

double Chooser::vector_score(int a) const {
  const AxisShape& x = axis(a);
  const double pieces = target_.has_local ? 0 : x.unit_pieces_share;
  const double shuffled = target_.has_local ? 0 : x.shuffled_share;
  return 2 * (x.unit_share + pieces) - 2 * (x.strided_share - shuffled);
}

int Chooser::gathers_along(int a) const {
  const AxisShape& x = axis(a);
  return target_.has_local ? x.strided : x.strided - x.repeated - x.interleaved - x.in_pieces;
}

int64_t Chooser::lanes_along(int a, int64_t most) const {
  constexpr uint32_t kMaskingBytes = 32;
  // Lanes of one piece are loaded at once, those of several one by one.
  if (!target_.has_local && axis(a).piece > 0) most = std::min(most, axis(a).piece);
  const int64_t n = left(a), whole = divisor_up_to(n, most, true);
  if (target_.has_local || gathers_along(a) > 0) return whole;
  const auto vectors = [&](int64_t lanes) {
    return ceil_div(n, lanes) * ceil_div(lanes, cpu_lanes());
  };
  const auto masked = [&](int64_t lanes) {
    return 3 * (vectors(lanes) + (target_.vector_bytes < kMaskingBytes ? lanes : 0));
  };
  int64_t best = whole, cost = 2 * vectors(whole);
  const int64_t longest = std::min(most, int64_t(std::bit_ceil(uint64_t(n))));
  for (int64_t lanes = longest; lanes > whole; lanes /= 2) {
    if (masked(lanes) < cost) best = lanes, cost = masked(lanes);
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

void Chooser::upcast_between_lanes() {
  const int64_t registers = std::max<int64_t>(target_.vector_registers, 8);
  const auto stores_between = [&](int a) {
    return axis(a).near_stores > 0 && t_.axes()[size_t(a)].lanes() > 1;
  };
  bool between = false;
  for (int a = 0; a < count(); a++) between = between || stores_between(a);
  for (int a = 0; a < count() && between; a++) {
    if (!axis(a).shared || !fixed(a) || axis(a).unit_stores == 0 || left(a) > kMostInterleaved)
      continue;
    if (t_.lane_count() * left(a) <= cpu_lanes() * registers / 2)
      t_.try_apply({OptKind::Upcast, a, left(a)});
  }
}

void Chooser::take_neighbours(int64_t most, int least_score) {
  if (!target_.loads_are_expensive()) return vectorize_outputs(most);
  const auto score = [&](int a) { return vector_score(a) + 2 * axis(a).strided_near; };
  const auto walks = [&](int a) { return axis(a).unit_loads + axis(a).unit_stores > 0; };
  int best = -1;
  for (int a = 0; a < count(); a++) {
    const bool usable = !axis(a).reduced && fixed(a) && left(a) > 1 && walks(a);
    if (!usable || score(a) < least_score) continue;
    if (best < 0 || score(a) >= score(best)) best = a;
  }
  if (best < 0) return;
  const int64_t power = divisor_up_to(left(best), most, true);
  // Few outputs had better be many invocations, which are quickly compiled.
  const bool many = k_.outputs / uint64_t(kMostUneven) >= wanted_invocations() &&
                    k_.work / k_.outputs <= kMostWorkEach;
  const bool uneven = many && power < kFewNeighbours;
  const int64_t n = uneven ? divisor_up_to(left(best), kMostUneven) : power;
  t_.try_apply({n == power ? OptKind::Vector : OptKind::Upcast, best, n});
  if (!many) return;
  for (int a = 0; a < count(); a++) {
    const bool runs = a != best && !axis(a).reduced && fixed(a) && axis(a).run > 1;
    if (runs && left(a) % axis(a).run == 0 && axis(a).run * t_.lane_count() <= kMostTogether)
      t_.try_apply({OptKind::Upcast, a, axis(a).run});
  }
}

bool Chooser::reads_pairs() const {
  return target_.component_bytes >= 8 && target_.features.device_address && target_.features.i64;
}

int64_t Chooser::outputs_together(int64_t most, uint64_t least) const {
  int64_t n = most;
  if (!reads_pairs()) {
    const int along = best_vector_axis(2);
    n = along < 0 ? 4 : std::max<int64_t>(4, target_.elements_together(axis(along).unit_bytes));
    least = std::max(least, wanted_invocations());
  }
  while (n > 4 && k_.outputs / uint64_t(n) < least) n /= 2;
  return n;
}

int Chooser::row_axis() const {
  int best = -1, most = 0;
  for (int a = 0; a < count(); a++) {
    const bool column = target_.has_local && t_.axes()[size_t(a)].column;
    if (!axis(a).shared || column || !fixed(a) || left(a) < 2) continue;
    int reused = 0;
    for (size_t f = 0; f + 1 < t_.factors().size(); f += 2)
      reused += t_.factors()[f].walks(a) != t_.factors()[f + 1].walks(a);
    if (reused > 0 && reused >= most) best = a, most = reused;
  }
  return best;
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
    const AxisShape& x = axis(a);
    const int unit = x.unit_loads + (target_.has_local ? 0 : x.unit_pieces),
              strided = x.strided - (target_.has_local ? 0 : x.in_pieces);
    const bool contiguous = unit > 0 && unit >= strided;
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
  const bool masks = k_.main_is_product && divisor == 1 && target_.loads_are_expensive();
  const int64_t n = masks ? steps_of(a, most) : divisor;
  if (n > 1) t_.try_apply({OptKind::Unroll, a, n});
}

double Chooser::padding(int a, int64_t lanes, int64_t least, int64_t most) const {
  constexpr double kMask = 1.25, kNever = 1e6;
  const int64_t size = left(a), rest = size % lanes;
  if (rest == 0) return 1;
  for (int64_t n = least; n <= most; n++) {
    if (size % n == 0) return kNever;
  }
  return kMask * double(size + lanes - rest) / double(size);
}

double Chooser::component_cost(int64_t n) const {
  return double(target_.load_cost) / (n > 1 && reads_pairs() ? 2 : 1);
}

}  // namespace tuff::kernel
