// Parts of losses that others are made of.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

// Tensor::cross_entropy() of classes that are known to be inside.
Tensor unchecked_cross_entropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                               int64_t ignore_index, Reduction reduction, double label_smoothing);
// What the mean divides the sum by.
Tensor cross_entropy_count(const Tensor& target, int64_t classes, const Tensor& weight,
                           int64_t ignore_index);
void require_classes(const char* what, const Tensor& target, int64_t classes, int64_t ignore_index);

}  // namespace tuff::detail
