// What the axes of a kernel that keeps rows in fast memory may become (attention fusion). Along row
// axes, of which every kept row depends on one at least, the invocations of a workgroup have rows
// of their own. Along the others, its columns, they share the rows: they fill them, reduce them and
// store what becomes of them together, each nest of loops with the same invocations.
#include <algorithm>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

using namespace ir;

std::string kept_refusal(const Tiling& t, const Opt& o) {
  const Axis& axis = t.axes[size_t(o.axis)];
  if (o.kind == OptKind::Group && axis.kept) return "a kept row is filled by one workgroup";
  if (o.kind == OptKind::Spread) return "workgroups keep rows of their own";
  return {};
}

std::string columns_refusal(const Tiling& t, const Opt& o) {
  if (columns_together(t) > 1 && columns_together(t) != o.amount)
    return "kept rows are shared by another number of invocations";
  const auto has_columns = [&](int a) {
    return t.axes[size_t(a)].column && has_part(t, a, AxisKind::Local);
  };
  if (o.kind == OptKind::Local) {
    for (const Tiling::Stored& s : t.stored) {
      const auto closes = [&](int a) { return contains(s.axes, a) && !contains(s.around, a); };
      for (int a = 0; a < int(t.axes.size()); a++) {
        if (closes(o.axis) && closes(a) && has_columns(a))
          return "the nest has its columns already";
      }
    }
  } else if (std::string why = nested_refusal(t, o); !why.empty()) {
    return why;
  }
  for (const Tiling::Reduction& r : t.reductions) {
    const auto is_next = [&](int a) { return o.kind == OptKind::GroupReduce && a == o.axis; };
    const bool shared = std::ranges::any_of(
        r.own, [&](int a) { return is_next(a) || has_part(t, a, AxisKind::GroupReduce); });
    const bool by_column = std::ranges::any_of(r.around, [&](int a) {
      return has_columns(a) || (o.kind == OptKind::Local && a == o.axis);
    });
    if (shared && by_column) return "a reduction that the workgroup shares depends on the axis";
  }
  return {};
}

// ---- slabs

std::string slab_refusal(const Tiling& t, const Opt& o) {
  if (!contains(t.slab_axes, o.axis)) return "the axis walks no rows that are read part by part";
  if (o.amount == t.axes[size_t(o.axis)].main_size()) return "that is all of a row";
  for (const int a : t.slab_axes)
    if (t.axes[size_t(a)].parts.size() > 1) return "an axis that walks a row is split already";
  const auto loops = [&](int a) {
    return std::ranges::any_of(t.axes[size_t(a)].parts, [](const AxisPart& p) {
      return is_loop(p.kind) && !p.size->is_const_int(1);
    });
  };
  // The axes around reductions and fills, which are all inside the loops that are left of rows.
  std::vector<const std::vector<int>*> around;
  for (const Tiling::Stored& s : t.stored)
    if (s.kept_bytes) around.push_back(&s.around);
  for (const Tiling::Reduction& r : t.reductions) {
    if (std::ranges::any_of(r.own, [&](int a) { return contains(t.slab_axes, a); }))
      around.push_back(&r.around);
  }
  for (const std::vector<int>* some : around) {
    for (const int a : *some) {
      const auto has = [&](const std::vector<int>* other) { return contains(*other, a); };
      if (loops(a) && !std::ranges::all_of(around, has))
        return "a loop is left that not all of them have in common";
    }
  }
  return {};
}


void take_slab(Tiling& t, const Opt& o) {
  const int64_t elements = o.amount;
  const int64_t all = t.axes[size_t(t.slab_axes[0])].main_size();
  for (const int a : t.slab_axes) {
    Axis& axis = t.axes[size_t(a)];
    const UOp size = axis.parts.back().size;
    const UOp slabs = simplify(floordiv(size + (elements - 1), index_const(elements)));
    axis.parts.back().size = index_const(elements);
    axis.parts.insert(axis.parts.begin(), {AxisKind::Reduce, slabs});
    axis.padded =
        axis.padded || !simplify(floormod(size, index_const(elements)))->is_const_int(0);
    axis.main = 1;
    axis.slabs = true;
  }
  // A sum without columns of its own would have to be complete before its row is overwritten.
  const auto waits = [&](const Tiling::Reduction& r) {
    return std::ranges::any_of(r.own, [&](int a) { return contains(t.slab_axes, a); }) &&
           std::ranges::none_of(r.around, [&](int a) { return t.axes[size_t(a)].column; });
  };
  const bool by_row = !t.scales_sums && std::ranges::any_of(t.reductions, waits);
  for (Tiling::Stored& s : t.stored) {
    if (!s.kept_bytes) continue;
    s.kept_bytes -= (all - elements) * s.element_bytes;
    s.overwrites = s.overwrites && !by_row;
  }
}

}  // namespace tuff::kernel
