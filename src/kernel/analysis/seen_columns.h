// How far into a kept row its mask lets anything through, as that of causal attention does: what is
// behind weighs nothing, so that slabs of it are not computed. Called by opt/build.cpp. Knows
// nothing of targets.
#pragma once

#include <span>

#include "ir/uop.h"

namespace tuff::kernel {

// So many elements at the front of a row, 1 at least, by the loops that walk rows; empty where that
// is not known. Behind them a softmax's exponents are those of numbers that a mask put there, of
// -1e30 or less, and all that one sweep sums is proportional to an exponential.
ir::UOp seen_columns(const ir::UOp& ast, std::span<const ir::UOp> columns);

}  // namespace tuff::kernel
