// What the axes of a kernel that keeps rows in fast memory may become (attention fusion). Along row
// axes, of which every kept row depends on one at least, the invocations of a workgroup have rows
// of their own. Along the others, its columns, they share the rows: they fill them, reduce them and
// store what becomes of them together, each nest of loops with the same invocations.
#include <algorithm>

#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "kernel/analysis/ranges.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/opt/opt.h"

namespace tuff::kernel {

using namespace ir;

namespace {

bool widens_rows(const AxisPart& p) { return is_lane(p.kind) || p.kind == AxisKind::Local; }
bool widens_rows(const Opt& o) {
  return o.kind == OptKind::Upcast || o.kind == OptKind::Vector || o.kind == OptKind::Unroll ||
         o.kind == OptKind::Local;
}

}  // namespace

bool Tiling::keeps_rows() const {
  return std::ranges::any_of(stored_, [](const Stored& s) { return s.kept_bytes > 0; });
}

void Tiling::find_columns() {
  if (!keeps_rows()) return;
  for (int a = 0; a < int(axes_.size()); a++) {
    axes_[size_t(a)].column =
        !axes_[size_t(a)].reduced && std::ranges::none_of(stored_, [&](const Stored& s) {
          return s.kept_bytes && contains(s.around, a);
        });
  }
}

bool Tiling::is_column(const Opt& o) const {
  return o.kind == OptKind::GroupReduce ||
         (o.kind == OptKind::Local && axes_[size_t(o.axis)].column);
}

int64_t Tiling::columns_together() const {
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts) {
      if (p.kind == AxisKind::GroupReduce || (a.column && p.kind == AxisKind::Local))
        return p.size->max;
    }
  }
  return 1;
}

bool Tiling::columns_without_axis() const {
  return columns_together() > 1 && std::ranges::none_of(axes_, [](const Axis& a) {
           return a.column && std::ranges::any_of(a.parts, [](const AxisPart& p) {
                    return p.kind == AxisKind::Local;
                  });
         });
}

int64_t Tiling::kept_bytes() const { return keeps_rows() ? workgroup_bytes() : 0; }

int64_t Tiling::workgroup_bytes(const std::optional<Opt>& next) const {
  const auto rows = [&](const std::vector<int>& around) {
    int64_t n = 1;
    for (int a : around) {
      for (const AxisPart& p : axes_[size_t(a)].parts) n *= widens_rows(p) ? p.size->max : 1;
      if (next && a == next->axis && widens_rows(*next)) n *= next->amount;
    }
    return n;
  };
  int64_t total = 0;
  for (const Stored& s : stored_) {
    if (s.kept_bytes && !is_overwriting(s, next)) total += s.kept_bytes * rows(s.around);
  }
  const bool begins_spread = next && next->kind == OptKind::Spread && !spread_groups_;
  const int64_t width = spread_groups_ ? spread_width_ : begins_spread ? spread_width() : 1;
  for (const Reduction& r : reductions_) {
    const bool is_spread =
        std::ranges::any_of(r.around, [&](int a) { return axes_[size_t(a)].rows > 0; });
    for (int a : r.own) {
      const bool is_next = next && a == next->axis && next->kind == OptKind::GroupReduce;
      if (is_next || has_part(a, AxisKind::GroupReduce))
        total += r.bytes * rows(r.around) * (is_spread ? 1 : width) * parts_in_memory(r, next);
    }
  }
  return total;
}

// Of those that share it (see lower/reduce.cpp): lanes hand each other theirs, if shares are
// neighbours. Whole subgroups remain whole with more invocations.
int64_t Tiling::parts_in_memory(const Reduction& r, const std::optional<Opt>& next) const {
  int64_t width = columns_together(), invocations = local_size();
  bool neighbours = !matrices_ && !shares_outermost_;
  if (next && next->kind == OptKind::Spread) neighbours = false;
  if (next && (next->kind == OptKind::Local || next->kind == OptKind::GroupReduce)) {
    const bool shares = next->kind == OptKind::GroupReduce || is_column(*next) ||
                        is_beside_shared(next->axis);
    if (!shares && !keeps_rows() && has_part(-1, AxisKind::GroupReduce)) neighbours = false;
    invocations = (shares ? invocations / width : invocations) * next->amount;
    width = shares ? next->amount : width;
  }
  if (!neighbours || r.bytes != 4 || !folds_in_subgroups(target_, width, invocations)) return width;
  return width > int64_t(target_.subgroup_size) ? width / int64_t(target_.subgroup_size) : 0;
}

// Each invocation stores what it alone reads: its nest has columns, none of them masked, and no row
// is filled by several.
bool Tiling::is_overwriting(const Stored& s, const std::optional<Opt>& next) const {
  if (!s.overwrites) return false;
  bool has_columns = false;
  for (int i = 0; i < int(axes_.size()); i++) {
    const Axis& a = axes_[size_t(i)];
    const bool is_next = next && i == next->axis && a.main_is_const();
    const bool local = has_part(i, AxisKind::Local) || (is_next && next->kind == OptKind::Local);
    const bool closed = contains(s.axes, i) && !contains(s.around, i);
    // Past the end of its last slab an invocation has a place of its own there; past that of a whole
    // row it reads the last element.
    const bool splits = is_next && next->kind != OptKind::Slab;
    if (closed && !a.slabs &&
        (a.padded || (splits && a.main_size() % std::max<int64_t>(next->amount, 1))))
      return false;
    if (!a.column && local && !contains(s.around, i)) return false;
    has_columns = has_columns || (closed && local);
  }
  return has_columns;
}

