// Parts of losses that others are made of.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

// Sum of the rows' losses, of classes that are known to be inside; logits (N, C).
Tensor cross_entropy_sum(const Tensor& logits, const Tensor& target, const Tensor& weight,
                         int64_t ignore_index, double label_smoothing);
// What the mean divides the sum by.
Tensor cross_entropy_count(const Tensor& target, int64_t classes, const Tensor& weight,
                           int64_t ignore_index);
void require_classes(const char* what, const Tensor& target, int64_t classes,
                     int64_t ignore_index);

}  // namespace tuff::detail
