// Sums of products as a convolution of few positions makes them: one factor lies in memory in the
// order of the sum, the other is gathered for a handful of outputs. Called by the pass
// reduce-order, which makes one axis of such a sum, and by the heuristics. Knows nothing of targets.
#pragma once

#include <optional>

#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

// Which source of the product is gathered; nullopt: the Reduce is no such sum. All its sizes are
// constants, it has steps for two vectors of so many lanes, and what is gathered is read again for
// several outputs.
std::optional<int> gathered_factor(const ir::Node* reduce, RangeDeps& deps, int64_t lanes);

}  // namespace tuff::kernel
