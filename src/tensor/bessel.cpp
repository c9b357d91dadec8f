// The modified Bessel functions of orders 0 and 1: polynomials of x^2, and of 1/x beside an
// exponential further out.
#include <cmath>

#include <tuff/special.h>
#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::at;
using detail::exact_exp;
using detail::horner;
using detail::is_wide;
using detail::number_like;

namespace {

// An order's polynomials: of x^2 near 0, and of 1/x.
struct Bessel {
  std::span<const double> near_f32, near_f64, far_f32, far_f64;
  bool odd;
};
constexpr Bessel kOrder0{detail::kI0F32, detail::kI0F64, detail::kI0TailF32, detail::kI0TailF64,
                         false};
constexpr Bessel kOrder1{detail::kI1F32, detail::kI1F64, detail::kI1TailF32, detail::kI1TailF64,
                         true};

double begin_of_far(const Tensor& x) { return is_wide(x) ? 10 : 8; }

// P(1/x) / sqrt(x) of x from where the polynomial begins.
Tensor far_without_exp(const Tensor& x, const Bessel& order) {
  const Tensor t = x.reciprocal() - 0.5 / begin_of_far(x);
  return horner(t, order.far_f32, order.far_f64) * x.rsqrt();
}
// Times e^x, without overflow on the way: x - 8 is exact where it is taken.
Tensor far_of(const Tensor& x, const Bessel& order) {
  const Tensor huge = x > (is_wide(x) ? 700 : 80);
  const Tensor lift = Tensor::where(huge, number_like(x, std::exp(8.0)), 1.0);
  return exact_exp(Tensor::where(huge, x - 8, x)) * (far_without_exp(x, order) * lift);
}
Tensor near_of(const Tensor& x, const Bessel& order) {
  const Tensor v = x.clamp(-begin_of_far(x), begin_of_far(x));
  const Tensor p = horner(v * v, order.near_f32, order.near_f64);
  return order.odd ? p * v : p;
}
Tensor with_sign_of(const Tensor& x, const Tensor& size, const Bessel& order) {
  return order.odd ? Tensor::where(x < 0, -size, size) : size;
}

// Beyond what its type holds nothing is computed: 1/x may be subnormal there.
Tensor bessel_of(const Tensor& x, const Bessel& order) {
  const double begin = begin_of_far(x);
  const Tensor a = detail::magnitude(x), far = a > begin, beyond = a > (is_wide(x) ? 800 : 100);
  const Tensor outer = far_of(Tensor::where(far & ~beyond, a, begin), order);
  const Tensor large = Tensor::where(beyond, at(beyond, a) * INFINITY, outer);
  return Tensor::where(far, with_sign_of(x, large, order), near_of(x, order));
}

// The same times exp(-|x|). From 2^60 on the polynomial is what it is at its end.
Tensor scaled_bessel_of(const Tensor& x, const Bessel& order) {
  const double begin = begin_of_far(x);
  const Tensor a = x.abs(), far = a > begin, endless = a == INFINITY;
  const Tensor v = Tensor::where(far & ~endless, a, begin);
  const Tensor p = horner(v.clamp({}, 0x1p60).reciprocal() - 0.5 / begin, order.far_f32,
                          order.far_f64);
  const Tensor outer = Tensor::where(endless, 0.0, p * v.rsqrt());
  const Tensor near = near_of(x, order) * exact_exp(-a.clamp({}, begin));
  return Tensor::where(far, with_sign_of(x, outer, order), near);
}

}  // namespace

Tensor TensorMath::i0() const {
  return detail::computed_wide(detail::self(this),
                               [](const Tensor& x) { return bessel_of(x, kOrder0); });
}

Tensor special::i0e(const Tensor& x) {
  return detail::computed_wide(x, [](const Tensor& v) { return scaled_bessel_of(v, kOrder0); });
}
Tensor special::i1(const Tensor& x) {
  return detail::computed_wide(x, [](const Tensor& v) { return bessel_of(v, kOrder1); });
}
Tensor special::i1e(const Tensor& x) {
  return detail::computed_wide(x, [](const Tensor& v) { return scaled_bessel_of(v, kOrder1); });
}

}  // namespace tuff
