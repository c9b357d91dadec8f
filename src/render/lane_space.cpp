#include "render/lane_space.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "ir/kernel_floor.h"

namespace tuff::render {

using ir::AxisKind;
using kernel::LaneMask;

LaneSpace::LaneSpace(const kernel::LinearKernel& k) {
  TUFF_CHECK(k.ops.size() == k.lanes.size(), "kernel {}: {} ops, {} lane masks", k.name,
             k.ops.size(), k.lanes.size());
  int vector = -1;
  for (const ir::UOp& range : k.lane_ranges) {
    TUFF_CHECK(range->src(0)->is_const(), "kernel {}: a lane range of symbolic size", k.name);
    if (range->get<ir::RangeArg>().kind == AxisKind::Vector) vector = bits();
    sizes_.push_back(static_cast<int>(range->src(0)->const_int()));
    ranges_.push_back(range.get());
  }
  for (const ir::UOp& u : k.ops) {
    if (u->op != ir::Op::Dot) continue;
    for (const ir::UOp& r : ir::dot_lanes(u.get())) chained_ |= LaneMask{1} << bit_of(r.get());
  }
  if (vector < 0) vector = widest_partial_sums();
  if (vector < 0) return;
  vector_mask_ = LaneMask{1} << vector;
  vector_width_ = sizes_[vector];
  add_partial_sums(k);
}

bool LaneSpace::folds_lanes(int bit) const {
  return ranges_[bit]->get<ir::RangeArg>().kind == AxisKind::ReduceLane && !(chained_ >> bit & 1);
}

// Without a Vector range the lanes of partial sums serve: they are folded once, after the loop.
int LaneSpace::widest_partial_sums() const {
  int best = -1;
  for (int bit = 0; bit < bits(); ++bit) {
    const bool usable = folds_lanes(bit) && sizes_[bit] >= 4 &&
                        std::has_single_bit(static_cast<unsigned>(sizes_[bit]));
    if (usable && (best < 0 || sizes_[bit] > sizes_[best])) best = bit;
  }
  return best;
}

// Partial sums of one reduction after another, or before what is stored, share the SIMD lanes: each
// is folded before the next begins.
void LaneSpace::add_partial_sums(const kernel::LinearKernel& k) {
  for (int bit = 0; bit < bits(); ++bit) {
    const LaneMask own = LaneMask{1} << bit;
    if (vector_mask_ & own || !folds_lanes(bit) || sizes_[bit] != vector_width_) continue;
    const bool apart = std::none_of(k.lanes.begin(), k.lanes.end(),
                                    [&](LaneMask m) { return (m & own) && (m & vector_mask_); });
    if (apart) vector_mask_ |= own;
  }
}

int LaneSpace::count(LaneMask mask) const {
  int n = 1;
  for (int bit = 0; bit < bits(); ++bit)
    if (mask >> bit & 1) n *= sizes_[bit];
  return n;
}

int LaneSpace::digit(LaneMask mask, int instance, int bit) const {
  for (int b = bits() - 1; b > bit; --b)
    if (mask >> b & 1) instance /= sizes_[b];
  return mask >> bit & 1 ? instance % sizes_[bit] : 0;
}

int LaneSpace::stride(LaneMask mask, int bit) const {
  return count(mask & ~((LaneMask{2} << bit) - 1));
}

int LaneSpace::project(LaneMask from, int instance, LaneMask to, LaneMask extra_mask,
                       int extra) const {
  int out = 0;
  for (int bit = 0; bit < bits(); ++bit) {
    if (!(to >> bit & 1)) continue;
    const bool own = from >> bit & 1;
    out = out * sizes_[bit] + (own ? digit(from, instance, bit) : digit(extra_mask, extra, bit));
  }
  return out;
}

int LaneSpace::bit_of(const ir::Node* range) const {
  for (int bit = 0; bit < bits(); ++bit)
    if (ranges_[bit] == range) return bit;
  return -1;
}

}  // namespace tuff::render
