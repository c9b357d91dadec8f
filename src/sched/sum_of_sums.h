// A short sum of what moves the results of another short sum is one sum, as in the gradient of
// windows along two axes: nothing is stored between the two. Called by prepare(). Works on the
// tensor floor alone.
#pragma once

#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// `sum` as one sum of what its source, below movement that repeats nothing, sums up; null where it
// is none of these, or a sum of products, which is computed best by itself; unless these are finite
// and each is read about once, as in the gradient of a convolution's images.
ir::UOp one_sum(const ir::UOp& sum);
// The inner sum of such a one; null where there is none.
const ir::Node* inner_sum(const ir::Node& sum);

// The sums of the products that a sum adds up, where they are several products of matrices, as of
// gradients of what these have in common: each is tiled as a product, which one sum of all is not.
// In f32 where the sum is narrower. Empty where it is none.
std::vector<ir::UOp> products_of_sum(const ir::UOp& sum);

}  // namespace tuff::sched
