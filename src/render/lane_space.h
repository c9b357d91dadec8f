// LaneSpace: which instances an op with a lane mask has, and which instance of a source belongs to
// which instance of its user. Called by the renderers. Must never know a language.
// Instances of a mask are numbered in mixed radix, the lowest bit slowest.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/lowered.h"

namespace tuff::render {

class LaneSpace {
 public:
  explicit LaneSpace(const kernel::LinearKernel& k);

  int size(int bit) const { return sizes_[bit]; }
  int bits() const { return static_cast<int>(sizes_.size()); }
  int count(kernel::LaneMask mask) const;
  int digit(kernel::LaneMask mask, int instance, int bit) const;  // the lane value of `bit`
  int stride(kernel::LaneMask mask, int bit) const;  // instances from one lane to the next
  // The instance of `to` that has the same lane values as `instance` of `from`; bits of `to` that
  // `from` lacks are taken from `extra`, an instance of `extra_mask`, or are 0.
  int project(kernel::LaneMask from, int instance, kernel::LaneMask to,
              kernel::LaneMask extra_mask = 0, int extra = 0) const;
  int bit_of(const ir::Node* range) const;  // -1 if it is no lane range
  // The lanes for SIMD, of one width; no op has several of them. 0: none.
  kernel::LaneMask vector_mask() const { return vector_mask_; }
  int vector_width() const { return vector_width_; }  // 1: none

 private:
  bool folds_lanes(int bit) const;
  int widest_partial_sums() const;
  void add_partial_sums(const kernel::LinearKernel& k);
  std::vector<int> sizes_;
  std::vector<const ir::Node*> ranges_;
  kernel::LaneMask vector_mask_ = 0, chained_ = 0;  // chained: folded by a Dot, in order
  int vector_width_ = 1;
};

}  // namespace tuff::render
