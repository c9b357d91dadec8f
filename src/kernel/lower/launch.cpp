// Launch dimensions: Group ranges become Specials of the grid, Local and GroupReduce ranges those
// of the workgroup. What does not fit three axes or the Target's limits is folded by div and mod.
#include <algorithm>
#include <limits>
#include <set>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// A launch coordinate range and what stands for it.
struct Coordinates {
  UOpMap<UOp> value;  // range -> expression of Specials
  UOp valid;          // where the grid had to be larger than the work
};

UOp special(char space, int axis, const UOp& size) {
  if (size->is_const_int(1)) return index_const(0);
  return make(Op::Special, DType::Index, {size}, SpecialArg{space, int8_t(axis)});
}

UOp product(std::span<const UOp> ranges) {
  UOp p = index_const(1);
  for (const UOp& r : ranges) p = p * r->src(0);
  return p;
}

// ranges (outermost first) as digits of one flat number.
void unflatten(UOp flat, std::span<const UOp> ranges, UOpMap<UOp>& value) {
  for (size_t i = ranges.size(); i-- > 0;) {
    value[ranges[i]] = i == 0 ? flat : floormod(flat, ranges[i]->src(0));
    flat = floordiv(flat, ranges[i]->src(0));
  }
}

using Limits = std::array<uint32_t, 3>;

// One flat number over two axes where that is exact, else over as many as it takes, in a grid that
// is a little larger, with the rest masked.
std::array<int64_t, 3> grid_of(int64_t total, const Limits& limits) {
  for (int64_t d = limits[0]; d >= 1 && d >= int64_t(limits[0]) - 4096; d--) {
    if (total % d == 0 && total / d <= limits[1]) return {d, total / d, 1};
  }
  const int64_t rows = ceil_div(total, limits[0]);
  const int64_t z = ceil_div(rows, limits[1]);
  if (z > int64_t(limits[2])) {
    fail<Unsupported>("a launch of {} workgroups exceeds the grid of {} x {} x {}", total,
                      limits[0], limits[1], limits[2]);
  }
  const int64_t y = ceil_div(rows, z);
  return {ceil_div(total, y * z), y, z};
}

UOp split_flat(int64_t total, const Limits& limits, std::array<Dim, 3>& sizes, UOp& valid) {
  const std::array<int64_t, 3> grid = grid_of(total, limits);
  UOp flat = index_const(0);
  for (int i = 2; i >= 0; i--) {
    sizes[size_t(i)] = Dim(grid[size_t(i)]);
    flat = flat * grid[size_t(i)] + special('g', i, index_const(grid[size_t(i)]));
  }
  if (grid[0] * grid[1] * grid[2] == total) return flat;
  valid = lt(flat, index_const(total));
  return where(valid, flat, index_const(total - 1));
}

// A symbolic number, in rows of fixed length: as short as the second axis allows, so that little of
// the last row is masked.
UOp split_symbolic(const UOp& total, const Limits& limits, std::array<Dim, 3>& sizes, UOp& valid) {
  constexpr int64_t kShortestRow = 16;
  int64_t row = std::min<int64_t>(kShortestRow, limits[0]);
  while ((total->max + row - 1) / row > int64_t(limits[1]) && row < int64_t(limits[0]))
    row = std::min<int64_t>(2 * row, limits[0]);
  const UOp rows = simplify(floordiv(total + (row - 1), row));
  if (rows->max > int64_t(limits[1]))
    fail<Unsupported>("a symbolic launch of up to {} workgroups exceeds the grid's axes of {} x {}",
                      total->max, limits[0], limits[1]);
  sizes[0] = Dim(row);
  sizes[1] = Dim(rows);
  const UOp flat = special('g', 1, rows) * row + special('g', 0, index_const(row));
  valid = lt(flat, total);
  return where(valid, flat, total - 1);
}

