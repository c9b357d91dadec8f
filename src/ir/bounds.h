// Bounds of integer nodes, derived when a node is made. Called by uop.cpp alone.
#pragma once

#include <span>
#include <utility>

#include "ir/uop.h"

namespace tuff::ir {

// [min, max] of the value; int64's limits where nothing is known. Sound, not tight.
std::pair<int64_t, int64_t> derive_bounds(Op op, DType dtype, std::span<const UOp> src,
                                          const Arg& arg);

}  // namespace tuff::ir
