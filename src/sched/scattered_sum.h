// A sum over a comparison with a counter along another axis, as gradients of gather and embedding
// spell it, walks all that may come to each place; stored by index, what comes to it alone. Called
// by prepare(). Works on the tensor floor alone.
#pragma once

#include <algorithm>

#include "base/target.h"
#include "ir/uop.h"

namespace tuff::sched {

// Invocations that go through a Scatter's value in order, for each lane of a device: they wait for
// memory beside each other.
inline constexpr int64_t kWalkersPerLane = 4;
inline int64_t walkers(const Target& t) {
  return int64_t(t.cores) * std::max<int64_t>(t.subgroup_size, 1) * kWalkersPerLane;
}

// sum over k of where(index[k] == n, value[k, w], 0) as zeros (n, w), to which value[k, w] is added
// at index[k], in the order of k, or in any; null where the sum is another one, or the target is
// better off with it.
ir::UOp scattered_sum(const ir::UOp& sum, const Target& target, bool any_order);

}  // namespace tuff::sched
