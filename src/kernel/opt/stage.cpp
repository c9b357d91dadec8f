#include "kernel/opt/stage.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"
#include "kernel/lowered.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

std::vector<Tiling::Factor> factors_of(const UOp& ast, RangeDeps& deps, const Tiling& t) {
  std::vector<Tiling::Factor> out;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) continue;
    const Node* product = through_casts(n->src(0).get());
    const auto known = [&](const Tiling::Factor& f) { return f.product.get() == product; };
    if (product->op != Op::Mul || std::any_of(out.begin(), out.end(), known)) continue;
    for (int s = 0; s < 2; s++) {
      const UOp& value = product->src(size_t(s));
      Tiling::Factor& f = out.emplace_back(Tiling::Factor{value, UOp(product), s, {}, {}});
      for (const UOp& r : deps.list(deps.of(value))) f.axes.push_back(t.axis_of(r.get()));
      for (const UOp& r : deps.list(deps.of(UOp(product)))) f.around.push_back(t.axis_of(r.get()));
      for (const Node* below : toposort(value)) {
        f.reduces = f.reduces || below->op == Op::Reduce;
        f.keeps = f.keeps || below->op == Op::Shared;
      }
    }
  }
  return out;
}

namespace {

// The range that all of these walk with step 1; empty: there is none.
UOp unit_range(std::span<const Access> all) {
  if (all.empty()) return {};
  for (const auto& [range, step] : all[0].steps) {
    const auto walks = [&, r = range](const Access& a) { return a.step(r) == 1; };
    if (step == 1 && std::ranges::all_of(all, walks)) return range;
  }
  return {};
}

}  // namespace

std::vector<Tiling::Operand> transposed_loads(const UOp& ast, RangeDeps& deps, const Tiling& t) {
  const auto holds_registers = [](const Node* n) {
    return n->op == Op::Reduce || n->op == Op::Shared;
  };
  // The barrier stands in the loops of one store.
  if (ast->src_count != 1 || std::ranges::any_of(toposort(ast), holds_registers)) return {};
  std::vector<Access> loads, stores;
  for (Access& a : accesses(ast, deps)) (a.store ? stores : loads).push_back(std::move(a));
  const UOp stored = unit_range(stores);
  std::vector<Tiling::Operand> out;
  for (const Access& a : loads) {
    const UOp loaded = unit_range(std::span(&a, 1));
    if (!stored || !loaded || a.step(stored) == 1 || (a.irregular & deps.bit(stored))) continue;
    if (a.step(stored) == 0 || t.axis_of(loaded.get()) < 0) continue;
    Tiling::Operand& o = out.emplace_back(Tiling::Operand{make_load(a.index), {}, -1, {}, {}});
    for (const UOp& r : deps.list(deps.of(o.value))) o.axes.push_back(t.axis_of(r.get()));
    for (int i = 0; i < int(t.axes().size()); i++) o.around.push_back(i);
  }
  return out;
}

int64_t transposed_steps(int64_t extent, int64_t vector_lanes) {
  const int64_t steps = std::gcd(extent, vector_lanes);
  return steps >= 4 ? steps : 0;
}

namespace {

// Elements; whole vectors are loaded, and what lies between is left out.
constexpr int64_t kMostTransposedStep = 4;

int64_t steps_together(const UOp& loop, int64_t vector_lanes) {
  return loop->src(0)->is_const() ? transposed_steps(loop->src(0)->max, vector_lanes) : 0;
}

// The loop whose steps are neighbours in memory, while those of the vector's lanes are not.
UOp transposed_loop(const std::vector<Access>& loads, RangeDeps& deps, std::span<const UOp> ranges,
                    int64_t vector_lanes) {
  const bool vector = !ranges.empty() && kind_of(ranges.back().get()) == AxisKind::Vector;
  const int64_t across = vector ? longest_step(loads, deps, ranges.back()).value_or(1) : 1;
  for (const UOp& r : ranges) {
    const bool irregular = std::ranges::any_of(
        loads, [&](const Access& a) { return (a.irregular & deps.bit(r)) != 0; });
    const int64_t step = irregular ? 0 : typical_step(loads, deps, r);
    if (is_loop(kind_of(r.get())) && steps_together(r, vector_lanes) > 0 && step > 0 &&
        step <= kMostTransposedStep && step < across)
      return r;
  }
  return {};
}

// Iterations: as many lines as an L1 cache has of one place, at least.
constexpr int64_t kBlock = 8;

// The loop that ends up outermost in memory while it is innermost in the copy is taken in blocks:
// lines that were read stay while their neighbours are copied, and what is written is in runs.
UOp blocked_loop(const std::vector<Access>& loads, RangeDeps& deps, std::span<const UOp> ranges) {
  UOp last, longest;
  for (const UOp& r : ranges) {
    if (!is_loop(kind_of(r.get()))) continue;
    last = r;
    if (!longest || typical_step(loads, deps, r) > typical_step(loads, deps, longest)) longest = r;
  }
  const bool splits = last && last == longest && last->src(0)->is_const() &&
                      last->src(0)->max > kBlock && last->src(0)->max % kBlock == 0;
  const auto is_other = [&](const UOp& r) { return is_loop(kind_of(r.get())) && r != last; };
  return splits && std::any_of(ranges.begin(), ranges.end(), is_other) ? last : UOp();
}

}  // namespace

