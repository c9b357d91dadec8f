// What a linear list does how often. Called by the passes over a finished list.
#pragma once

#include <vector>

#include "kernel/analysis/ranges.h"
#include "kernel/lowered.h"

namespace tuff::kernel {

// How many lanes have a value of that mask.
inline int64_t lane_count(const LinearKernel& k, LaneMask m) {
  int64_t n = 1;
  for (size_t i = 0; i < k.lane_ranges.size(); i++)
    n *= m >> i & 1 ? k.lane_ranges[i]->src(0)->max : 1;
  return n;
}

// visit(i, times): the i-th op runs that often in one invocation, loops at their longest; loops and
// their ends themselves are left out.
template <class Visit>
void for_each_op(const LinearKernel& k, Visit visit) {
  uint64_t times = 1;
  std::vector<uint64_t> outer;
  for (size_t i = 0; i < k.ops.size(); i++) {
    const ir::Node& u = *k.ops[i];
    if (u.op == ir::Op::Range && is_loop(kind_of(&u))) {
      outer.push_back(times);
      times *= uint64_t(u.src(0)->max);
    } else if (u.op == ir::Op::End) {
      times = outer.back();
      outer.pop_back();
    } else {
      visit(i, times);
    }
  }
}

}  // namespace tuff::kernel
