// Folds over lanes, as pass_reduces and later passes make them. Called by passes that lower
// reductions.
#pragma once

#include <span>

#include "kernel/lower/ranges.h"

namespace tuff::kernel {

// The fold of a value over lanes; one that it does not depend on counts it as often as it has
// values.
graph::UOp fold_lanes(RangeDeps& deps, graph::Op op, const graph::UOp& value,
                      std::span<const graph::UOp> lanes);

}  // namespace tuff::kernel
