// Functions of real numbers, composed of exp2, log2, sin, sqrt and arithmetic. Coefficients come
// from scripts/fit-polynomials.py.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "ir/variants.h"
#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::as_float;
using detail::computed_wide;
using detail::derive;
using detail::erf_small;
using detail::horner;
using detail::is_wide;
using detail::number_like;
using detail::uop;
using ir::Op;

namespace {

Tensor real(Op op, const Tensor& x) {
  const Tensor v = as_float(x);
  return derive(v, ir::alu(op, {uop(v)}));
}

Tensor exp_of(const Tensor& x) { return derive(x, ir::exponential(uop(x))); }

// With e = exp(-|x|) <= 1 nothing overflows: 1/(1 + exp(-x)) alone has a gradient of 0 * inf far
// below 0.
Tensor sigmoid_by(Tensor (*exponential)(const Tensor&), const Tensor& x) {
  const Tensor e = exponential(-detail::magnitude(x));
  return Tensor::where(x < 0, e, 1.0) / (e + 1);
}

// f(exponential, x) with the exponential that a result of x's dtype needs: what is rounded to 16
// bits takes the quick one.
template <class F>
Tensor with_exponential(const Tensor& x, F&& f) {
  const bool narrow = is_float(x.dtype()) && size_bytes(x.dtype()) < 4;
  return computed_wide(x, [&](const Tensor& v) { return f(narrow ? detail::quick_exp : exp_of, v); });
}

// erfc(|x|) as two factors, from 1 up to where exp(-x^2), the second one, is 0: t = 1/(1 + |x|/2)
// as in Numerical Recipes' erfcc, with polynomials of our own.
std::pair<Tensor, Tensor> erfc_tail(const Tensor& x) {
  const Tensor a = detail::magnitude(x).clamp(1, is_wide(x) ? 28 : 14);
  const Tensor t = (a * 0.5 + 1).reciprocal();
  return {t * horner(t, detail::kErfcF32, detail::kErfcF64), detail::quick_exp(-(a * a))};
}

// x times the distribution function of the standard normal. Its tail is multiplied with x before it
// is small: some devices take subnormal numbers for zeros.
Tensor gelu_by_erf(const Tensor& x) {
  const Tensor z = x * std::numbers::sqrt2 * 0.5;
  const auto [factor, power] = erfc_tail(z);
  const Tensor half = factor * 0.5;
  return Tensor::where(detail::magnitude(z) <= 1, x * (erf_small(z) * 0.5 + 0.5),
                       Tensor::where(z < 0, x * half * power, x * (1 - half * power)));
}


// As its own op, whose reduction knows which quarter turn it is in: of the sine of x + pi/2 a sum
// that is rounded would leave nothing far out.
Tensor cos_of(const Tensor& x) { return derive(x, ir::sine(uop(x), 1)); }

}  // namespace