// The innermost range is axis 0; with more than three, the outermost share the last axis.
Coordinates place_groups(const std::vector<UOp>& ranges, const Limits& limits,
                         std::array<Dim, 3>& sizes) {
  Coordinates c;
  std::vector<std::span<const UOp>> axes;  // axis 0 first
  const std::span<const UOp> all(ranges);
  for (size_t left = all.size(); left > 0 && axes.size() < 3;) {
    const size_t take = axes.size() == 2 ? left : 1;
    axes.push_back(all.subspan(left - take, take));
    left -= take;
  }
  bool fits = true;
  for (size_t i = 0; i < axes.size(); i++)
    fits = fits && product(axes[i])->max <= int64_t(limits[i]);
  if (fits) {
    for (size_t i = 0; i < axes.size(); i++) {
      const UOp size = product(axes[i]);
      sizes[i] = Dim(size);
      unflatten(special('g', int(i), size), axes[i], c.value);
    }
    return c;
  }
  const UOp total = product(all);
  UOp flat;
  if (total->max <= int64_t(limits[0])) {
    sizes[0] = Dim(total);
    flat = special('g', 0, total);
  } else if (total->is_const()) {
    flat = split_flat(total->max, limits, sizes, c.valid);
  } else {
    flat = split_symbolic(total, limits, sizes, c.valid);
  }
  unflatten(flat, all, c.value);
  return c;
}

// Those of one launch of several beside each other, along the first axis.
Coordinates place_groups_from(int64_t first, const std::vector<UOp>& ranges,
                              std::array<Dim, 3>& sizes) {
  Coordinates c;
  const int64_t total = product(ranges)->max;
  sizes[0] = Dim(total);
  UOp flat = special('g', 0, index_const(first + total));
  if (first > 0) flat = alu(Op::Max, {flat, index_const(first)}) - first;
  unflatten(flat, ranges, c.value);
  return c;
}

// `together`: reductions that the workgroup shares, which all use one axis of it, and output axes
// beside them; `outermost`: not its first one. `ranges`: the others.
void place_locals(std::vector<UOp> ranges, const std::vector<UOp>& together, bool outermost,
                  const Target& target, std::array<uint32_t, 3>& local, Coordinates& c) {
  if (!together.empty()) {
    ranges.insert(outermost ? ranges.begin() : ranges.end(), together[0]);
    place_locals(ranges, {}, false, target, local, c);
    for (const UOp& r : together) {
      TUFF_CHECK(r->src(0) == together[0]->src(0),
                 "workgroup axes of {} and {} beside a shared reduction", together[0]->src(0)->max,
                 r->src(0)->max);
      c.value[r] = c.value[together[0]];
    }
    return;
  }
  if (ranges.empty()) return;
  const int64_t total = product(ranges)->max;
  TUFF_CHECK(total <= int64_t(target.max_invocations), "{} invocations in a workgroup", total);
  bool fits = ranges.size() <= 3;
  for (size_t i = 0; fits && i < ranges.size(); i++) {
    fits = ranges[ranges.size() - 1 - i]->src(0)->max <= int64_t(target.max_local[i]);
  }
  if (!fits) {
    const auto shape = workgroup_shape(total, target);
    TUFF_CHECK(shape, "{} invocations have no shape within the limits", total);
    local = *shape;
    UOp flat = index_const(0);
    for (int i = 2; i >= 0; i--)
      flat = flat * int64_t(local[size_t(i)]) + special('l', i, index_const(local[size_t(i)]));
    unflatten(flat, ranges, c.value);
    return;
  }
  for (size_t i = 0; i < ranges.size(); i++) {
    const UOp& r = ranges[ranges.size() - 1 - i];
    local[i] = uint32_t(r->src(0)->max);
    c.value[r] = special('l', int(i), r->src(0));
  }
}

// Workgroups of whole subgroups along one axis: which lane is which, the device says. Here the
// lanes of a subgroup are one of `locals` and what stands inside of it, or a part of these.
void place_lanes(std::vector<UOp> locals, const std::vector<UOp>& together, int64_t lanes,
                 std::array<uint32_t, 3>& local, Coordinates& c) {
  locals.push_back(together[0]);
  const int64_t total = product(locals)->max;
  const UOp subgroup = special('s', 1, index_const(total / lanes));
  unflatten(subgroup * lanes + special('s', 0, index_const(lanes)), locals, c.value);
  for (const UOp& r : together) c.value[r] = c.value[together[0]];
  local = {uint32_t(total), 1, 1};
}
// Each subgroup is one place of `subgroups`.
void place_subgroups(const std::vector<UOp>& subgroups, const UOp& lane,
                     std::array<uint32_t, 3>& local, Coordinates& c) {
  const UOp count = product(subgroups);
  c.value[lane] = special('s', 0, lane->src(0));
  unflatten(special('s', 1, count), subgroups, c.value);
  local = {uint32_t(count->max * lane->src(0)->max), 1, 1};
}

