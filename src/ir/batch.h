// A graph for one value of something, made one for many of them side by side: every node that
// depends on it gets a new first axis. Called by tensor's vmap and jacrev. Knows ops, nothing of
// functions.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// The roots for each of `count` values of some nodes: instead of each key, its value, which has an
// axis of that extent in front of the key's shape. Results have that axis too; where nothing
// depends on a key it repeats. Gradients of rules and checkpoints stay what they are for one.
// Throws Unsupported where a key's value is written to memory (Assign).
std::vector<UOp> batched(std::span<const UOp> roots, const Dim& count, const UOpMap<UOp>& values);

}  // namespace tuff::ir
