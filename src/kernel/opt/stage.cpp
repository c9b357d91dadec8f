#include "kernel/opt/stage.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"

namespace tuff::kernel {

using namespace ir;

std::vector<Tiling::Operand> factors_of(const UOp& ast, RangeDeps& deps, const Tiling& t) {
  std::vector<Tiling::Operand> out;
  const std::vector<const Node*> order = toposort(ast);
  for (const Node* n : order) {
    if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) continue;
    if (is_made_besides(n, order, deps)) continue;  // copies stand where it would be made alone
    const Node* product = through_casts(n->src(0).get());
    const auto known = [&](const Tiling::Operand& f) { return f.product.get() == product; };
    if (product->op != Op::Mul || std::any_of(out.begin(), out.end(), known)) continue;
    for (int s = 0; s < 2; s++) {
      const UOp& value = product->src(size_t(s));
      Tiling::Operand& f = out.emplace_back(Tiling::Operand{value, UOp(product), s, {}, {}});
      for (const UOp& r : deps.list(deps.of(value))) f.axes.push_back(axis_of(t, r.get()));
      for (const UOp& r : deps.list(deps.of(UOp(product)))) f.around.push_back(axis_of(t, r.get()));
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
  const auto keeps_out = [](const Node* n) {
    const bool has_order = n->op == Op::Variable && n->get<VariableArg>().name == kOrderedCounter;
    return n->op == Op::Reduce || n->op == Op::Shared || has_order;
  };
  // The barrier stands in the loops of one store, none of which is still to come around it.
  if (ast->src_count != 1 || std::ranges::any_of(toposort(ast), keeps_out)) return {};
  std::vector<Access> loads, stores;
  for (Access& a : accesses(ast, deps)) (a.store ? stores : loads).push_back(std::move(a));
  const UOp stored = unit_range(stores);
  std::vector<Tiling::Operand> out;
  for (const Access& a : loads) {
    const UOp loaded = unit_range(std::span(&a, 1));
    if (!stored || !loaded || a.step(stored) == 1 || (a.irregular & deps.bit(stored))) continue;
    if (a.step(stored) == 0 || axis_of(t, loaded.get()) < 0) continue;
    Tiling::Operand& o = out.emplace_back(Tiling::Operand{make_load(a.index), {}, -1, {}, {}});
    for (const UOp& r : deps.list(deps.of(o.value))) o.axes.push_back(axis_of(t, r.get()));
    for (int i = 0; i < int(t.axes.size()); i++) o.around.push_back(i);
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

// Of a loop that has more of them the further loops around it have come, or fewer, as one over what
// a causal mask shows: the most.
UOp iterations_of_all(const UOp& r) {
  UOpMap<UOp> first, last;
  for (const Node* n : toposort(r->src(0))) {
    if (n->op != Op::Range || !is_loop(kind_of(n))) continue;
    first.emplace(UOp(n), index_const(0));
    last.emplace(UOp(n), n->src(0) - 1);
  }
  const UOp a = substitute(r->src(0), first), b = substitute(r->src(0), last);
  return simplify(where(lt(a, b), b, a));
}

}  // namespace

UOp stage_tile(const UOp& tile, std::span<const UOp> all_ranges, int32_t number, int32_t& next_id,
               int64_t vector_lanes) {
  UOpMap<UOp> whole;  // the loops of the copy that have more iterations than those around them say
  for (const UOp& r : all_ranges) {
    const UOp iterations = iterations_of_all(r);
    if (iterations != r->src(0)) whole.emplace(r, range(iterations, next_id++, kind_of(r.get())));
  }
  const UOp value = substitute(tile, whole);
  RangeDeps deps(value);
  const RangeMask all = deps.of(value);
  const std::vector<Access> loads = accesses(value, deps);
  std::vector<UOp> ranges;
  UOp from = index_const(0);
  for (const UOp& r : all_ranges) {
    const UOp& walked = whole.contains(r) ? whole.at(r) : r;
    if (!(all & deps.bit(walked))) continue;
    ranges.push_back(walked);
    from = from * walked->src(0)->max + r;
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
    to = to * r->src(0)->max + own;
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
  return make_load(make_index(filled, from));
}

}  // namespace tuff::kernel