// A store that does not depend on a launch coordinate is done where that coordinate is 0 alone.
UOp once_gate(RangeMask missing, const RangeDeps& deps, const Coordinates& c) {
  UOp gate = c.valid;
  for (const UOp& r : deps.list(missing)) {
    const UOp& id = c.value.at(r);
    if (id->is_const()) continue;
    const UOp first = lt(id, index_const(1));
    gate = gate ? logical_and(gate, first) : first;
  }
  return gate;
}

bool counts_lanes(const UOp& ast) {
  return std::ranges::any_of(toposort(ast), [](const Node* n) {
    return n->op == Op::Special && n->get<SpecialArg>().space == 's';
  });
}

bool to_param(const UOp& store) {
  return store->op == Op::Store && store->src(0)->op == Op::Index &&
         store->src(0)->src(0)->op == Op::Param;
}

// What all invocations compute for what they share.
std::set<const Node*> shared_below(const UOp& value) {
  std::vector<UOp> roots;
  for (const Node* n : toposort(value))
    if (n->op == Op::Barrier || n->op == Op::Shuffle) roots.push_back(UOp(n));
  const std::vector<const Node*> below = toposort(roots);
  return {below.begin(), below.end()};
}

// What is read of memory that the kernel stores to is read where it is needed alone: another
// workgroup may have stored there by now.
UOp gate_loads(const UOp& value, const std::set<const Node*>& stored, const UOp& gate) {
  UOpMap<UOp> gated;
  const std::set<const Node*> by_all = shared_below(value);
  for (const Node* n : toposort(value))
    if (n->op == Op::Load && stored.contains(accessed_memory(n)) && !by_all.contains(n))
      gated[UOp(n)] = make_load(with_gate(n->src(0), gate));
  return gated.empty() ? value : substitute(value, gated);
}

}  // namespace

void pass_launch(Lowering& l) {
  RangeDeps deps(l.ast);
  const RangeMask groups = deps.kinds(AxisKind::Group), locals = deps.kinds(AxisKind::Local);
  const RangeMask shared = deps.kinds(AxisKind::GroupReduce), lane = deps.kinds(AxisKind::Subgroup);
  if (!(groups | locals | shared | lane)) return;
  Coordinates c = l.first_group
                      ? place_groups_from(*l.first_group, deps.list(groups), l.out.groups)
                      : place_groups(deps.list(groups), l.target.max_groups, l.out.groups);
  if (counts_lanes(l.ast)) {
    place_lanes(deps.list(locals), deps.list(shared), l.target.subgroup_size, l.out.local, c);
    l.out.subgroup_size = l.target.subgroup_size;
  } else if (lane) {
    place_subgroups(deps.list(locals), deps.list(lane)[0], l.out.local, c);
    l.out.subgroup_size = l.target.subgroup_size;
  } else {
    place_locals(deps.list(locals), deps.list(shared), l.shares_outermost, l.target, l.out.local,
                 c);
  }
  const std::set<const Node*> stored = stored_params(l.ast);
  const auto gate_of = [&](const Node* store, bool by_place) {
    const RangeMask have = deps.of(by_place ? store->src(0) : UOp(store));
    RangeMask missing = (groups | locals | shared | lane) & ~have;
    if (have & shared) missing &= ~shared;  // one coordinate, several ranges
    return once_gate(missing, deps, c);
  };
  // A sum that lanes hand each other is all lanes' to store, but not where one would then read what
  // another has stored, or where they part at another store and come here one after the other.
  const auto reads_stored = [&](const Node* n) { return reads_any(n->src(1), stored); };
  const bool part = std::ranges::any_of(toposort(l.ast), [&](const Node* n) {
    return to_param(UOp(n)) && gate_of(n, reads_stored(n));
  });
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op == Op::Range && is_launch(kind_of(old.get()))) return c.value.at(old);
    if (old->op == Op::End) {
      std::vector<UOp> kept{src[0]};
      for (size_t i = 1; i < src.size(); i++) {
        if (!is_launch(kind_of(old->src(i).get()))) kept.push_back(src[i]);
      }
      return with_src(old, kept);
    }
    if (to_param(old)) {
      const UOp store = with_src(old, src),
                gate = gate_of(old.get(), part || reads_stored(old.get()));
      if (!gate) return store;
      return make(Op::Store, DType::Void,
                  {with_gate(store->src(0), gate), gate_loads(store->src(1), stored, gate)},
                  store->arg);
    }
    if (!is_alu(old->op) || old->op == Op::Cast || old->op == Op::Bitcast) return {};
    return alu(old->op, src, old->arg);
  });
}

}  // namespace tuff::kernel
