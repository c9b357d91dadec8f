// Special functions beyond Tensor's: the normal distribution's, zeta and what is made of it,
// orthogonal polynomials.
#include <tuff/special.h>

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/closed_form.h"
#include "tensor/polynomials.h"
#include "tensor/two_words.h"

namespace tuff::special {

using detail::at;
using detail::computed_wide;
using detail::exact_exp;
using detail::gradients_of_sources;
using detail::horner;
using detail::is_wide;
using detail::log_of;
using detail::ruled;
using detail::tensor_of;
using ir::UOp;

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kRootOfHalf = std::numbers::sqrt2 / 2;

// d f = (the function's derivative) dx, of what stands behind a value.
struct Point {
  Tensor x, value, gradient;
};
Point point_of(const UOp& u, const UOp& gradient) {
  return {tensor_of(u->src(1), u), tensor_of(u, u), tensor_of(gradient, u)};
}

// Both wide, the result in the dtype of the two.
template <class F>
Tensor of_two(const char* what, const Tensor& a, const Tensor& b, F&& f) {
  const auto [x, y] = detail::unify(what, a, b);
  const Tensor second = y.cast(detail::compute_dtype(y.dtype()));
  return computed_wide(x, [&](const Tensor& first) { return f(first, second); });
}

// exp(x^2), x^2 not rounded: the square of the upper half of x is exact.
Tensor exp_of_square(const Tensor& x) {
  const Tensor hi = detail::upper_half(x), rest = (x - hi) * (x + hi);
  constexpr double kSeries[] = {1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120};  // of (e^x - 1)/x
  const Tensor square = exact_exp(hi * hi);
  return square + square * (rest * horner(rest, kSeries));
}

// Of x > 0.4. Far out by the asymptotic series (NIST DLMF, 7.12.1).
Tensor erfcx_of_positive(const Tensor& x) {
  const double end = is_wide(x) ? 28 : 14;
  const Tensor far = x > end, v = Tensor::where(far, x, end), r = v.clamp({}, 0x1p60).reciprocal();
  constexpr double kSeries[] = {1, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875};
  const Tensor series = horner(r * r, kSeries) / v * std::numbers::inv_sqrtpi;
  return Tensor::where(far, series, detail::scaled_erfc_tail(x.clamp(0.4, end)));
}
Tensor erfcx_value(const Tensor& x) {
  const Tensor positive = x >= 0.4, below = x <= -1, lower = is_wide(x) ? x < -27 : x < -10;
  const Tensor middle = Tensor::where(positive | below, 0.0, x);
  const Tensor near = exact_exp(middle * middle) * (1 - detail::erf_small(middle));
  const Tensor outer = erfcx_of_positive(Tensor::where(positive, x, Tensor::where(below, -x, 1.0)));
  const Tensor reflected =
      exp_of_square(Tensor::where(below & ~lower, x, 1.0)) * 2 - outer;
  const Tensor left = Tensor::where(lower, at(lower, x) * -INFINITY, reflected);
  return Tensor::where(positive, outer, Tensor::where(below, left, near));
}

std::vector<UOp> row_of_erfcx(const UOp& u, const UOp& gradient) {
  const Point p = point_of(u, gradient);
  return gradients_of_sources(
      {p.gradient * (p.x * p.value * 2 - 2 * std::numbers::inv_sqrtpi)});
}
constexpr ir::GradientRule kErfcx{"erfcx", row_of_erfcx};

std::vector<UOp> row_of_entropy(const UOp& u, const UOp& gradient) {
  const Point p = point_of(u, gradient);
  return gradients_of_sources({p.gradient * -(p.x.log() + 1)});
}
constexpr ir::GradientRule kEntropy{"entr", row_of_entropy};

// phi(x) / Phi(x)
Tensor inverse_mills_ratio(const Tensor& x) {
  return std::sqrt(2 / kPi) / erfcx(x * -kRootOfHalf);
}
std::vector<UOp> row_of_log_ndtr(const UOp& u, const UOp& gradient) {
  const Point p = point_of(u, gradient);
  return gradients_of_sources({p.gradient * inverse_mills_ratio(p.x)});
}
constexpr ir::GradientRule kLogNdtr{"log_ndtr", row_of_log_ndtr};

Tensor log_ndtr_value(const Tensor& x) {
  const Tensor below = x < -1, v = x * kRootOfHalf;
  const Tensor left = (erfcx_value(-(Tensor::where(below, v, -1.0))) * 0.5).log();
  const Tensor right = (Tensor::where(below, 0.0, v).erfc() * -0.5).log1p();
  return Tensor::where(below, left - x * x * 0.5, right);
}

std::vector<UOp> row_of_ndtri(const UOp& u, const UOp& gradient) {
  const Point p = point_of(u, gradient);
  return gradients_of_sources(
      {p.gradient * (p.value.square() * 0.5).exp() * std::sqrt(2 * kPi)});
}
constexpr ir::GradientRule kNdtri{"ndtri", row_of_ndtri};

// Of p up to 1/8: from what erfinv() would be by Newton's steps, which double the digits.
Tensor ndtri_of_small(const Tensor& p) {
  const Tensor wanted = log_of(p);
  const Tensor r = (-(wanted + std::numbers::ln2)).sqrt();
  const double end = is_wide(p) ? 6.1 : 4.16;  // of the polynomial
  const Tensor t = (r.clamp({}, end) + 1).reciprocal();
  Tensor x = r * horner(t - 0.3125, detail::kErfinvTailF32, detail::kErfinvTailF64) *
             -std::numbers::sqrt2;
  for (int i = 0; i < (is_wide(p) ? 4 : 3); i++)
    x = x - (log_ndtr_value(x) - wanted) *
                (erfcx_value(x * -kRootOfHalf) * std::sqrt(kPi / 2));
  return x;
}
Tensor ndtri_value(const Tensor& p) {
  const Tensor upper = p > 0.5, least = Tensor::where(upper, 1 - p, p);
  const Tensor middle = least > 0.125, small = (least > 0) & ~middle;
  const Tensor inner =
      (Tensor::where(middle, p, 0.5) * 2 - 1).erfinv() * std::numbers::sqrt2;
  const Tensor tail = ndtri_of_small(Tensor::where(small, least, 0.125));
  const Tensor outer = Tensor::where(upper, -tail, tail);
  const Tensor end = Tensor::where(least == 0, Tensor::where(upper, INFINITY, -INFINITY), NAN);
  const Tensor known = Tensor::where(small, outer, end.cast(p.dtype()));
  return Tensor::where(middle, inner, known);
}

// B(2n) / (2n)!, of Euler's and Maclaurin's formula (NIST DLMF, 2.10.1).
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600,
                                 -3617.0 / 10670622842880000,
                                 43867.0 / 5109094217170944000,
                                 -174611.0 / 802857662698291200000.0};

