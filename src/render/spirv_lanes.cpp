// When the lanes of an op are written. An op that has several waits until one of its lanes is asked
// for, and writes that lane alone: what a store to a register needs stands before it, lane by lane,
// and few values wait for their use. Drivers that compile a block about as it stands keep in
// registers then what would be in memory: in a tile of products the sum of each lane. Whatever
// waits is written at the latest where the block ends, as its users may stand in any block after
// it. Loads are not put off, as stores may follow.
#include <algorithm>
#include <numeric>

#include "render/spirv_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {
constexpr SpirvValue kNotYet{0, 0, 0};  // nothing is divisible by 0
}

void SpirvKernel::put_off(size_t i) {
  values_[i].assign(static_cast<size_t>(space_.count(k_.lanes[i])), kNotYet);
  if (values_[i].size() == 1)
    lane(i, 0);
  else
    waiting_.push_back(i);
}

SpirvValue SpirvKernel::lane(size_t i, int n) {
  if (values_[i][n] != kNotYet) return values_[i][n];
  const size_t asked_by = current_;
  current_ = i;
  m_.line(kernel::text_line(i));
  const Op op = k_.ops[i]->op;
  const SpirvValue v = op == Op::Reduce    ? reduced(i, n)
                       : op == Op::Dot     ? dot(i, n)
                       : op == Op::Shuffle ? shuffled(i, n)
                                           : computed(i, n);
  current_ = asked_by;
  m_.line(kernel::text_line(asked_by));
  return values_[i][n] = v;
}

void SpirvKernel::settle() {
  for (const size_t i : waiting_) {
    for (int n = 0; n < static_cast<int>(values_[i].size()); ++n) lane(i, n);
  }
  waiting_.clear();
}

// Lanes that a value is shuffled for come one after the other: it takes an instruction to have it,
// and no lane asks for it again when its turn has passed.
std::vector<int> SpirvKernel::store_order(LaneMask mask) const {
  LaneMask handed_round = 0;
  for (size_t i = 0; i < k_.ops.size(); ++i) {
    if (k_.ops[i]->op == Op::Shuffle) handed_round |= k_.lanes[i];
  }
  handed_round &= mask;
  std::vector<int> order(static_cast<size_t>(space_.count(mask)));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int n) { return space_.project(mask, n, handed_round); });
  return order;
}

}  // namespace tuff::render
