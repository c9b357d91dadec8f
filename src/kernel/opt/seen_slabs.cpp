#include "kernel/opt/seen_slabs.h"

#include <algorithm>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/seen_columns.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Whether the loop over slabs stands inside of this loop of rows: a thread has tiles of rows one
// after the other, the invocations of a workgroup leave the loop together.
bool ends_slabs(const Tiling& t, const AxisPart& rows) {
  return rows.kind == AxisKind::Group || (is_loop(rows.kind) && !t.target.has_local);
}

// A bound of the first or the last of the rows that are taken together.
UOp of_rows_together(const UOp& bound, bool last, const Tiling& t,
                     std::span<const BuiltAxis> built) {
  const LinearForm f = linear_form(bound);
  UOp out = index_const(f.constant);
  for (const auto& [range, step] : f.terms) {
    const auto axis = size_t(axis_of(t, range.get()));
    UOp row = index_const(0);
    size_t ranges = 0;
    for (const AxisPart& p : t.axes[axis].parts) {
      if (p.size->is_const_int(1)) continue;
      const UOp& own = built[axis].ranges[ranges++];
      row = row * p.size + (ends_slabs(t, p) ? own : last ? p.size - 1 : index_const(0));
    }
    out = out + row * step;
  }
  return out;
}

}  // namespace

ShownColumns seen_of_slabs(const Tiling& t) {
  std::vector<UOp> columns;
  for (const Axis& a : t.axes)
    if (a.slabs) columns.push_back(a.range);
  const ShownColumns seen = columns.empty() ? ShownColumns() : seen_columns(t.ast, columns);
  if (!seen) return {};
  const auto differs = [&](const auto& term) {
    return std::ranges::any_of(
        t.axes[size_t(axis_of(t, term.first.get()))].parts,
        [&](const AxisPart& p) { return ends_slabs(t, p) && !p.size->is_const_int(1); });
  };
  const UOp& bound = seen.begin ? seen.begin : seen.end;
  return std::ranges::any_of(linear_form(bound).terms, differs) ? seen : ShownColumns();
}

void take_seen_slabs(Axis& axis, const ShownColumns& seen, const Tiling& t,
                     std::span<const BuiltAxis> built) {
  int64_t elements = 1;
  for (const AxisPart& p : std::span(axis.parts).subspan(1)) elements *= p.size->max;
  UOp& slabs = axis.parts[0].size;
  const UOp all = slabs, none = index_const(0);
  if (seen.end) {
    const UOp last = of_rows_together(seen.end, true, t, built),
              some = floordiv(last + (elements - 1), index_const(elements));
    slabs = simplify(where(lt(some, all), some, all));
  } else if (all->is_const()) {
    const UOp first = of_rows_together(seen.begin, false, t, built),
              hidden = simplify(floordiv(first, index_const(elements)));
    slabs = simplify(where(lt(hidden, all), where(lt(hidden, none), all, all - hidden), none));
    axis.backwards = all->const_int();
  }
}

}  // namespace tuff::kernel
