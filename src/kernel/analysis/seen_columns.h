// How much of a kept row its mask lets through, as that of causal attention does: what else there
// is weighs nothing, so that slabs of it are not computed. Called by opt. Knows nothing of targets.
#pragma once

#include <span>

#include "ir/shown_columns.h"

namespace tuff::kernel {

// Elements from one on or before one, by the loops that walk rows, each counted upwards; none where
// that is not known. Beside them a softmax's exponents are those of numbers that a mask put there,
// of -1e30 or less, and all that one sweep sums is proportional to an exponential; a row sees 1
// element at least. Or all that is summed is 0 there.
ir::ShownColumns seen_columns(const ir::UOp& ast, std::span<const ir::UOp> columns);

}  // namespace tuff::kernel
