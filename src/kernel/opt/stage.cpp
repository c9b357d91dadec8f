#include "kernel/opt/stage.h"

#include <algorithm>
#include <optional>

#include "graph/symbolic.h"
#include "graph/walk.h"
#include "kernel/lower/access.h"

namespace tuff::kernel {

using namespace graph;

std::vector<Tiling::Factor> factors_of(const UOp& ast, RangeDeps& deps, const Tiling& t) {
  std::vector<Tiling::Factor> out;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) continue;
    const Node* product = n->src(0).get();
    while (product->op == Op::Cast) product = product->src(0).get();
    const auto known = [&](const Tiling::Factor& f) { return f.product.get() == product; };
    if (product->op != Op::Mul || std::any_of(out.begin(), out.end(), known)) continue;
    for (int s = 0; s < 2; s++) {
      const UOp& value = product->src(size_t(s));
      Tiling::Factor& f = out.emplace_back(Tiling::Factor{UOp(product), s, {}, false});
      for (const UOp& r : deps.list(deps.of(value))) f.axes.push_back(t.axis_of(r.get()));
      for (const Node* below : toposort(value)) f.reduces = f.reduces || below->op == Op::Reduce;
    }
  }
  return out;
}

namespace {

// How a value's loads walk memory along a range; none where a load is irregular in it.
std::optional<int64_t> longest_step(const std::vector<Access>& loads, RangeDeps& deps,
                                    const UOp& r) {
  int64_t longest = 0;
  for (const Access& a : loads) {
    if ((a.irregular | a.gate) & deps.bit(r)) return {};
    longest = std::max(longest, std::abs(a.step(r)));
  }
  return longest;
}

// The loop whose steps are neighbours in memory, while those of the vector's lanes are not.
UOp turned_loop(const std::vector<Access>& loads, RangeDeps& deps, std::span<const UOp> ranges,
                int64_t turned) {
  const bool vector = !ranges.empty() && kind_of(ranges.back().get()) == AxisKind::Vector;
  if (turned < 4 || !vector || longest_step(loads, deps, ranges.back()).value_or(1) <= 1) return {};
  for (const UOp& r : ranges) {
    if (is_loop(kind_of(r.get())) && r->src(0)->is_const() && r->src(0)->max % turned == 0 &&
        longest_step(loads, deps, r) == 1)
      return r;
  }
  return {};
}

// About how far apart in memory successive iterations of a range read: of what is irregular in it,
// as a row that is clamped, from the bounds of the offset.
int64_t typical_step(const std::vector<Access>& loads, RangeDeps& deps, const UOp& r) {
  int64_t longest = 0;
  for (const Access& a : loads) {
    int64_t step = std::abs(a.step(r));
    if (a.irregular & deps.bit(r)) {
      UOpMap<UOp> others;
      for (const UOp& o : deps.ranges()) {
        if (o != r) others.emplace(o, index_const(0));
      }
      const UOp along = simplify(substitute(a.index->src(1), others));
      step = (along->max - along->min) / std::max<int64_t>(r->src(0)->max - 1, 1);
    }
    longest = std::max(longest, step);
  }
  return longest;
}

constexpr int64_t kBlock =
    8;  // iterations: as many lines as an L1 cache has of one place, at least

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
               int64_t turned) {
  RangeDeps deps(value);
  const RangeMask all = deps.of(value);
  const std::vector<Access> loads = accesses(value, deps);
  std::vector<UOp> ranges;
  for (const UOp& r : all_ranges) {
    if (all & deps.bit(r)) ranges.push_back(r);
  }
  const UOp turn = turned_loop(loads, deps, ranges, turned);
  const UOp blocked = turn ? UOp() : blocked_loop(loads, deps, ranges);
  UOpMap<UOp> fresh;
  std::vector<UOp> loops, blocks, lanes;
  UOp to = index_const(0), from = index_const(0);
  int64_t count = 1;
  for (const UOp& r : ranges) {
    UOp own = r;
    const int64_t inner = r == turn ? turned : r == blocked ? kBlock : 1;
    if (inner > 1) {
      loops.push_back(range(index_const(r->src(0)->max / inner), next_id++, AxisKind::Loop));
      std::vector<UOp>& part = r == turn ? lanes : blocks;
      part.push_back(
          range(index_const(inner), next_id++, r == turn ? AxisKind::Lane : AxisKind::Loop));
      own = loops.back() * inner + part.back();
    } else if (is_loop(kind_of(r.get()))) {
      own = loops.emplace_back(range(r->src(0), next_id++, AxisKind::Loop));
    } else {
      lanes.push_back(r);
    }
    if (own != r) fresh.emplace(r, own);
    to = to * r->src(0) + own;
    from = from * r->src(0) + r;
    count *= r->src(0)->max;
  }
  const UOp original = substitute(value, fresh);
  RangeDeps own_deps(original);
  const std::vector<Access> own_loads = accesses(original, own_deps);
  std::stable_sort(loops.begin(), loops.end(), [&](const UOp& a, const UOp& b) {
    return typical_step(own_loads, own_deps, a) > typical_step(own_loads, own_deps, b);
  });
  loops.insert(loops.end(), blocks.begin(), blocks.end());
  const UOp memory = make(Op::Shared, value->dtype, {}, SharedArg{number, count});
  std::vector<UOp> end{
      make(Op::Store, DType::Void, {make(Op::Index, value->dtype, {memory, to}), original})};
  end.insert(end.end(), loops.begin(), loops.end());
  end.insert(end.end(), lanes.begin(), lanes.end());
  const UOp filled = make(Op::After, value->dtype, {memory, make(Op::End, DType::Void, end)});
  return make(Op::Load, value->dtype, {make(Op::Index, value->dtype, {filled, from})});
}

