#include "kernel/opt/chooser.h"

#include <algorithm>
#include <bit>

#include "ir/walk.h"

namespace tuff::kernel {

namespace {

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
    const bool usable = !axis(a).reduced && splits(a) && lanes_along(a, 64) >= least;
    if (!usable || vector_score(a) <= 0) continue;
    if (best < 0 || vector_score(a) >= vector_score(best)) best = a;
  }
  return best;
}

void Chooser::vectorize_outputs(int64_t lanes) {
  const int a = best_vector_axis(2);
  if (a < 0) return;
  const int64_t n = lanes_along(a, lanes);
  if (n > 1) try_apply(t_, {OptKind::Vector, a, n});
}

void Chooser::upcast_between_lanes() {
  const auto stores_between = [&](int a) {
    return axis(a).near_stores > 0 && t_.axes[size_t(a)].lanes() > 1;
  };
  bool between = false;
  for (int a = 0; a < count(); a++) between = between || stores_between(a);
  for (int a = 0; a < count() && between; a++) {
    if (!axis(a).shared || !splits(a) || axis(a).unit_stores == 0 || left(a) > kMostInterleaved)
      continue;
    if (lane_count(t_) * left(a) <= cpu_lanes() * cost::cpu::registers(target_) / 2)
      try_apply(t_, {OptKind::Upcast, a, left(a)});
  }
}

int64_t Chooser::outputs_together() const {
  const int along = best_vector_axis(2);
  int64_t n =
      along < 0 ? 4 : std::max<int64_t>(4, target_.elements_together(axis(along).unit_bytes));
  while (n > 4 && k_.outputs / uint64_t(n) < cost::wanted_invocations(target_)) n /= 2;
  return n;
}

int Chooser::row_axis() const {
  int best = -1, most = 0;
  for (int a = 0; a < count(); a++) {
    const bool column = target_.has_local && t_.axes[size_t(a)].column;
    if (!axis(a).shared || column || !splits(a) || left(a) < 2) continue;
    int reused = 0;
    for (size_t f = 0; f + 1 < t_.factors.size(); f += 2)
      reused += t_.factors[f].walks(a) != t_.factors[f + 1].walks(a);
    if (reused > 0 && reused >= most) best = a, most = reused;
  }
  return best;
}

std::vector<int> Chooser::main_factors() const {
  const ir::Node* product = ir::through_casts(k_.main_reduce->src(0).get());
  std::vector<int> out;
  for (size_t f = 0; f < t_.factors.size(); f++)
    if (t_.factors[f].product.get() == product) out.push_back(int(f));
  return out;
}

std::vector<int> Chooser::reused_axes() const {
  std::vector<int> tile;
  for (int a = 0; a < count(); a++) {
    if (axis(a).shared && splits(a) && axis(a).broadcast > 0 && axis(a).broadcast < k_.main_loads)
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
    if (contiguous && splits(a) && (best < 0 || left(a) > left(best))) best = a;
  }
  return best;
}

void Chooser::unroll_main(int64_t most, bool contiguous_first) {
  int a = contiguous_first ? contiguous_reduction() : -1;
  if (a < 0 && !k_.main_axes.empty()) a = k_.main_axes.back();
  if (a < 0 || !splits(a) || axis(a).gated > 0) return;
  const int64_t instances = lane_count(t_) * std::max(k_.main_loads, 1);
  while (most > 1 && instances * most > kMaxUnrolledLoads) most /= 2;
  const int64_t n = divisor_up_to(left(a), most);
  if (n > 1) try_apply(t_, {OptKind::Unroll, a, n});
}

double Chooser::padding(int a, int64_t lanes) const {
  constexpr double kMask = 1.25, kNever = 1e6;
  constexpr int64_t kLeast = 4, kMost = 8;
  const int64_t size = left(a), rest = size % lanes;
  if (rest == 0) return 1;
  for (int64_t n = kLeast; n <= kMost; n++) {
    if (size % n == 0) return kNever;
  }
  return kMask * double(size + lanes - rest) / double(size);
}

}  // namespace tuff::kernel
