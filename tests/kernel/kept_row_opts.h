// Random kernels that keep rows, and schedules of them where a workgroup shares the rows. For the
// tests of kernel.
#pragma once

#include <random>

#include "kernel/ast_builder.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {

// Attention (0), the gradients of its queries (1), of its keys and values (2).
inline ir::UOp random_attention(std::mt19937& random, int kind,
                                   std::initializer_list<int64_t> positions,
                                   std::initializer_list<int64_t> widths) {
  const auto one_of = [&](std::initializer_list<int64_t> v) {
    return v.begin()[random() % v.size()];
  };
  const int64_t heads = one_of({1, 2, 3}), length = one_of(positions), width = one_of(widths);
  if (kind == 1) return attention_gradient_ast(heads, length, width);
  if (kind == 2) return attention_factor_gradients_ast(heads, length, width, random() % 2);
  return attention_ast(heads, length, width, random() % 2);
}

// What has columns for itself is walked by lanes and invocations alone; then rows go slab by slab.
inline void take_slabs(Tiling& t, std::mt19937& random, int64_t together) {
  if (t.slab_axes.empty() || random() % 3 == 0) return;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    if (axis.reduced || axis.kept || !axis.column) continue;
    if (axis.main_size() > together)
      try_apply(t, {OptKind::Upcast, a, (axis.main_size() + together - 1) / together});
    try_apply(t, {OptKind::Local, a, together});
  }
  const int axis = t.slab_axes[random() % t.slab_axes.size()];
  for (int64_t n = 2 + int64_t(random() % 8); n > 1; n--) try_apply(t, {OptKind::Slab, axis, n});
}

// Opts that share kept rows out to the invocations of a workgroup, and tile products between them.
inline std::vector<Opt> kept_row_opts(const ir::UOp& ast, const Target& target,
                                      std::mt19937& random) {
  Tiling t(ast_for_opts(ast, target), target);
  const auto pick = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  const int64_t together = 1 + pick(3);
  take_slabs(t, random, 1 << together);
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    const bool along = axis.reduced || axis.column;
    if (!along && pick(2)) try_apply(t, {OptKind::Local, a, 2 + pick(4)});
    if (lane_count(t) <= 16 && !pick(3))
      try_apply(t, {axis.reduced ? OptKind::Unroll : OptKind::Upcast, a, 2 + pick(3)});
    if (along && pick(4))
      try_apply(t, {axis.reduced ? OptKind::GroupReduce : OptKind::Local, a, 1 << together});
    if (!pick(4)) try_apply(t, {OptKind::Split, a, 2});
    if (!axis.kept && !axis.reduced && pick(2)) try_apply(t, {OptKind::Group, a, pick(2) * 2});
  }
  for (int f = 0; f < int(t.factors.size()); f++) try_apply(t, {OptKind::Stage, f, pick(7)});
  for (int f = 0; f < int(t.factors.size()); f++) try_apply(t, {OptKind::Ahead, f, 1});
  return t.applied;
}

}  // namespace tuff::kernel::testing
