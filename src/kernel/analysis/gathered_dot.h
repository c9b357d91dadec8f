// Sums of products as a convolution of few positions makes them: one factor lies in memory in the
// order of the sum, the other is gathered for a handful of outputs. Called by the pass
// reduce-order, which makes one axis of such a sum, and by the heuristics. Knows nothing of targets.
#pragma once

#include <optional>

#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

// Which source of the product is gathered; nullopt: the Reduce is no such sum. All sizes are known,
// so many lanes of one vector at least fill twice along the sum, and a copy of what is gathered is
// far smaller than the factor that it meets.
std::optional<int> gathered_factor(const ir::Node* reduce, RangeDeps& deps, int64_t lanes);

}  // namespace tuff::kernel