// Of x > 1 and q > 0: ten terms, and what is left of the sum behind them.
Tensor zeta_of_regular(const Tensor& x, const Tensor& q) {
  constexpr int kTerms = 10;
  Tensor sum = q.pow(-x), last = sum;
  for (int k = 1; k < kTerms; k++) {
    last = (q + k).pow(-x);
    sum = sum + last;
  }
  const Tensor w = q + (kTerms - 1);
  sum = sum + last * (w / (x - 1)) - last * 0.5;
  Tensor factor = last * x / w;
  for (size_t i = 0; i < (is_wide(x) ? std::size(kBernoulli) : size_t(4)); i++) {
    sum = sum + factor * kBernoulli[i];
    const double k = 2 * double(i) + 1;
    factor = factor * ((x + k) / w) * ((x + (k + 1)) / w);
  }
  return sum;
}
Tensor zeta_value(const Tensor& given, const Tensor& q) {
  const Tensor x = given.detach(), regular = (x > 1) & (q > 0);
  const Tensor sum = zeta_of_regular(Tensor::where(regular, x, 2.0), at(regular, q));
  const Tensor pole = (x == 1) | ((x > 1) & (q <= 0) & (q == q.trunc()));
  const Tensor none = Tensor::where(pole, detail::number_like(x, INFINITY), NAN);
  return Tensor::where(regular, sum, none);
}

