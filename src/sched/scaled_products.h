// Factors of 16 bits are multiplied by cooperative matrices, and a constant times one of them is no
// such factor: it leaves the sum of products, as the scale of attention's scores does in their
// gradients. Called by prepare(). Works on the tensor floor alone.
#pragma once

#include "ir/uop.h"

namespace tuff::sched {

// A sum of c * x * y, where x and y are numbers of 16 bits or less, widened, as c * (sum of x * y).
// c is not far from 1.
struct ScaledProducts {
  ir::UOp sum;  // empty: it is none
  ir::UOp scale;
};
// The same value but for rounding.
ScaledProducts scaled_products(const ir::UOp& sum);

}  // namespace tuff::sched
