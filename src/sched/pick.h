// Sums over a comparison with a counter, as gather and embedding spell them, become one load at the
// compared index. Called by rangeify on the value of a sum before its ranges are closed.
#pragma once

#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// sum over r of where(e == r, load(r), 0) is load(e) where 0 <= e < size, else 0. Picked ranges are
// taken out of `ranges`; the value comes back unchanged where the form is another.
ir::UOp pick_elements(ir::UOp value, std::vector<ir::UOp>& ranges);

}  // namespace tuff::sched