namespace detail {

Tensor horner(const Tensor& x, std::span<const double> c) {
  Tensor sum = x * c.back() + c[c.size() - 2];
  for (size_t i = c.size() - 2; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// The branch that is not taken sees an argument that keeps it finite.
Tensor erf_small(const Tensor& x) {
  const Tensor v = x.clamp(-1, 1);
  return v * horner(v * v, kErfF32, kErfF64);
}

Tensor exact_exp(const Tensor& x) { return exp_of(x); }

Tensor quick_exp(const Tensor& x) {
  return is_wide(x) ? exp_of(x) : (x * std::numbers::log2e).exp2();
}

Tensor magnitude(const Tensor& x) { return Tensor::where(x < 0, -x, x); }

// 2 atanh(s) with s = e/(2 + e) <= 1/3: a series in s^2 that needs no small difference. By 2s,
// which is normal where the result is: some devices take subnormal numbers for zeros.
Tensor log1p_of_unit(const Tensor& e) {
  const Tensor twice = e / (e * 0.5 + 1);
  std::vector<double> series;
  for (int k = 0; k <= (is_wide(e) ? 17 : 8); k++) series.push_back(1.0 / (2 * k + 1));
  return twice * horner(twice * twice * 0.25, series);
}

}  // namespace detail

Tensor Tensor::sqrt() const { return real(Op::Sqrt, *this); }
Tensor Tensor::rsqrt() const {
  return detail::totalled(*this, [](const Tensor& x) { return x.sqrt().reciprocal(); });
}
Tensor Tensor::exp2() const { return real(Op::Exp2, *this); }
Tensor Tensor::log2() const { return real(Op::Log2, detail::widened(*this)); }
Tensor Tensor::exp() const {
  return with_exponential(detail::widened(*this),
                          [](auto exponential, const Tensor& x) { return exponential(x); });
}
Tensor Tensor::log() const {
  return detail::totalled(*this, [](const Tensor& x) { return x.log2() * std::numbers::ln2; });
}
Tensor Tensor::sin() const { return real(Op::Sin, *this); }
Tensor Tensor::cos() const { return cos_of(as_float(*this)); }
Tensor Tensor::tan() const {
  return detail::totalled(*this, [](const Tensor& x) { return x.sin() / cos_of(x); });
}
// Where e is below 1/2, e/(1 + e) again as e - e (e/(1 + e)): the sum's rounding counts little
// there.
Tensor Tensor::sigmoid() const {
  if (size_bytes(dtype()) < 4) return with_exponential(*this, sigmoid_by);
  return with_exponential(*this, [](auto exponential, const Tensor& x) {
    const Tensor once = sigmoid_by(exponential, x), e = exponential(-detail::magnitude(x));
    const Tensor better = (e - e * once) - once;
    return once + where((x < 0) & (e < 0.5), better, 0.0).detach();
  });
}
// Near 0 a polynomial: 2 sigmoid(2x) - 1 would leave the rounding of 1.
Tensor Tensor::tanh() const {
  return computed_wide(*this, [](const Tensor& x) {
    const Tensor v = x.clamp(-0.625, 0.625);
    const Tensor small = v * horner(v * v, detail::kTanhF32, detail::kTanhF64);
    return where(detail::magnitude(x) <= 0.625, small, 2.0 * sigmoid_by(detail::quick_exp, 2.0 * x) - 1.0);
  });
}
Tensor Tensor::erf() const {
  return computed_wide(*this, [](const Tensor& x) {
    const auto [factor, power] = erfc_tail(x);
    const Tensor tail = factor * power;
    return where(detail::magnitude(x) <= 1, erf_small(x), where(x < 0, tail - 1, 1 - tail));
  });
}
Tensor Tensor::gelu(std::string_view approximate) const {
  if (approximate != "none" && approximate != "tanh")
    fail<InvalidArgument>("gelu: approximate is '{}', neither 'none' nor 'tanh'", approximate);
  if (approximate == "none") return computed_wide(*this, gelu_by_erf);
  // Not as silu() is: its gradient would be a kernel more in every transformer's layer.
  return computed_wide(*this, [](const Tensor& x) {
    return x * sigmoid_by(detail::quick_exp, 1.5957691216057307 * x * (1.0 + 0.044715 * x * x));
  });
}
Tensor Tensor::silu() const {
  return with_exponential(*this, [](auto exponential, const Tensor& x) {
    // x e^-|x| by e^(-|x|/2) twice: a subnormal e^-|x| would leave few bits of it.
    const Tensor root = exponential(detail::magnitude(x) * -0.5);
    return where(x < 0, x * root * root, x) / (root * root + 1);
  });
}
Tensor Tensor::softplus(double beta, double threshold) const {
  if (!(beta != 0)) fail<InvalidArgument>("softplus: beta is {}", beta);
  return with_exponential(detail::widened(*this), [&](auto exponential, const Tensor& x) {
    const Tensor v = x * beta, e = exponential(-detail::magnitude(v));
    const Tensor soft = where(v < 0, 0.0, v) + detail::log1p_of_unit(e);
    return where(v > threshold, x, soft * (1 / beta));
  });
}

}  // namespace tuff
