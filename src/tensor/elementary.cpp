// Elementary functions of real numbers: inverse and hyperbolic ones, logarithms and exponentials
// near 0, error functions. Each has a polynomial near 0, where others would lose digits, and what
// is not taken of several forms sees an argument that keeps it and its gradient finite.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/polynomials.h"
#include "tensor/two_words.h"

namespace tuff {

using detail::at;
using detail::computed_wide;
using detail::exact_exp;
using detail::horner;
using detail::is_wide;
using detail::log_of;
using detail::magnitude;
using detail::number_like;
using detail::self;
using detail::totalled;

namespace {

// The sign bit, also of zeros and NaN.
Tensor is_negative(const Tensor& x) {
  return x.bitcast(is_wide(x) ? DType::I64 : DType::I32) < 0;
}
Tensor with_sign(const Tensor& negative, const Tensor& x) { return Tensor::where(negative, -x, x); }

// hi + lo is a multiple of pi/2 to more digits than the type has.
struct Angle {
  Tensor hi, lo;
};
Angle angle_like(const Tensor& x, int quarters) {
  const detail::TwoWords w =
      detail::two_words_like(x, quarters * (std::numbers::pi_v<long double> / 2));
  return {w.hi, w.lo};
}
Tensor minus(const Angle& a, const Tensor& x) { return a.hi - (x - a.lo); }

// atan of 0..1.
Tensor atan_of_unit(const Tensor& x) {
  return x * horner(x * x, detail::kAtanF32, detail::kAtanF64);
}

Tensor atan_of(const Tensor& x) {
  const Tensor a = magnitude(x), steep = a > 1;
  const Tensor p = atan_of_unit(Tensor::where(steep, at(steep, a).reciprocal(), a));
  return with_sign(x < 0, Tensor::where(steep, minus(angle_like(x, 1), p), p));
}

Tensor atan2_of(const Tensor& y, const Tensor& x) {
  const Tensor left = is_negative(x), below = is_negative(y);
  const Tensor ay = with_sign(below, y), ax = with_sign(left, x), steep = ay > ax;
  const Tensor less = Tensor::where(steep, ax, ay), more = Tensor::where(steep, ay, ax);
  const Tensor origin = (x == 0) & (y == 0), far = (ax == INFINITY) & (ay == INFINITY);
  const Tensor quotient = at(~far, less) / Tensor::where(origin | far, 1.0, more);
  const Tensor p = atan_of_unit(Tensor::where(origin, 0.0, quotient));
  const Angle right = angle_like(x, 1), straight = angle_like(x, 2);
  const Tensor upright = Tensor::where(left, right.hi + (p + right.lo), minus(right, p));
  const Tensor flat = Tensor::where(left, minus(straight, p), p);
  return with_sign(below, Tensor::where(steep, upright, flat));
}

// asin of the root of s, up to s = 1/4, over that root.
Tensor asin_over_root(const Tensor& s) { return horner(s, detail::kAsinF32, detail::kAsinF64); }

// Above 1/2 by asin(x) = pi/2 - 2 asin(root of (1 - x)/2), where 1 - x is exact.
struct HalfAngle {
  Tensor beyond;  // is |x| above 1/2?
  Tensor angle;   // asin(|x|) if not, else that of the root
};
HalfAngle half_angle(const Tensor& x) {
  const Tensor a = magnitude(x), beyond = a > 0.5, s = (1 - a) * 0.5;
  const Tensor root = Tensor::where(beyond, at(beyond, s).sqrt(), a);
  return {beyond, root * asin_over_root(Tensor::where(beyond, s, a * a))};
}

Tensor asin_of(const Tensor& x) {
  const auto [beyond, angle] = half_angle(x);
  const Tensor steep = minus(angle_like(x, 1), angle * 2);
  return with_sign(x < 0, Tensor::where(beyond, steep, angle));
}

Tensor acos_of(const Tensor& x) {
  const auto [beyond, angle] = half_angle(x);
  const Tensor twice = angle * 2, left = x < 0;
  const Tensor outer = Tensor::where(left, minus(angle_like(x, 2), twice), twice);
  return Tensor::where(beyond, outer, minus(angle_like(x, 1), with_sign(left, angle)));
}

// e^a / 2 of a >= 0 without overflow where that fits: a - 1 is exact from 64 on.
Tensor half_exp(const Tensor& a) {
  const Tensor far = a > (is_wide(a) ? 700 : 80);
  return exact_exp(Tensor::where(far, a - 1, a)) *
         Tensor::where(far, number_like(a, std::numbers::e / 2), 0.5);
}
// e^-a / 2 of half_exp(a), and 0 where nothing is left of it beside that.
Tensor half_exp_of_negative(const Tensor& a, const Tensor& half) {
  const Tensor near = a < (is_wide(a) ? 20 : 10);
  return Tensor::where(near, 0.25 / at(near, half), 0.0);
}

// Of x in -1..1.
Tensor sinh_small(const Tensor& x) {
  return x * horner(x * x, detail::kSinhF32, detail::kSinhF64);
}
Tensor sinh_of(const Tensor& x) {
  const Tensor a = magnitude(x), half = half_exp(a);
  const Tensor large = half - half_exp_of_negative(a, half);
  return Tensor::where(a < 1, sinh_small(x.clamp(-1, 1)), with_sign(x < 0, large));
}
// 1 + 2 sinh(x/2)^2 near 0, for the sake of the gradient.
Tensor cosh_of(const Tensor& x) {
  const Tensor a = magnitude(x), half = half_exp(a), root = sinh_small(x.clamp(-1, 1) * 0.5);
  return Tensor::where(a < 1, root * root * 2 + 1, half + half_exp_of_negative(a, half));
}

// asinh of the root of s, up to s = 1, over that root.
Tensor asinh_over_root(const Tensor& s) { return horner(s, detail::kAsinhF32, detail::kAsinhF64); }
// log(a + root) where the root is that of a^2 + or - 1, which makes no difference to a far out.
Tensor log_of_sum(const Tensor& a, double sign) {
  const Tensor far = a > (is_wide(a) ? 0x1p30 : 0x1p14), near = Tensor::where(far, 2.0, a);
  const Tensor sum = near + (near * near + sign).sqrt();
  const Tensor twice = Tensor::where(far, number_like(a, std::numbers::ln2), 0.0);
  return log_of(Tensor::where(far, a, sum)) + twice;
}

Tensor asinh_of(const Tensor& x) {
  const Tensor a = magnitude(x), v = x.clamp(-1, 1);
  const Tensor large = log_of_sum(Tensor::where(a <= 1, 1.0, a), 1);
  return Tensor::where(a <= 1, v * asinh_over_root(v * v), with_sign(x < 0, large));
}
// By 2 asinh(root of (x - 1)/2) up to 3.
Tensor acosh_of(const Tensor& x) {
  const Tensor close = x <= 3, s = (Tensor::where(close, x, 3.0) - 1) * 0.5;
  return Tensor::where(close, s.sqrt() * 2 * asinh_over_root(s),
                       log_of_sum(Tensor::where(close, 3.0, x), -1));
}
// (log(1 + a) - log(1 - a))/2 above 1/2: 1 - a is exact there.
Tensor atanh_of(const Tensor& x) {
  const Tensor a = magnitude(x), v = x.clamp(-0.5, 0.5), outer = Tensor::where(a <= 0.5, 0.5, a);
  const Tensor small = v * horner(v * v, detail::kAtanhF32, detail::kAtanhF64);
  const Tensor large = (log_of(1 + outer) - log_of(1 - outer)) * 0.5;
  return Tensor::where(a <= 0.5, small, with_sign(x < 0, large));
}

Tensor log1p_of(const Tensor& x) {
  const Tensor v = x.clamp(-0.5, 1), close = (x >= -0.5) & (x <= 1);
  return Tensor::where(close, detail::log1p_of_unit(v), log_of(at(~close, x + 1)));
}
Tensor expm1_of(const Tensor& x) {
  const Tensor v = x.clamp(-1, 1), close = magnitude(x) <= 1;
  const Tensor small = v * horner(v, detail::kExpm1F32, detail::kExpm1F64);
  return Tensor::where(close, small, exact_exp(x) - 1);
}

// kAbove exp(-a^2), a^2 not rounded: by the upper half of a, whose square is exact. Of the least
// results the part that is added would be subnormal, which some devices take for 0.
constexpr double kAbove = 1 << 24;
Tensor exp_of_negative_square(const Tensor& a) {
  const Tensor hi = detail::upper_half(a), rest = (hi - a) * (hi + a);
  constexpr double kSeries[] = {1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120};  // of (e^x - 1)/x
  const Tensor more = rest * horner(rest, kSeries);
  const Tensor square = exact_exp(-(hi * hi)) * kAbove;
  return square + square * more;
}
// erfc from 0.4 on, as exp(a^2) erfc(a) times exp(-a^2).
Tensor wide_erfc_tail(const Tensor& x) {
  const Tensor a = magnitude(x).clamp(0.4, is_wide(x) ? 28 : 14);
  return detail::scaled_erfc_tail(a) * exp_of_negative_square(a) * (1 / kAbove);
}
Tensor erfc_of(const Tensor& x) {
  const Tensor tail = wide_erfc_tail(x);
  return Tensor::where((x > -1) & (x < 0.4), 1 - detail::erf_small(x),
                       Tensor::where(x < 0, 2 - tail, tail));
}

// Above 3/4 of r with r^2 = -log(1 - |x|), where 1 - |x| is exact: nearly r itself.
Tensor erfinv_of(const Tensor& x) {
  const Tensor a = magnitude(x), v = x.clamp(-0.75, 0.75), end = a == 1;
  const Tensor small = v * horner(v * v, detail::kErfinvF32, detail::kErfinvF64);
  const Tensor rest = Tensor::where((a <= 0.75) | end, 0.25, 1 - a);
  const Tensor r = (-log_of(rest)).sqrt(), t = (r + 1).reciprocal();
  const Tensor large = r * horner(t - 0.3125, detail::kErfinvTailF32, detail::kErfinvTailF64);
  return Tensor::where(end, at(end, x) * INFINITY,
                       Tensor::where(a <= 0.75, small, with_sign(x < 0, large)));
}

// Around 1/2 by 2 atanh(2x - 1), where 2x - 1 is exact.
Tensor logit_of(const Tensor& x) {
  const Tensor middle = (x >= 0.25) & (x <= 0.75), v = Tensor::where(middle, x * 2 - 1, 0.0);
  const Tensor small = v * 2 * horner(v * v, detail::kAtanhF32, detail::kAtanhF64);
  const Tensor outer = Tensor::where(middle, 0.25, x);
  return Tensor::where(middle, small, log_of(outer) - log_of(1 - outer));
}

Tensor hypot_of(const Tensor& x, const Tensor& y) {
  const Tensor ax = magnitude(x), ay = magnitude(y), steep = ay > ax;
  const Tensor less = Tensor::where(steep, ax, ay), more = Tensor::where(steep, ay, ax);
  const Tensor origin = (x == 0) & (y == 0), far = (ax == INFINITY) | (ay == INFINITY);
  const Tensor longest = Tensor::where(origin | far, 1.0, more);
  const Tensor quotient = Tensor::where(origin | far, 0.0, less) / longest;
  const Tensor length = longest * (quotient * quotient + 1).sqrt();
  return Tensor::where(far, INFINITY, Tensor::where(origin, 0.0, length));
}

Tensor logaddexp2_of(const Tensor& x, const Tensor& y) {
  const Tensor steep = x < y, unbounded = (x == y) & (magnitude(x) == INFINITY);
  const Tensor gap = Tensor::where(unbounded, 0.0, Tensor::where(steep, x - y, y - x));
  const Tensor more = detail::log1p_of_unit(gap.exp2()) * std::numbers::log2e;
  return Tensor::where(unbounded, x, Tensor::where(steep, y, x) + more);
}

Tensor logaddexp_of(const Tensor& x, const Tensor& y) {
  const Tensor steep = x < y, unbounded = (x == y) & (magnitude(x) == INFINITY);
  const Tensor gap = Tensor::where(unbounded, 0.0, Tensor::where(steep, x - y, y - x));
  const Tensor more = detail::log1p_of_unit(exact_exp(gap));
  return Tensor::where(unbounded, x, Tensor::where(steep, y, x) + more);
}

// Both in the dtype that they are computed in, the result in that of the two.
template <class F>
Tensor of_both(const char* what, const Tensor& a, const Tensor& b, F&& f) {
  const auto [x, y] = detail::unify(what, a, b);
  const Tensor second = y.cast(detail::compute_dtype(y.dtype()));
  return computed_wide(x, [&](const Tensor& first) { return f(first, second); });
}

}  // namespace

// As t = 1/(1 + a/2) times a polynomial of t.
Tensor detail::scaled_erfc_tail(const Tensor& x) {
  const Tensor t = (x * 0.5 + 1).reciprocal();
  return t * horner(t - 0.4375, detail::kWideErfcF32, detail::kWideErfcF64);
}

Tensor TensorMath::asin() const { return totalled(self(this), asin_of); }
Tensor TensorMath::acos() const { return totalled(self(this), acos_of); }
Tensor TensorMath::atan() const { return computed_wide(self(this), atan_of); }
Tensor TensorMath::sinh() const { return totalled(self(this), sinh_of); }
Tensor TensorMath::cosh() const { return totalled(self(this), cosh_of); }
Tensor TensorMath::asinh() const { return computed_wide(self(this), asinh_of); }
Tensor TensorMath::acosh() const { return computed_wide(self(this), acosh_of); }
Tensor TensorMath::atanh() const { return computed_wide(self(this), atanh_of); }
Tensor TensorMath::log1p() const { return totalled(self(this), log1p_of); }
Tensor TensorMath::expm1() const { return totalled(self(this), expm1_of); }
Tensor TensorMath::erfc() const { return computed_wide(self(this), erfc_of); }
Tensor TensorMath::erfinv() const { return totalled(self(this), erfinv_of); }
Tensor TensorMath::log10() const {
  return totalled(self(this), [](const Tensor& x) {
    return x.log2() * (std::numbers::ln2 / std::numbers::ln10);
  });
}
Tensor TensorMath::logit(std::optional<double> eps) const {
  return computed_wide(self(this), [&](const Tensor& x) {
    return logit_of(eps ? x.clamp(*eps, 1 - *eps) : x);
  });
}
Tensor TensorMath::rad2deg() const {
  return computed_wide(self(this),
                       [](const Tensor& x) { return x * (180 / std::numbers::pi); });
}
Tensor TensorMath::deg2rad() const {
  return computed_wide(self(this),
                       [](const Tensor& x) { return x * (std::numbers::pi / 180); });
}
Tensor TensorMath::sinc() const {
  return computed_wide(self(this), [](const Tensor& x) {
    const Tensor off = x != 0, z = at(off, x * std::numbers::pi);
    return Tensor::where(off, z.sin() / z, 1.0);
  });
}

Tensor TensorMath::atan2(const Tensor& x) const {
  return of_both("atan2", self(this), x, atan2_of);
}
Tensor TensorMath::hypot(const Tensor& other) const {
  return of_both("hypot", self(this), other, hypot_of);
}
Tensor TensorMath::logaddexp(const Tensor& other) const {
  return of_both("logaddexp", self(this), other, logaddexp_of);
}
Tensor TensorMath::logaddexp2(const Tensor& other) const {
  return of_both("logaddexp2", self(this), other, logaddexp2_of);
}
// Where x is 0 the gradient is log(y), as long as that is finite.
Tensor TensorMath::xlogy(const Tensor& other) const {
  return of_both("xlogy", self(this), other, [](const Tensor& x, const Tensor& y) {
    const Tensor nothing = (x == 0) & ((y <= 0) | (y == INFINITY));
    return Tensor::where(nothing, 0.0, x * log_of(at(~nothing, y)));
  });
}
Tensor TensorMath::xlogy(Number y) const { return xlogy(number_like(self(this), y)); }

}  // namespace tuff
