// Whether gradients are likely to be asked for. Must never decide what a gradient is.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

// Whether a leaf with requires_grad is below x, while gradients are enabled.
bool is_trained(const Tensor& x);

}  // namespace tuff::detail