int64_t Tiling::kept_row_bytes(int64_t columns, int64_t slab) const {
  int64_t total = 0;
  for (const Stored& s : stored_) {
    bool divides = true;
    int64_t elements = 0;
    for (const int a : s.axes) {
      if (contains(s.around, a)) continue;
      elements = axes_[size_t(a)].main_size();
      divides = divides && (slab ? slab : elements) % columns == 0;
    }
    if (s.kept_bytes && !(s.overwrites && divides))
      total += s.kept_bytes - (slab ? elements - slab : 0) * s.element_bytes;
  }
  return total;
}

// ---- slabs ----

void Tiling::find_slab_axes() {
  const auto walked = columns_of_rows(ast_);
  if (!walked || walked->empty() ||
      std::ranges::any_of(*walked, [&](auto& r) { return axis_of(r.get()) < 0; }))
    return;
  const auto sweep = one_sweep(ast_, *walked);
  if (!sweep) return;
  scales_sums_ = sweep->max && sweep->others.empty();
  std::vector<int> found;
  for (int a = 0; a < int(axes_.size()); a++) {
    const Axis& axis = axes_[size_t(a)];
    if (!contains(*walked, axis.range)) continue;
    const bool walks_a_row = axis.kept || axis.reduced;
    if (!walks_a_row || !axis.main_is_const()) return;
    if (!found.empty() && axis.main_size() != axes_[size_t(found[0])].main_size()) return;
    found.push_back(a);
  }
  slab_axes_ = std::move(found);
}

std::string Tiling::check_slab(const Opt& o) const {
  if (!contains(slab_axes_, o.axis)) return "the axis walks no rows that are read part by part";
  if (o.amount == axes_[size_t(o.axis)].main_size()) return "that is all of a row";
  for (const int a : slab_axes_)
    if (axes_[size_t(a)].parts.size() > 1) return "an axis that walks a row is split already";
  const auto loops = [&](int a) {
    return std::ranges::any_of(axes_[size_t(a)].parts, [](const AxisPart& p) {
      return is_loop(p.kind) && !p.size->is_const_int(1);
    });
  };
  // The axes around reductions and fills, which are all inside the loops that are left of rows.
  std::vector<const std::vector<int>*> around;
  for (const Stored& s : stored_)
    if (s.kept_bytes) around.push_back(&s.around);
  for (const Reduction& r : reductions_) {
    if (std::ranges::any_of(r.own, [&](int a) { return contains(slab_axes_, a); }))
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

void Tiling::take_slabs(int64_t elements) {
  const int64_t all = axes_[size_t(slab_axes_[0])].main_size();
  for (const int a : slab_axes_) {
    Axis& axis = axes_[size_t(a)];
    axis.parts.back().size = index_const(elements);
    axis.parts.insert(axis.parts.begin(), {AxisKind::Reduce, index_const(ceil_div(all, elements))});
    axis.padded = axis.padded || all % elements != 0;
    axis.main = 1;
    axis.slabs = true;
  }
  // A sum without columns of its own would have to be complete before its row is overwritten.
  const bool by_row = !scales_sums_ && std::ranges::any_of(reductions_, [&](const Reduction& r) {
    return std::ranges::any_of(r.own, [&](int a) { return contains(slab_axes_, a); }) &&
           std::ranges::none_of(r.around, [&](int a) { return axes_[size_t(a)].column; });
  });
  for (Stored& s : stored_) {
    if (!s.kept_bytes) continue;
    s.kept_bytes -= (all - elements) * s.element_bytes;
    s.overwrites = s.overwrites && !by_row;
  }
}

std::string Tiling::check_kept(const Opt& o) const {
  const Axis& axis = axes_[size_t(o.axis)];
  if (o.kind == OptKind::Group && axis.kept) return "a kept row is filled by one workgroup";
  if (o.kind == OptKind::Spread) return "workgroups keep rows of their own";
  return {};
}

std::string Tiling::check_columns(const Opt& o) const {
  if (columns_together() > 1 && columns_together() != o.amount)
    return "kept rows are shared by another number of invocations";
  const auto has_columns = [&](int a) {
    return axes_[size_t(a)].column && has_part(a, AxisKind::Local);
  };
  if (o.kind == OptKind::Local) {
    for (const Stored& s : stored_) {
      const auto closes = [&](int a) { return contains(s.axes, a) && !contains(s.around, a); };
      for (int a = 0; a < int(axes_.size()); a++) {
        if (closes(o.axis) && closes(a) && has_columns(a))
          return "the nest has its columns already";
      }
    }
  } else if (std::string why = check_nested(o); !why.empty()) {
    return why;
  }
  for (const Reduction& r : reductions_) {
    const auto is_next = [&](int a) { return o.kind == OptKind::GroupReduce && a == o.axis; };
    const bool shared = std::ranges::any_of(
        r.own, [&](int a) { return is_next(a) || has_part(a, AxisKind::GroupReduce); });
    const bool by_column = std::ranges::any_of(r.around, [&](int a) {
      return has_columns(a) || (o.kind == OptKind::Local && a == o.axis);
    });
    if (shared && by_column) return "a reduction that the workgroup shares depends on the axis";
  }
  return {};
}

}  // namespace tuff::kernel
