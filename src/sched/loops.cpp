#include "sched/loops.h"

#include <algorithm>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"

namespace tuff::sched {

using namespace ir;

namespace {

int64_t size_of(const UOp& range) { return std::max<int64_t>(range->src(0)->max, 1); }

// Ranges by falling step.
using Digits = std::vector<std::pair<UOp, int64_t>>;

// Those of an offset that walks all of them in mixed radix, each element once; empty where it is
// another one.
std::optional<Digits> mixed_radix(const UOp& offset) {
  const LinearForm f = linear_form(offset);
  if (f.constant != 0) return {};
  Digits out = f.terms;
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  int64_t step = 1;
  for (size_t i = out.size(); i-- > 0;) {
    const auto& [r, s] = out[i];
    if (r->op != Op::Range || s != step) return {};
    step *= size_of(r);
  }
  return out;
}

// Whether each digit of symbolic size is one of the others, too: those between are numbers.
bool has_symbolic_of(const Digits& all, const Digits& some) {
  return std::ranges::all_of(some, [&](const auto& digit) {
    if (digit.first->src(0)->is_const()) return true;
    return std::ranges::any_of(all, [&](const auto& other) {
      return other.second == digit.second && other.first->src(0) == digit.first->src(0);
    });
  });
}

}  // namespace

bool survives_in_register(DType t) { return !is_float(t) || size_bytes(t) >= 4; }

bool is_ordered(const Node* n) {
  return n->op == Op::Range && n->get<RangeArg>().kind == AxisKind::Ordered;
}

bool has_fixed_loops(std::span<const Node* const> kernel) {
  return std::ranges::none_of(kernel, [](const Node* n) {
    return n->op == Op::Shared || is_ordered(n) || (n->op == Op::Range && !n->src(0)->is_const());
  });
}

std::vector<UOp> with_loops(std::span<const UOp> ends, const UOpMap<UOp>& at, const UOp& first,
                            std::span<const UOp> loops) {
  std::vector<UOp> stores, out;
  for (const UOp& end : ends) stores.push_back(end->src(0));
  const UOp moved = simplify(substitute(sink(stores), at));
  for (size_t i = 0; i < ends.size(); i++) {
    std::vector<UOp> own;
    for (const UOp& r : closed_ranges(ends[i].get())) {
      if (!at.contains(r)) own.push_back(r);
      if (r == first) own.insert(own.end(), loops.begin(), loops.end());
    }
    out.push_back(make_end(moved->src(i), own));
  }
  return out;
}

std::vector<UOp> ranges_below(const UOp& u, AxisKind kind) {
  std::vector<UOp> out;
  for (const Node* n : toposort(u)) {
    if (n->op == Op::Range && n->get<RangeArg>().kind == kind) out.push_back(UOp(n));
  }
  std::ranges::sort(out, {}, [](const UOp& r) { return r->get<RangeArg>().id; });
  return out;
}

int64_t extent(std::span<const UOp> ranges) {
  int64_t n = 1;
  for (const UOp& r : ranges) n *= size_of(r);
  return n;
}

bool is_streamed(const Node* reduce, std::span<const UOp> loops) {
  const int64_t walked = extent(loops) * extent(closed_ranges(reduce));
  for (const Node* n : toposort(reduce->src(0))) {
    if (n->op == Op::Param && n->get<ParamArg>().count >= walked) return true;
  }
  return false;
}

int64_t vectors_of(const Node* reduce) {
  constexpr int64_t kLeastRows = 8;
  const Node* product = through_casts(reduce->src(0).get());
  if (reduce->get<ReduceArg>().op != Op::Add || product->op != Op::Mul) return 0;
  const std::vector<UOp> x = ranges_below(product->src(0), AxisKind::Loop),
                         y = ranges_below(product->src(1), AxisKind::Loop);
  const auto alone = [](const std::vector<UOp>& own, const std::vector<UOp>& other) {
    int64_t n = 1;
    for (const UOp& r : own) n *= std::ranges::find(other, r) == other.end() ? size_of(r) : 1;
    return n;
  };
  const auto [vectors, rows] = std::minmax({alone(x, y), alone(y, x)});
  return rows < kLeastRows ? 0 : vectors;
}

UOp offset_of(const UOp& end) { return end->src(0)->src(0)->src(1); }

std::optional<UOpMap<UOp>> loops_at(const UOp& producer_end, const UOp& offset) {
  const auto own = mixed_radix(offset_of(producer_end));
  const auto theirs = mixed_radix(offset);
  if (!own || !theirs || own->size() + 1 != producer_end->src_count) return {};
  UOpMap<UOp> out;
  int64_t all = 1, reached = 1;
  for (const auto& [r, step] : *own) {
    all *= size_of(r);
    out.emplace(r, simplify(floormod(floordiv(offset, step), size_of(r))));
  }
  for (const auto& [r, step] : *theirs) reached *= size_of(r);
  // What the producer stored for the rest of the schedule, the reader has to store as well.
  if (all != reached || !has_symbolic_of(*own, *theirs) || !has_symbolic_of(*theirs, *own))
    return {};
  return out;
}

}  // namespace tuff::sched
