// Shapes whose extents may be symbolic: what they come to, and how they lie in memory that has room
// for the largest. Called by loops, the scheduler and tensor's realize().
#pragma once

#include <span>

#include "ir/uop.h"

namespace tuff::ir {

// The product of the extents; element_count() is that of the largest.
Dim count_of(std::span<const Dim> extents);
// No gaps between rows: only the outermost extent may be symbolic.
bool is_dense(const Shape& s);

}  // namespace tuff::ir
