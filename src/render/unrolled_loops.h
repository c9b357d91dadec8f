// Which loops a driver's compiler is asked to unroll. Called by the renderers; knows no language.
#pragma once

#include "render/lane_space.h"

namespace tuff::render {

// Whether the loop that begins at op `range` is short, innermost and free of barriers: its counter
// and its addresses then become constants, and the loads of its steps overlap.
bool is_worth_unrolling(const kernel::LinearKernel& k, const LaneSpace& space, size_t range);

}  // namespace tuff::render
