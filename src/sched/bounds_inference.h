// Which part of each value is read, and reductions that compute no more than that: of a convolution's
// gradient for images with a border, of the last row of a product. Elsewhere index arithmetic sees
// to it. Called by prepare(). Must never know devices, nor what is stored.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// Graphs of the same values, bit for bit. The part of an axis is what lies between the first and
// the last element that anything reads.
std::vector<ir::UOp> infer_bounds(std::span<const ir::UOp> sinks);

}  // namespace tuff::sched
