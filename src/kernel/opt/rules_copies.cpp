// Stage and Ahead: copies of operands in fast memory, and copies that are loaded ahead.
#include <algorithm>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/rules.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// At most, of one invocation: those of the kernel's loops, and of its share of `count` elements in
// each iteration of the loops around their copy.
int64_t loop_trips(const Tiling& t, const Tiling::Operand& f, int64_t around, int64_t count) {
  constexpr int64_t kMost = int64_t(1) << 30;
  int64_t trips = 1, copied = ceil_div(count, local_size(t)) + 1;
  for (const Axis& a : t.axes) {
    for (const AxisPart& p : a.parts)
      trips = is_loop(p.kind) ? std::min(trips * std::min(p.size->max + 1, kMost), kMost) : trips;
  }
  for (const TilePart& p : tile_parts(t, f, around)) {
    if (!p.inside) copied = std::min(copied * std::min(p.part.size->max + 1, kMost), kMost);
  }
  return trips + copied;
}

// Whether the reduction over `axis` is part of one over `other`: its loops are inside.
bool folds_inside(const Tiling& t, int axis, int other) {
  return std::ranges::any_of(t.reductions, [&](const Tiling::Reduction& r) {
    return contains(r.own, axis) && contains(r.around, other);
  });
}

// Whether the reduction over a loop's axis walks another one that its product does not depend on.
bool is_repeated(const Tiling& t, const TilePart& loop, const Tiling::Operand& operand) {
  const auto repeats = [&](int a) {
    return !contains(operand.around, a) &&
           std::ranges::any_of(t.axes[size_t(a)].parts, [](const AxisPart& p) {
             return is_loop(p.kind) && !p.size->is_const_int(1);
           });
  };
  return std::ranges::any_of(t.reductions, [&](const Tiling::Reduction& r) {
    return contains(r.own, loop.axis) && std::ranges::any_of(r.own, repeats);
  });
}

}  // namespace

std::string stage_refusal(const Tiling& t, const Opt& o) {
  if (o.axis < 0 || o.axis >= int(operands(t).size())) return "there is no such operand";
  const Tiling::Operand& f = operands(t)[size_t(o.axis)];
  if (f.reduces) return "a reduction stands below the factor";
  for (const Opt& s : t.staged) {
    if (s.axis == o.axis) return "the operand is staged already";
    if ((!f.product || t.matrices) && s.amount != o.amount)
      return "others are copied in another loop";
  }
  if (t.matrices)
    if (std::string why = matrix_copy_refusal(t, o); !why.empty()) return why;
  const bool together = has_invocations(t);
  if (!f.product && !together) return "one invocation reads the load as it would copy it";
  const auto shares = [&](int a) { return has_part(t, a, AxisKind::GroupReduce); };
  if (keeps_rows(t) ? std::ranges::any_of(f.around, shares) : shares(-1))
    return "a workgroup that shares a reduction has no tile";
  if (columns_without_axis(t)) return "no axis says which of the invocations copies what";
  if (together && t.spread.groups) return "the workgroup takes rows of axes that are shared out";
  if (together && f.keeps) return "the factor is made of what one invocation keeps";
  if (o.amount < 0) return "0 or more loops stay around the copy";
  bool reused = false, several = false;
  for (const TilePart& p : tile_parts(t, f, o.amount)) {
    if (!p.inside || (is_lane(p.part.kind) && !(together && p.walks))) continue;
    (p.walks ? several : reused) = true;
  }
  if (f.product && !reused) return "no loop inside reads the copy again";
  if (!several) return "the copy is of one element";
  const std::optional<int64_t> count = staged_count(t, o.axis, o.amount);
  if (!count) return "the copy has a symbolic size";
  if (together && t.target.max_loop_trips &&
      loop_trips(t, f, o.amount, *count) > int64_t(t.target.max_loop_trips))
    return "so many iterations must be unrolled, which a loop around a barrier cannot be";
  std::vector<Opt> staged = t.staged;
  staged.push_back(o);
  for (const Opt& c : copies_of(t, staged))
    if (!staged_count(t, c.axis, c.amount)) return "the copy beside it has a symbolic size";
  const int64_t room = room_for(t, o.axis, staged);
  if (*count > room || staged_bytes(t, o.axis, o.amount) > room)
    return fmt::format("a copy of {} elements exceeds the {} bytes of fast memory left", *count,
                       room);
  return {};
}

std::string ahead_refusal(const Tiling& t, const Opt& o) {
  if (o.amount < 1 || o.amount > 2) return "1 or 2 places are possible";
  const auto staged = std::ranges::find(t.staged, o.axis, &Opt::axis);
  if (staged == t.staged.end()) return "the operand is not staged";
  if (contains(t.ahead, o.axis, &Opt::axis)) return "it is loaded ahead already";
  if (!has_invocations(t)) return "one invocation makes the copy";
  const Tiling::Operand& operand = operands(t)[size_t(o.axis)];
  const std::vector<TilePart> parts = tile_parts(t, operand, staged->amount);
  const TilePart* loop = nullptr;
  for (const TilePart& p : parts) {
    if (is_loop(p.part.kind) && !p.inside) loop = &p;
  }
  if (!loop || !loop->reduced || !loop->walks)
    return "no loop of the reduction makes a next copy";
  if (!loop->part.size->is_const()) return "the loop around the copy has a symbolic size";
  if (is_repeated(t, *loop, operand))
    return "the reduction repeats its products, beginning with the first copy each time";
  for (const TilePart& p : parts) {
    if (!p.reduced || !is_loop(p.part.kind) || p.axis == loop->axis) continue;
    const bool between =
        p.inside ? folds_inside(t, loop->axis, p.axis) : folds_inside(t, p.axis, loop->axis);
    if (between) return "a reduction around or inside makes the next copy another one";
  }
  if (!copied_together(*staged_count(t, o.axis, staged->amount),
                       t.target.held_bytes(staged_type(t, operand)), local_size(t)))
    return "each invocation copies more than its registers hold";
  const int64_t bytes = staged_bytes(t, o.axis, staged->amount) * o.amount;
  if (const int64_t room = room_for(t, o.axis, t.staged); bytes > room)
    return fmt::format("{} bytes of copies exceed the {} of fast memory left", bytes, room);
  return {};
}

}  // namespace tuff::kernel