int64_t Tiling::staged_bytes() const {
  int64_t total = 0;
  for (const Opt& o : staged_) {
    const Factor& f = factors_[size_t(o.axis)];
    total += *staged_count(o.axis, o.amount) *
             int64_t(size_bytes(f.product->src(size_t(f.source))->dtype));
  }
  return total;
}

std::optional<int64_t> Tiling::staged_count(int factor, int64_t around) const {
  const std::vector<int>& own = factors_[size_t(factor)].axes;
  int64_t count = 1;
  for (bool reduced : {false, true}) {
    for (int a : order_) {
      if (axes_[size_t(a)].reduced != reduced) continue;
      const bool walks = std::find(own.begin(), own.end(), a) != own.end();
      for (const AxisPart& p : axes_[size_t(a)].parts) {
        if (p.size->is_const_int(1)) continue;
        const bool inside = is_lane(p.kind) || (is_loop(p.kind) && (reduced || around-- <= 0));
        if (!inside || !walks) continue;
        if (!p.size->is_const()) return std::nullopt;
        if (__builtin_mul_overflow(count, p.size->max, &count)) return std::nullopt;
      }
    }
  }
  return count;
}

void Tiling::check_stage(const Opt& o) const {
  auto refuse = [&](const std::string& why) { fail<InvalidArgument>("{}: {}", to_string(o), why); };
  if (o.axis < 0 || o.axis >= int(factors_.size())) refuse("there is no such factor");
  const Factor& f = factors_[size_t(o.axis)];
  if (f.reduces) refuse("a reduction stands below the factor");
  for (const Opt& s : staged_) {
    if (s.axis == o.axis) refuse("the factor is staged already");
  }
  if (has_part(-1, AxisKind::Local) || has_part(-1, AxisKind::GroupReduce))
    refuse("a copy that several invocations share is not there yet");
  if (o.amount < 0) refuse("0 or more loops stay around the copy");
  int64_t around = o.amount;
  bool reused = false, loops = false;
  for (bool reduced : {false, true}) {
    for (int a : order_) {
      if (axes_[size_t(a)].reduced != reduced) continue;
      const bool walks = std::find(f.axes.begin(), f.axes.end(), a) != f.axes.end();
      for (const AxisPart& p : axes_[size_t(a)].parts) {
        if (p.size->is_const_int(1) || !is_loop(p.kind)) continue;
        if (reduced || around-- <= 0) (walks ? loops : reused) = true;
      }
    }
  }
  if (!reused) refuse("no loop inside reads the copy again");
  if (!loops) refuse("the copy is of one element");
  const std::optional<int64_t> count = staged_count(o.axis, o.amount);
  if (!count) refuse("the copy has a symbolic size");
  const int64_t element = int64_t(size_bytes(f.product->src(size_t(f.source))->dtype));
  const int64_t room = int64_t(target_.shared_bytes) - staged_bytes() - kept_bytes() - 128;
  if (*count > room / element)
    refuse(fmt::format("a copy of {} elements exceeds the {} bytes of fast memory left", *count,
                       std::max<int64_t>(room, 0)));
}

}  // namespace tuff::kernel
