// What an op makes of the gradient of its result: one row per op. Called by the walk over a graph
// (gradient_walk.cpp) alone. Knows one node, nothing of what is around it.
#pragma once

#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// Per source of u its gradient, of the source's shape, given that of u; empty where there is none.
// Throws Unsupported naming an op without a gradient.
std::vector<UOp> gradients_of_sources(const UOp& u, const UOp& g);
// g, of shape () or x's, for a source x of shape () or g's.
UOp gradient_like(const UOp& g, const UOp& x);

}  // namespace tuff::ir
