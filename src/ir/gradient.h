// Gradients as a graph transform: one row per op (gradient.cpp), and a
// walk (gradient_walk.cpp). Gradients of gradients work, since
// the result is made of ordinary tensor-floor ops. Called by tensor's backward and gradient.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// A gradient in closed form: the arg of a Detach of several sources, whose first is the value and
// whose others are what it was computed from. The row is as those of ops are: per source (fewer
// leave out the last ones) the gradient that follows from that of the node, empty where there is
// none. It makes its result of the node itself and of sources from the second on, so that
// gradients of gradients work; users' rules are graphs of what is known beforehand (rule.h), which
// a form that needs itself cannot be. The first axis of all sources counts problems that know
// nothing of each other (batch.h makes it longer). Equal values are the same object.
struct GradientRule {
  const char* name;  // what texts and hashes have of it
  std::vector<UOp> (*row)(const UOp& u, const UOp& gradient);
};


// d(sum(root * seed))/d(target); seed of root's shape or (). For each target, with target's shape
// and dtype; an empty UOp where root does not depend on the target. Detach stops it; Assign is
// looked through to its value... its target's gradient is that of the buffer before. Throws
// Unsupported naming the op without a gradient. A target that is a Reshape or Permute must be the
// node its users have: the builders merge reshapes of reshapes and permutes of permutes, so ask for
// the node below it if in doubt.
std::vector<UOp> gradients(const UOp& root, const UOp& seed, std::span<const UOp> targets);

}  // namespace tuff::ir
