// Losses of products with large matrices. Called by programs that train language models.
#pragma once

#include <tuff/tensor.h>

namespace tuff {

/// input.linear(linear_weight, linear_bias).cross_entropy(target, ...), of which memory never holds
/// all logits: a loop (scan()) computes those of rows_at_once rows (0: as many as take 256 MiB),
/// and the gradients of input, weight and bias beside the loss, as long as there are logits to
/// compute them of. input (N, in), linear_weight (C, in), linear_bias (C), target integers (N).
///
/// Those gradients are constants to a gradient of a gradient. All logits are computed at once where
/// they are few, for Reduction::None, for targets that are probabilities (N, C), for input (in),
/// and where N varies. Errors are those of Tensor::linear() and Tensor::cross_entropy().
Tensor linear_cross_entropy(const Tensor& input, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias = {}, const Tensor& weight = {},
                            int64_t ignore_index = -100, Reduction reduction = Reduction::Mean,
                            double label_smoothing = 0, int64_t rows_at_once = 0);

}  // namespace tuff
