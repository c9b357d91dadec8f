// Gradients as a graph transform: one row per op (gradient.cpp), and a
// walk (gradient_walk.cpp). Gradients of gradients work, since
// the result is made of ordinary tensor-floor ops. Called by tensor's backward and gradient.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// d(sum(root * seed))/d(target); seed of root's shape or (). For each target, with target's shape
// and dtype; an empty UOp where root does not depend on the target. Detach stops it; Assign is
// looked through to its value... its target's gradient is that of the buffer before. Throws
// Unsupported naming the op without a gradient. A target that is a Reshape or Permute must be the
// node its users have: the builders merge reshapes of reshapes and permutes of permutes, so ask for
// the node below it if in doubt.
std::vector<UOp> gradients(const UOp& root, const UOp& seed, std::span<const UOp> targets);

}  // namespace tuff::ir
