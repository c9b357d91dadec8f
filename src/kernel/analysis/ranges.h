// Which ranges a value depends on, and rewrites of an AST's ranges that keep its meaning.
// Called by every pass of kernel. Knows nothing of targets.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::kernel {

// The variable that stands for the loop whose iterations have an order while opts are chosen
// (lower/ordered.h).
inline constexpr const char* kOrderedCounter = "#ordered";

using RangeMask = uint64_t;  // bit i: RangeDeps::ranges()[i]

using ir::is_lane;
inline bool is_loop(ir::AxisKind k) {
  return k == ir::AxisKind::Loop || k == ir::AxisKind::Reduce || k == ir::AxisKind::Ordered;
}
inline bool is_launch(ir::AxisKind k) { return !is_lane(k) && !is_loop(k); }
inline ir::AxisKind kind_of(const ir::Node* range) { return range->get<ir::RangeArg>().kind; }

inline bool fits_i32(const ir::Node* n) {  // by its bounds
  return n->min >= std::numeric_limits<int32_t>::min() &&
         n->max <= std::numeric_limits<int32_t>::max();
}

// The open ranges of every node below a root; of nodes made later on demand. Reduce and End close
// theirs, Barrier those of one workgroup and of lanes.
class RangeDeps {
 public:
  explicit RangeDeps(const ir::UOp& root);
  RangeMask of(const ir::UOp& u);
  const std::vector<ir::UOp>& ranges() const { return ranges_; }
  RangeMask bit(const ir::UOp& range);
  RangeMask kinds(bool (*test)(ir::AxisKind)) const;
  RangeMask kinds(ir::AxisKind k) const;
  int32_t free_id() const;  // a number that no range has
  std::vector<ir::UOp> list(RangeMask m) const;  // in order of range id

 private:
  RangeMask compute(const ir::UOp& u);
  std::vector<ir::UOp> ranges_;
  ir::UOpMap<RangeMask> memo_;
};

int64_t extent(std::span<const ir::UOp> ranges);  // the product of their sizes
// The number of an iteration among those of all these ranges, the last one fastest; `outer`: that
// of what is around them.
ir::UOp flat_index(std::span<const ir::UOp> ranges, ir::UOp outer = ir::index_const(0));

// The steps of the range at which offsets and values, sources first, take it apart, and its size;
// empty where one does not divide the next.
std::vector<int64_t> digit_cuts(const ir::UOp& range, std::span<const ir::Node* const> order);

// The fold of a value over lanes; one that it does not depend on counts it as often as it has
// values.
ir::UOp fold_lanes(RangeDeps& deps, ir::Op op, const ir::UOp& value,
                   std::span<const ir::UOp> lanes);

// Rebuilds sources first: fn(node, new sources) gives what replaces the node; empty: the same with
// those sources. Unlike map_bottom_up it sees the node as it was.
using RebuildFn = std::function<ir::UOp(const ir::UOp& old, std::span<const ir::UOp> src)>;
ir::UOp rebuild(const ir::UOp& root, const RebuildFn& fn);

// Gives reductions that cannot share a loop (one needs the other, or they stand inside different
// loops) ranges of their own, so that a Range is one loop. `joins`: one that stands inside fewer
// loops than another is made again in each of that one's, where outputs are invocations.
ir::UOp separate_loops(const ir::UOp& ast, bool joins);

// Whether a reduction stands inside fewer loops than another of the same ranges, whose loop makes
// both: for each output of that one anew. `order`: of the graph.
bool is_made_besides(const ir::Node* reduce, std::span<const ir::Node* const> order,
                     RangeDeps& deps);

// Output axes of reductions whose offsets need remainders of them, as the images' gradient of a
// convolution with a stride, become blocks and phases: within a phase all offsets are affine, and
// lanes along the blocks read and gate alike.
ir::UOp split_phases(const ir::UOp& ast);

// Reductions over packed numbers in the order of their words: blocks hold the low halves of some
// bytes, then the high halves of the same, so that in the order of numbers a byte is read again far
// from where it was read. What one word holds becomes neighbours, so that an unrolled body reads it
// once and the lanes of a subgroup read words beside each other.
ir::UOp reorder_reductions(const ir::UOp& ast);

// The axes of a sum whose gathered factor has a copy (gathered_dot.h) as one: lanes along it load
// the other factor as vectors, however short the innermost axis is.
ir::UOp join_gathered_axes(const ir::UOp& ast, int64_t lanes);

}  // namespace tuff::kernel
