// Folds over lanes, as pass_reduces and later passes make them. Called by passes that lower
// reductions.
#pragma once

#include <span>

#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

// The fold of a value over lanes; one that it does not depend on counts it as often as it has
// values.
ir::UOp fold_lanes(RangeDeps& deps, ir::Op op, const ir::UOp& value,
                      std::span<const ir::UOp> lanes);

}  // namespace tuff::kernel
