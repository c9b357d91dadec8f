// Random schedules of kernels that keep rows, where a workgroup shares them. For the tests of
// kernel.
#pragma once

#include <random>

#include "kernel/pipeline.h"

namespace tuff::kernel::testing {

// Opts that share kept rows out to the invocations of a workgroup, and tile products between them.
inline std::vector<Opt> kept_row_opts(const graph::UOp& ast, const Target& target,
                                      std::mt19937& random) {
  Tiling t(ast_for_opts(ast), target);
  const auto pick = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  const int64_t together = 1 + pick(3);
  for (int a = 0; a < int(t.axes().size()); a++) {
    const Axis& axis = t.axes()[size_t(a)];
    const bool along = axis.reduced || axis.column;
    if (!along && pick(2)) t.try_apply({OptKind::Local, a, 2 + pick(4)});
    if (t.lane_count() <= 16 && !pick(3))
      t.try_apply({axis.reduced ? OptKind::Unroll : OptKind::Upcast, a, 2 + pick(3)});
    if (along && pick(4))
      t.try_apply({axis.reduced ? OptKind::GroupReduce : OptKind::Local, a, 1 << together});
    if (!pick(4)) t.try_apply({OptKind::Split, a, 2});
    if (!axis.kept && !axis.reduced && pick(2)) t.try_apply({OptKind::Group, a, pick(2) * 2});
  }
  for (int f = 0; f < int(t.factors().size()); f++) t.try_apply({OptKind::Stage, f, pick(7)});
  for (int f = 0; f < int(t.factors().size()); f++) t.try_apply({OptKind::Ahead, f, 1});
  return t.applied();
}

}  // namespace tuff::kernel::testing
