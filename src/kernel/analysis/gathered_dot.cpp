#include "kernel/analysis/gathered_dot.h"

#include <algorithm>

#include "ir/kernel_floor.h"
#include "kernel/analysis/access.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kMostGathered = 8;  // outputs that gather; of more, each is a vector's lane
constexpr int64_t kLeastReuse = 4;    // outputs that read the same gathered elements

// The ranges, outermost first, step through memory element by element, whatever else moves.
bool walks_as_one(const UOp& value, std::span<const UOp> ranges, RangeDeps& deps) {
  const std::vector<Access> all = accesses(value, deps);
  return !all.empty() && std::ranges::all_of(all, [&](const Access& a) {
    int64_t step = 1;
    for (size_t i = ranges.size(); i-- > 0; step *= ranges[i]->src(0)->max) {
      const RangeMask bit = deps.bit(ranges[i]);
      if (a.step(ranges[i]) != step || ((a.gate | a.irregular) & bit)) return false;
    }
    return true;
  });
}

bool holds_reduction(const UOp& value) {
  return std::ranges::any_of(toposort(value), [](const Node* n) {
    return n->op == Op::Reduce || n->op == Op::Shared;
  });
}

// Iterations of the ranges that only the first of two values depends on.
int64_t alone(RangeMask first, RangeMask second, RangeMask summed, const RangeDeps& deps) {
  return extent(deps.list(first & ~second & ~summed));
}

}  // namespace

std::optional<int> gathered_factor(const Node* reduce, RangeDeps& deps, int64_t lanes) {
  const Node* product = through_casts(reduce->src(0).get());
  if (reduce->get<ReduceArg>().op != Op::Add || product->op != Op::Mul) return {};
  const std::span<const UOp> ranges = closed_ranges(reduce);
  RangeMask summed = 0;
  for (const UOp& r : ranges) summed |= deps.bit(r);
  const RangeMask all = deps.of(product->src(0)) | deps.of(product->src(1));
  for (const UOp& r : deps.list(all | summed))
    if (!r->src(0)->is_const()) return {};
  if (extent(ranges) < 2 * lanes) return {};
  for (const int s : {0, 1}) {
    const UOp gathered = product->src(size_t(s)), walked = product->src(size_t(1 - s));
    const RangeMask by = deps.of(gathered), other = deps.of(walked);
    if (by & other & ~summed) continue;
    const bool few = alone(by, other, summed, deps) <= kMostGathered &&
                     alone(other, by, summed, deps) >= kLeastReuse;
    if (few && !walks_as_one(gathered, ranges, deps) && walks_as_one(walked, ranges, deps) &&
        !holds_reduction(gathered) && !holds_reduction(walked))
      return s;
  }
  return {};
}

}  // namespace tuff::kernel
