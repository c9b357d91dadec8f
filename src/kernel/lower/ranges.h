// Which ranges a value depends on, and rewrites of an AST's ranges that keep its meaning.
// Called by every pass of kernel. Knows nothing of targets.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph/uop.h"

namespace tuff::kernel {

using RangeMask = uint64_t;  // bit i: RangeDeps::ranges()[i]

inline bool is_lane(graph::AxisKind k) {
  return k == graph::AxisKind::Lane || k == graph::AxisKind::Vector ||
         k == graph::AxisKind::ReduceLane;
}
inline bool is_loop(graph::AxisKind k) {
  return k == graph::AxisKind::Loop || k == graph::AxisKind::Reduce;
}
inline bool is_launch(graph::AxisKind k) { return !is_lane(k) && !is_loop(k); }
inline graph::AxisKind kind_of(const graph::Node* range) {
  return range->get<graph::RangeArg>().kind;
}

// The open ranges of every node below a root; of nodes made later on demand. Reduce and End close
// theirs, Barrier those of one workgroup and of lanes.
class RangeDeps {
 public:
  explicit RangeDeps(const graph::UOp& root);
  RangeMask of(const graph::UOp& u);
  const std::vector<graph::UOp>& ranges() const { return ranges_; }
  RangeMask bit(const graph::UOp& range);
  RangeMask kinds(bool (*test)(graph::AxisKind)) const;
  std::vector<graph::UOp> list(RangeMask m) const;  // in order of range id

 private:
  RangeMask compute(const graph::UOp& u);
  std::vector<graph::UOp> ranges_;
  graph::UOpMap<RangeMask> memo_;
};

// Rebuilds sources first: fn(node, new sources) gives what replaces the node; empty: the same with
// those sources. Unlike map_bottom_up it sees the node as it was.
using RebuildFn = std::function<graph::UOp(const graph::UOp& old, std::span<const graph::UOp> src)>;
graph::UOp rebuild(const graph::UOp& root, const RebuildFn& fn);

// Gives reductions that cannot share a loop (one needs the other, or they stand inside different
// loops) ranges of their own, so that a Range is one loop.
graph::UOp separate_loops(const graph::UOp& ast);

// Neighbouring axes that all offsets walk as one become one range: less index arithmetic, longer
// vectors.
graph::UOp merge_axes(const graph::UOp& ast);

// Output axes of reductions whose offsets need remainders of them, as the images' gradient of a
// convolution with a stride, become blocks and phases: within a phase all offsets are affine, and
// lanes along the blocks read and gate alike.
graph::UOp split_phases(const graph::UOp& ast);

}  // namespace tuff::kernel