UOp stage_tile(const UOp& value, std::span<const UOp> all_ranges, int32_t number, int32_t& next_id,
               int64_t vector_lanes) {
  RangeDeps deps(value);
  const RangeMask all = deps.of(value);
  const std::vector<Access> loads = accesses(value, deps);
  std::vector<UOp> ranges;
  for (const UOp& r : all_ranges) {
    if (all & deps.bit(r)) ranges.push_back(r);
  }
  const UOp across = transposed_loop(loads, deps, ranges, vector_lanes);
  const UOp blocked = across ? UOp() : blocked_loop(loads, deps, ranges);
  UOpMap<UOp> fresh;
  std::vector<UOp> loops, blocks, lanes;
  UOp to = index_const(0);
  for (const UOp& r : ranges) {
    UOp own = r;
    const int64_t inner = r == across ? steps_together(r, vector_lanes) : r == blocked ? kBlock : 1;
    if (inner > 1) {
      loops.push_back(range(index_const(r->src(0)->max / inner), next_id++, AxisKind::Loop));
      std::vector<UOp>& part = r == across ? lanes : blocks;
      part.push_back(
          range(index_const(inner), next_id++, r == across ? AxisKind::Lane : AxisKind::Loop));
      own = loops.back() * inner + part.back();
    } else if (is_loop(kind_of(r.get()))) {
      own = loops.emplace_back(range(r->src(0), next_id++, AxisKind::Loop));
    } else {
      lanes.push_back(r);
    }
    if (own != r) fresh.emplace(r, own);
    to = to * r->src(0) + own;
  }
  const UOp original = substitute(value, fresh);
  RangeDeps own_deps(original);
  const std::vector<Access> own_loads = accesses(original, own_deps);
  std::stable_sort(loops.begin(), loops.end(), [&](const UOp& a, const UOp& b) {
    return typical_step(own_loads, own_deps, a) > typical_step(own_loads, own_deps, b);
  });
  loops.insert(loops.end(), blocks.begin(), blocks.end());
  const UOp memory = make(Op::Shared, value->dtype, {}, SharedArg{number, extent(ranges)});
  const UOp store = make_store(make_index(memory, to), original);
  const UOp filled = make_after(memory, {make_end(store, loops, lanes)});
  return make_load(make_index(filled, flat_index(ranges)));
}

