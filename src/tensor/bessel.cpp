// The modified Bessel function of order 0: a polynomial of x^2, and of 1/x beside an exponential
// further out.
#include <cmath>

#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::at;
using detail::exact_exp;
using detail::horner;
using detail::is_wide;
using detail::number_like;

namespace {

// e^x P(1/x) / sqrt(x) of x from where the polynomial begins, without overflow on the way: x - 8 is
// exact where it is taken.
Tensor i0_far(const Tensor& x) {
  const double begin = is_wide(x) ? 10 : 8;
  const Tensor t = x.reciprocal(), huge = x > (is_wide(x) ? 700 : 80);
  const Tensor tail = horner(t - 0.5 / begin, detail::kI0TailF32, detail::kI0TailF64);
  const Tensor lift = Tensor::where(huge, number_like(x, std::exp(8.0)), 1.0);
  return exact_exp(Tensor::where(huge, x - 8, x)) * (tail * t.sqrt() * lift);
}

// Beyond what its type holds nothing is computed: 1/x may be subnormal there.
Tensor i0_of(const Tensor& x) {
  const double begin = is_wide(x) ? 10 : 8;
  const Tensor a = detail::magnitude(x), far = a > begin, beyond = a > (is_wide(x) ? 800 : 100);
  const Tensor v = x.clamp(-begin, begin);
  const Tensor outer = i0_far(Tensor::where(far & ~beyond, a, begin));
  const Tensor near = horner(v * v, detail::kI0F32, detail::kI0F64);
  return Tensor::where(beyond, at(beyond, a) * INFINITY, Tensor::where(far, outer, near));
}

}  // namespace

Tensor TensorMath::i0() const { return detail::computed_wide(detail::self(this), i0_of); }

}  // namespace tuff
