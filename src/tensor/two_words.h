// Sums and products of tensors of f32 or f64 as two words of that type, the first being the rounded
// one (Dekker, "A floating-point technique for extending the available precision", 1971). They need
// additions and products that are rounded to nearest and not contracted, which `render` makes sure
// of. Used inside tensor; no gradients.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

struct TwoWords {
  Tensor hi, lo;
};

// The upper half of a significand: products of halves are exact.
Tensor upper_half(const Tensor& x);
// The zero that has x's sign; no gradient.
Tensor zero_of_sign(const Tensor& x);
// a + b where |a| >= |b| or a is 0.
TwoWords ordered_sum(const Tensor& a, const Tensor& b);
// The low words may be off by the last place of a product of low words.
TwoWords product(const Tensor& a, const Tensor& b);
TwoWords product(const TwoWords& a, const TwoWords& b);
TwoWords product(const TwoWords& a, const Tensor& b);
// A number of more bits than x's type has.
TwoWords two_words_like(const Tensor& x, long double v);

}  // namespace tuff::detail