// The loops of an axis in the order that Stage counts them, and what a workgroup or lanes do at
// once. Axes of other reductions are no part of it.
std::vector<Tiling::TilePart> Tiling::tile_parts(const Operand& f, int64_t around) const {
  std::vector<TilePart> out;
  for (bool reduced : {false, true}) {
    for (int a : order_) {
      const Axis& axis = axes_[size_t(a)];
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

// At most, of one invocation: those of the kernel's loops, and of its share of `count` elements in
// each iteration of the loops around their copy.
int64_t Tiling::loop_trips(const Operand& f, int64_t around, int64_t count) const {
  constexpr int64_t kMost = int64_t(1) << 30;
  int64_t trips = 1, copied = ceil_div(count, local_size()) + 1;
  for (const Axis& a : axes_) {
    for (const AxisPart& p : a.parts)
      trips = is_loop(p.kind) ? std::min(trips * std::min(p.size->max + 1, kMost), kMost) : trips;
  }
  for (const TilePart& p : tile_parts(f, around)) {
    if (!p.inside) copied = std::min(copied * std::min(p.part.size->max + 1, kMost), kMost);
  }
  return trips + copied;
}

DType Tiling::staged_type(const Operand& f) const {
  return matrices_ ? matrices_->factor(f.source).value->dtype : f.value->dtype;
}

bool Tiling::computes_factors() const {
  return matrices_ && (matrices_->a.computed || matrices_->b.computed);
}

std::vector<Opt> Tiling::copies(std::vector<Opt> staged) const {
  constexpr int64_t kAllLoops = 1 << 20;
  const int64_t around = staged.empty() ? kAllLoops : staged[0].amount;
  for (int f = 0; computes_factors() && f < int(factors_.size()); f++) {
    const Factor& factor = factors_[size_t(f)];
    if (factor.product != matrices_->reduce->src(0) || contains(staged, f, &Opt::axis)) continue;
    if (matrices_->factor(factor.source).computed) staged.push_back({OptKind::Stage, f, around});
  }
  return staged;
}

int64_t Tiling::staged_bytes(int operand, int64_t around) const {
  const Operand& f = operands()[size_t(operand)];
  const DType t = staged_type(f);
  const int64_t count = *staged_count(operand, around);
  if (!has_invocations()) return count * int64_t(size_bytes(t));
  if (!f.product) {
    int64_t row = 0;  // as the copy's, where lanes come first
    for (const TilePart& p : tile_parts(f, around)) {
      if (p.inside && p.walks && (!row || !is_lane(p.part.kind))) row = p.part.size->max;
    }
    return transposed_copy_count(count, row, target_.held_per_word(t)) * target_.held_bytes(t);
  }
  // Lines of matrices stay lines.
  const bool along_steps =
      matrices_ &&
      matrices_->factor(f.source).lines.by_columns != (f.source == matrices_->a.source);
  int64_t row = 1;
  for (const TilePart& p : tile_parts(f, around)) {
    // A loop over slabs is one of a reduction.
    const bool steps = p.reduced || p.part.kind == AxisKind::Reduce;
    row *= p.inside && p.walks && steps == along_steps ? p.part.size->max : 1;
  }
  return local_copy_bytes(count, row, target_.held_bytes(t));
}

std::optional<int64_t> Tiling::staged_count(int operand, int64_t around) const {
  int64_t count = 1;
  for (const TilePart& p : tile_parts(operands()[size_t(operand)], around)) {
    if (!p.inside || !p.walks) continue;
    if (!p.part.size->is_const()) return std::nullopt;
    if (__builtin_mul_overflow(count, p.part.size->max, &count)) return std::nullopt;
  }
  return count;
}

std::string Tiling::check_stage(const Opt& o) const {
  if (o.axis < 0 || o.axis >= int(operands().size())) return "there is no such operand";
  const Operand& f = operands()[size_t(o.axis)];
  if (f.reduces) return "a reduction stands below the factor";
  for (const Opt& s : staged_) {
    if (s.axis == o.axis) return "the operand is staged already";
    if ((!f.product || matrices_) && s.amount != o.amount)
      return "others are copied in another loop";
  }
  if (matrices_)
    if (std::string why = check_matrix_copy(o); !why.empty()) return why;
  const bool together = has_invocations();
  if (!f.product && !together) return "one invocation reads the load as it would copy it";
  const auto is_shared = [&](int a) { return has_part(a, AxisKind::GroupReduce); };
  if (keeps_rows() ? std::ranges::any_of(f.around, is_shared) : is_shared(-1))
    return "a workgroup that shares a reduction has no tile";
  if (columns_without_axis()) return "no axis says which of the invocations copies what";
  if (together && spread_groups_) return "the workgroup takes rows of axes that are shared out";
  if (together && f.keeps) return "the factor is made of what one invocation keeps";
  if (o.amount < 0) return "0 or more loops stay around the copy";
  bool reused = false, several = false;
  for (const TilePart& p : tile_parts(f, o.amount)) {
    if (!p.inside || (is_lane(p.part.kind) && !(together && p.walks))) continue;
    (p.walks ? several : reused) = true;
  }
  if (f.product && !reused) return "no loop inside reads the copy again";
  if (!several) return "the copy is of one element";
  const std::optional<int64_t> count = staged_count(o.axis, o.amount);
  if (!count) return "the copy has a symbolic size";
  if (together && target_.max_loop_trips &&
      loop_trips(f, o.amount, *count) > int64_t(target_.max_loop_trips))
    return "so many iterations must be unrolled, which a loop around a barrier cannot be";
  std::vector<Opt> staged = staged_;
  staged.push_back(o);
  for (const Opt& c : copies(staged))
    if (!staged_count(c.axis, c.amount)) return "the copy beside it has a symbolic size";
  const int64_t room = room_for(o.axis, staged);
  if (*count > room || staged_bytes(o.axis, o.amount) > room)
    return fmt::format("a copy of {} elements exceeds the {} bytes of fast memory left", *count,
                       room);
  return {};
}

int64_t Tiling::room_for(int operand, const std::vector<Opt>& staged) const {
  const std::vector<Opt> copied = copies(staged);
  const auto memories =
      std::ranges::count_if(stored_, [](const Stored& s) { return s.kept_bytes > 0; }) +
      std::ranges::count_if(reductions_, [&](const Reduction& r) { return is_shared(r); });
  int64_t room = int64_t(target_.shared_bytes) - kept_bytes() - matrix_bytes() -
                 kSharedAlignment * (memories + std::ssize(copied) + 1);
  for (const Opt& c : copied)
    room -= c.axis == operand ? 0 : staged_bytes(c.axis, c.amount) * places_of(c.axis);
  return std::max<int64_t>(room, 0);
}

int64_t Tiling::places_of(int operand) const {
  const auto it = std::ranges::find(ahead_, operand, &Opt::axis);
  return it == ahead_.end() ? 1 : it->amount;
}

// Whether the reduction over `axis` is part of one over `other`: its loops are inside.
bool Tiling::folds_inside(int axis, int other) const {
  return std::ranges::any_of(reductions_, [&](const Reduction& r) {
    return contains(r.own, axis) && contains(r.around, other);
  });
}

// Whether the reduction over a loop's axis walks another one that its product does not depend on.
bool Tiling::is_repeated(const TilePart& loop, const Operand& operand) const {
  const auto repeats = [&](int a) {
    return !contains(operand.around, a) &&
           std::ranges::any_of(axes_[size_t(a)].parts, [](const AxisPart& p) {
             return is_loop(p.kind) && !p.size->is_const_int(1);
           });
  };
  return std::ranges::any_of(reductions_, [&](const Reduction& r) {
    return contains(r.own, loop.axis) && std::ranges::any_of(r.own, repeats);
  });
}

std::string Tiling::check_ahead(const Opt& o) const {
  if (o.amount < 1 || o.amount > 2) return "1 or 2 places are possible";
  const auto staged = std::ranges::find(staged_, o.axis, &Opt::axis);
  if (staged == staged_.end()) return "the operand is not staged";
  if (contains(ahead_, o.axis, &Opt::axis)) return "it is loaded ahead already";
  if (!has_invocations()) return "one invocation makes the copy";
  const Operand& operand = operands()[size_t(o.axis)];
  const std::vector<TilePart> parts = tile_parts(operand, staged->amount);
  const TilePart* loop = nullptr;
  for (const TilePart& p : parts) {
    if (is_loop(p.part.kind) && !p.inside) loop = &p;
  }
  if (!loop || !loop->reduced || !loop->walks)
    return "no loop of the reduction makes a next copy";
  if (!loop->part.size->is_const()) return "the loop around the copy has a symbolic size";
  if (is_repeated(*loop, operand))
    return "the reduction repeats its products, beginning with the first copy each time";
  for (const TilePart& p : parts) {
    if (!p.reduced || !is_loop(p.part.kind) || p.axis == loop->axis) continue;
    const bool between =
        p.inside ? folds_inside(loop->axis, p.axis) : folds_inside(p.axis, loop->axis);
    if (between) return "a reduction around or inside makes the next copy another one";
  }
  if (!copied_together(*staged_count(o.axis, staged->amount),
                       target_.held_bytes(staged_type(operand)), local_size()))
    return "each invocation copies more than its registers hold";
  const int64_t bytes = staged_bytes(o.axis, staged->amount) * o.amount;
  if (const int64_t room = room_for(o.axis, staged_); bytes > room)
    return fmt::format("{} bytes of copies exceed the {} of fast memory left", bytes, room);
  return {};
}

}  // namespace tuff::kernel
