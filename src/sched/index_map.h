// Movement ops as transforms of index tuples: an element of the result is which element of the
// source, and under which condition. Called by rangeify. Knows nothing of kernels or memory but
// strides.
#pragma once

#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

using IndexTuple = std::vector<ir::UOp>;  // one Index expression per axis

struct SourceIndex {
  IndexTuple index;
  ir::UOp valid;  // of a Pad: true where the source has the element; empty where it always has
};

// Where element `index` of the movement node `n` comes from.
SourceIndex through_movement(const ir::Node& n, const IndexTuple& index);

// Row-major offset in memory laid out at maximum extents.
ir::UOp flat_offset(const ir::Shape& shape, const IndexTuple& index);

// a and b; either may be empty (true).
ir::UOp both(const ir::UOp& a, const ir::UOp& b);

}  // namespace tuff::sched
