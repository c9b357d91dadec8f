// How much workgroup memory, or fast memory of a CPU, a Tiling takes: kept rows, parts of shared
// reductions, sums of matrices, copies of operands.
#include <algorithm>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/lowered.h"
#include "kernel/opt/stage_local.h"
#include "kernel/opt/tiling.h"

namespace tuff::kernel {

using namespace ir;

namespace {

bool widens_rows(const AxisPart& p) { return is_lane(p.kind) || p.kind == AxisKind::Local; }

// Of those that share it (see lower/reduce.cpp): lanes hand each other theirs, if shares are
// neighbours. Whole subgroups remain whole with more invocations.
int64_t parts_in_memory(const Tiling& t, const Tiling::Reduction& r) {
  const int64_t width = columns_together(t);
  const bool neighbours = !t.matrices && !t.shares_outermost;
  if (!neighbours || r.bytes != 4 || !folds_in_subgroups(t.target, width, local_size(t)))
    return width;
  return width > int64_t(t.target.subgroup_size) ? width / int64_t(t.target.subgroup_size) : 0;
}

// Each invocation stores what it alone reads: its nest has columns, none of them masked, and no row
// is filled by several.
bool is_overwriting(const Tiling& t, const Tiling::Stored& s) {
  if (!s.overwrites) return false;
  bool has_columns = false;
  for (int i = 0; i < int(t.axes.size()); i++) {
    const Axis& a = t.axes[size_t(i)];
    const bool local = has_part(t, i, AxisKind::Local);
    const bool closed = contains(s.axes, i) && !contains(s.around, i);
    // Past the end of its last slab an invocation has a place of its own there; past that of a whole
    // row it reads the last element.
    if (closed && !a.slabs && a.padded) return false;
    if (!a.column && local && !contains(s.around, i)) return false;
    has_columns = has_columns || (closed && local);
  }
  return has_columns;
}

constexpr int64_t kAllLoops = 1 << 20;

bool computes_factors(const Tiling& t) {
  return t.matrices && (t.matrices->a.computed || t.matrices->b.computed);
}

}  // namespace

int64_t workgroup_bytes(const Tiling& t) {
  const auto rows = [&](const std::vector<int>& around) {
    int64_t n = 1;
    for (int a : around)
      for (const AxisPart& p : t.axes[size_t(a)].parts) n *= widens_rows(p) ? p.size->max : 1;
    return n;
  };
  int64_t total = 0;
  for (const Tiling::Stored& s : t.stored) {
    if (s.kept_bytes && !is_overwriting(t, s)) total += s.kept_bytes * rows(s.around);
  }
  for (const Tiling::Reduction& r : t.reductions) {
    const bool is_spread =
        std::ranges::any_of(r.around, [&](int a) { return t.axes[size_t(a)].rows > 0; });
    for (int a : r.own) {
      if (!has_part(t, a, AxisKind::GroupReduce)) continue;
      const int64_t width = is_spread ? 1 : t.spread.width;
      total += r.bytes * rows(r.around) * width * parts_in_memory(t, r);
    }
  }
  return total;
}

int64_t kept_bytes(const Tiling& t) { return keeps_rows(t) ? workgroup_bytes(t) : 0; }

int64_t kept_row_bytes(const Tiling& t, int64_t columns, int64_t slab) {
  int64_t total = 0;
  for (const Tiling::Stored& s : t.stored) {
    bool divides = true;
    int64_t elements = 0;
    for (const int a : s.axes) {
      if (contains(s.around, a)) continue;
      elements = t.axes[size_t(a)].main_size();
      divides = divides && (slab ? slab : elements) % columns == 0;
    }
    if (s.kept_bytes && !(s.overwrites && divides))
      total += s.kept_bytes - (slab ? elements - slab : 0) * s.element_bytes;
  }
  return total;
}

int64_t matrix_bytes(const Tiling& t) {
  if (!t.matrices || t.matrices->stored) return 0;
  const MatrixShape& shape = t.matrices->shape;
  int64_t bytes = int64_t(shape.m) * shape.n * int64_t(size_bytes(shape.sum));
  for (const Axis& a : t.axes) {
    for (const AxisPart& p : a.parts)
      bytes *= p.kind == AxisKind::Lane || p.kind == AxisKind::Local ? p.size->max : 1;
  }
  return bytes;
}

int64_t room_for(const Tiling& t, int operand, const std::vector<Opt>& staged) {
  const std::vector<Opt> copied = copies_of(t, staged);
  const auto memories =
      std::ranges::count_if(t.stored, [](const Tiling::Stored& s) { return s.kept_bytes > 0; }) +
      std::ranges::count_if(t.reductions, [&](const auto& r) { return is_shared(t, r); });
  int64_t room = int64_t(t.target.shared_bytes) - kept_bytes(t) - matrix_bytes(t) -
                 kSharedAlignment * (memories + std::ssize(copied) + 1);
  for (const Opt& c : copied)
    room -= c.axis == operand ? 0 : staged_bytes(t, c.axis, c.amount) * places_of(t, c.axis);
  return std::max<int64_t>(room, 0);
}

// ---- copies

// The loops of an axis in the order that Stage counts them, and what a workgroup or lanes do at
// once. Axes of other reductions are no part of it.
std::vector<TilePart> tile_parts(const Tiling& t, const Tiling::Operand& f, int64_t around) {
  std::vector<TilePart> out;
  for (bool reduced : {false, true}) {
    for (int a : t.order) {
      const Axis& axis = t.axes[size_t(a)];
      if (axis.reduced != reduced || (reduced && !contains(f.around, a))) continue;
      for (const AxisPart& p : axis.parts) {
        if (p.size->is_const_int(1)) continue;
        const bool inside = is_loop(p.kind) ? around-- <= 0
                                            : is_lane(p.kind) || p.kind == AxisKind::Local ||
                                                  p.kind == AxisKind::Matrix;
        out.push_back({p, a, reduced, inside, contains(f.axes, a)});
      }
    }
  }
  return out;
}

int64_t loops_of(const Tiling& t, const Tiling::Operand& f) {
  return std::ranges::count_if(tile_parts(t, f, kAllLoops),
                               [](const TilePart& p) { return is_loop(p.part.kind); });
}

std::vector<Opt> copies_of(const Tiling& t, std::vector<Opt> staged) {
  const int64_t around = staged.empty() ? kAllLoops : staged[0].amount;
  for (int f = 0; computes_factors(t) && f < int(t.factors.size()); f++) {
    const Tiling::Operand& factor = t.factors[size_t(f)];
    if (factor.product != t.matrices->reduce->src(0) || contains(staged, f, &Opt::axis)) continue;
    if (t.matrices->factor(factor.source).computed) staged.push_back({OptKind::Stage, f, around});
  }
  return staged;
}

DType staged_type(const Tiling& t, const Tiling::Operand& f) {
  return t.matrices ? t.matrices->factor(f.source).value->dtype : f.value->dtype;
}

std::optional<int64_t> staged_count(const Tiling& t, int operand, int64_t around) {
  int64_t count = 1;
  for (const TilePart& p : tile_parts(t, operands(t)[size_t(operand)], around)) {
    if (!p.inside || !p.walks) continue;
    if (!p.part.size->is_const()) return std::nullopt;
    if (__builtin_mul_overflow(count, p.part.size->max, &count)) return std::nullopt;
  }
  return count;
}

int64_t staged_bytes(const Tiling& t, int operand, int64_t around) {
  const Tiling::Operand& f = operands(t)[size_t(operand)];
  const DType type = staged_type(t, f);
  const int64_t count = *staged_count(t, operand, around);
  if (!has_invocations(t)) return count * int64_t(size_bytes(type));
  if (!f.product) {
    int64_t row = 0;  // as the copy's, where lanes come first
    for (const TilePart& p : tile_parts(t, f, around)) {
      if (p.inside && p.walks && (!row || !is_lane(p.part.kind))) row = p.part.size->max;
    }
    const int64_t held = transposed_copy_count(count, row, t.target.held_per_word(type));
    return held * t.target.held_bytes(type);
  }
  // Lines of matrices stay lines.
  const bool along_steps =
      t.matrices &&
      t.matrices->factor(f.source).lines.by_columns != (f.source == t.matrices->a.source);
  int64_t row = 1;
  for (const TilePart& p : tile_parts(t, f, around)) {
    // A loop over slabs is one of a reduction.
    const bool steps = p.reduced || p.part.kind == AxisKind::Reduce;
    row *= p.inside && p.walks && steps == along_steps ? p.part.size->max : 1;
  }
  return local_copy_bytes(count, row, t.target.held_bytes(type));
}

int64_t places_of(const Tiling& t, int operand) {
  const auto it = std::ranges::find(t.ahead, operand, &Opt::axis);
  return it == t.ahead.end() ? 1 : it->amount;
}

}  // namespace tuff::kernel
