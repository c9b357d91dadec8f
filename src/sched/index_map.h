// Movement ops as transforms of index tuples: an element of the result is which element of the
// source, and under which condition. Called by rangeify. Knows nothing of kernels or memory but
// strides.
#pragma once

#include <vector>

#include "graph/uop.h"

namespace tuff::sched {

using IndexTuple = std::vector<graph::UOp>;  // one Index expression per axis

struct SourceIndex {
  IndexTuple index;
  graph::UOp valid;  // of a Pad: true where the source has the element; empty where it always has
};

// Where element `index` of the movement node `n` comes from.
SourceIndex through_movement(const graph::Node& n, const IndexTuple& index);

// Row-major offset in memory laid out at maximum extents.
graph::UOp flat_offset(const graph::Shape& shape, const IndexTuple& index);

// a and b; either may be empty (true).
graph::UOp both(const graph::UOp& a, const graph::UOp& b);

}  // namespace tuff::sched