// The first two polynomials and what the recurrence makes of two: of degrees k and k - 1.
using Recurrence = Tensor (*)(const Tensor& x, const Tensor& now, const Tensor& before, double k);
Tensor polynomial(const char* what, const Tensor& given, int64_t n, double slope, double constant,
                  Recurrence next) {
  if (n > 1000) fail<InvalidArgument>("{}: degree {} is above 1000", what, n);
  return computed_wide(given, [&](const Tensor& x) {
    if (n < 0) return x.zeros_like();
    Tensor before = x.ones_like(), now = x * slope + constant;
    if (n == 0) return before;
    for (int64_t k = 1; k < n; k++) {
      const Tensor following = next(x, now, before, double(k));
      before = now;
      now = following;
    }
    return now;
  });
}

Tensor next_chebyshev(const Tensor& x, const Tensor& now, const Tensor& before, double) {
  return x * 2 * now - before;
}
Tensor next_hermite_h(const Tensor& x, const Tensor& now, const Tensor& before, double k) {
  return x * 2 * now - before * (2 * k);
}
Tensor next_hermite_he(const Tensor& x, const Tensor& now, const Tensor& before, double k) {
  return x * now - before * k;
}
Tensor next_laguerre(const Tensor& x, const Tensor& now, const Tensor& before, double k) {
  return ((2 * k + 1 - x) * now - before * k) / (k + 1);
}
Tensor next_legendre(const Tensor& x, const Tensor& now, const Tensor& before, double k) {
  return (x * (2 * k + 1) * now - before * k) / (k + 1);
}

Tensor shifted(const Tensor& x) { return detail::as_float(x) * 2 - 1; }

}  // namespace

Tensor entr(const Tensor& x) {
  return computed_wide(x, [](const Tensor& given) {
    const Tensor v = given.detach(), some = v > 0;
    const Tensor edge = Tensor::where(v == 0, detail::number_like(v, 0.0), -INFINITY);
    const Tensor outside = Tensor::where(v == v, edge, v);
    const Tensor value = Tensor::where(some, -(v * log_of(at(some, v))), outside);
    return ruled(value, {given}, kEntropy);
  });
}
Tensor erfcx(const Tensor& x) {
  return computed_wide(
      x, [](const Tensor& v) { return ruled(erfcx_value(v.detach()), {v}, kErfcx); });
}
Tensor ndtr(const Tensor& x) {
  return computed_wide(x, [](const Tensor& v) { return (v * -kRootOfHalf).erfc() * 0.5; });
}
Tensor log_ndtr(const Tensor& x) {
  return computed_wide(
      x, [](const Tensor& v) { return ruled(log_ndtr_value(v.detach()), {v}, kLogNdtr); });
}
Tensor ndtri(const Tensor& p) {
  return computed_wide(
      p, [](const Tensor& v) { return ruled(ndtri_value(v.detach()), {v}, kNdtri); });
}
Tensor xlog1py(const Tensor& x, const Tensor& y) {
  return of_two("xlog1py", x, y, [](const Tensor& a, const Tensor& b) {
    const Tensor nothing = (a == 0) & ((b <= -1) | (b == INFINITY));
    return Tensor::where(nothing, 0.0, a * at(~nothing, b).log1p());
  });
}
Tensor xlog1py(const Tensor& x, Number y) { return xlog1py(x, detail::number_like(x, y)); }
Tensor zeta(const Tensor& x, const Tensor& q) { return of_two("zeta", x, q, zeta_value); }
Tensor spherical_bessel_j0(const Tensor& x) {
  return computed_wide(x, [](const Tensor& v) {
    const Tensor near = v.abs() < 0.5, endless = v.isinf();
    constexpr double kSeries[] = {1,          -1.0 / 6,      1.0 / 120,      -1.0 / 5040,
                                  1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800};
    const Tensor small = Tensor::where(near, v, 0.0), large = Tensor::where(near | endless, 1.0, v);
    const Tensor outer = Tensor::where(endless, 0.0, large.sin() / large);
    return Tensor::where(near, horner(small * small, kSeries), outer);
  });
}

#define TUFF_POLYNOMIAL_OF_DEGREE(function, slope, constant, next) \
  Tensor function(const Tensor& x, int64_t n) {                    \
    return polynomial(#function, x, n, slope, constant, next);     \
  }
TUFF_POLYNOMIAL_OF_DEGREE(chebyshev_polynomial_t, 1, 0, next_chebyshev)
TUFF_POLYNOMIAL_OF_DEGREE(chebyshev_polynomial_u, 2, 0, next_chebyshev)
TUFF_POLYNOMIAL_OF_DEGREE(chebyshev_polynomial_v, 2, -1, next_chebyshev)
TUFF_POLYNOMIAL_OF_DEGREE(chebyshev_polynomial_w, 2, 1, next_chebyshev)
TUFF_POLYNOMIAL_OF_DEGREE(hermite_polynomial_h, 2, 0, next_hermite_h)
TUFF_POLYNOMIAL_OF_DEGREE(hermite_polynomial_he, 1, 0, next_hermite_he)
TUFF_POLYNOMIAL_OF_DEGREE(laguerre_polynomial_l, -1, 1, next_laguerre)
TUFF_POLYNOMIAL_OF_DEGREE(legendre_polynomial_p, 1, 0, next_legendre)
#undef TUFF_POLYNOMIAL_OF_DEGREE

Tensor shifted_chebyshev_polynomial_t(const Tensor& x, int64_t n) {
  return chebyshev_polynomial_t(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_u(const Tensor& x, int64_t n) {
  return chebyshev_polynomial_u(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_v(const Tensor& x, int64_t n) {
  return chebyshev_polynomial_v(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_w(const Tensor& x, int64_t n) {
  return chebyshev_polynomial_w(shifted(x), n);
}

}  // namespace tuff::special

namespace tuff {

namespace {

// Below 0 by reflection (Abramowitz and Stegun, 6.4.7), where sin(pi x) is that of the distance to
// the nearest whole number.
Tensor trigamma_of(const Tensor& x) {
  const Tensor below = x <= 0, v = Tensor::where(below, 1 - x, x);
  const Tensor value = special::zeta(v.full_like(2), v);
  const Tensor sine = (Tensor::where(below, x - x.round(), 0.5) * std::numbers::pi).sin();
  const Tensor ratio = std::numbers::pi / sine;
  return Tensor::where(below, ratio * ratio - value, value);
}

}  // namespace

Tensor TensorMath::polygamma(int64_t n) const {
  if (n < 0) fail<InvalidArgument>("polygamma: the derivative {}", n);
  if (n == 0) return digamma();
  return detail::computed_wide(detail::self(this), [n](const Tensor& x) {
    if (n == 1) return trigamma_of(x);
    const double factorial = std::tgamma(double(n) + 1) * (n % 2 == 0 ? -1 : 1);
    return special::zeta(x.full_like(n + 1), x) * factorial;
  });
}

Tensor TensorMath::mvlgamma(int64_t p) const {
  if (p < 1) fail<InvalidArgument>("mvlgamma: {} dimensions", p);
  return detail::computed_wide(detail::self(this), [p](const Tensor& x) {
    const int64_t axis = x.dim();
    const Tensor halves = detail::counter(p, axis, axis + 1, x.device()).cast(x.dtype()) * 0.5;
    const Tensor sum = (x.unsqueeze(axis) - halves).lgamma().sum({axis});
    return sum + double(p) * (double(p) - 1) / 4 * std::log(std::numbers::pi);
  });
}

}  // namespace tuff
