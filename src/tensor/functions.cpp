// Functions of real numbers, composed of exp2, log2, sin, sqrt and arithmetic. Coefficients come
// from scripts/fit-polynomials.py.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "ir/variants.h"
#include "tensor/closed_form.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::as_float;
using detail::computed_wide;
using detail::derive;
using detail::erf_small;
using detail::gradients_of_sources;
using detail::horner;
using detail::is_wide;
using detail::number_like;
using detail::tensor_of;
using detail::uop;
using ir::Op;
using ir::UOp;

namespace {

Tensor real(Op op, const Tensor& x) {
  const Tensor v = as_float(x);
  return derive(v, ir::alu(op, {uop(v)}));
}

Tensor exp_of(const Tensor& x) { return derive(x, ir::exponential(uop(x))); }

// With e = exp(-|x|) <= 1 nothing overflows.
Tensor logistic(Tensor (*exponential)(const Tensor&), const Tensor& x) {
  const Tensor e = exponential(-detail::magnitude(x));
  return Tensor::where(x < 0, e, 1.0) / (e + 1);
}

// Gradients are made of the value: what led to it would be taken apart op by op, comparisons and
// polynomials too.
std::vector<UOp> row_of_sigmoid(const UOp& u, const UOp& gradient) {
  const Tensor y = tensor_of(u, u);
  return gradients_of_sources({tensor_of(gradient, u) * (y * (1 - y))});
}
constexpr ir::GradientRule kSigmoid{"sigmoid", row_of_sigmoid};

std::vector<UOp> row_of_tanh(const UOp& u, const UOp& gradient) {
  const Tensor y = tensor_of(u, u);
  return gradients_of_sources({tensor_of(gradient, u) * ((1 - y) * (1 + y))});
}
constexpr ir::GradientRule kTanh{"tanh", row_of_tanh};

Tensor sigmoid_by(Tensor (*exponential)(const Tensor&), const Tensor& x) {
  return detail::ruled(logistic(exponential, x), {x}, kSigmoid);
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

std::vector<UOp> row_of_erf(const UOp& u, const UOp& gradient) {
  const Tensor x = tensor_of(u->src(1), u);
  const Tensor slope = detail::quick_exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi);
  return gradients_of_sources({tensor_of(gradient, u) * slope});
}
constexpr ir::GradientRule kErf{"erf", row_of_erf};

// f(distribution function of the standard normal at x), whose tail f gets as a factor: it is
// multiplied before it is small, since some devices take subnormal numbers for zeros.
template <class F>
Tensor by_distribution(const Tensor& x, F&& f) {
  const Tensor z = x * std::numbers::sqrt2 * 0.5;
  const auto [factor, power] = erfc_tail(z);
  const Tensor half = factor * 0.5;
  return Tensor::where(detail::magnitude(z) <= 1, f(erf_small(z) * 0.5 + 0.5, 1.0),
                       Tensor::where(z < 0, f(half, power), f(1 - half * power, 1.0)));
}

std::vector<UOp> row_of_gelu(const UOp& u, const UOp& gradient) {
  const Tensor x = tensor_of(u->src(1), u);
  const Tensor below = by_distribution(x, [](const Tensor& p, const auto& rest) { return p * rest; });
  const double scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2 * 0.5;
  const Tensor slope = below + x * (detail::quick_exp(x * x * -0.5) * scale);
  return gradients_of_sources({tensor_of(gradient, u) * slope});
}
constexpr ir::GradientRule kGelu{"gelu", row_of_gelu};

Tensor gelu_by_erf(const Tensor& x) {
  const Tensor y =
      by_distribution(x, [&](const Tensor& p, const auto& rest) { return x * p * rest; });
  return detail::ruled(y, {x}, kGelu);
}

std::vector<UOp> row_of_silu(const UOp& u, const UOp& gradient) {
  const Tensor x = tensor_of(u->src(1), u), s = logistic(detail::quick_exp, x);
  return gradients_of_sources({tensor_of(gradient, u) * (s + tensor_of(u, u) * (1 - s))});
}
constexpr ir::GradientRule kSilu{"silu", row_of_silu};

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
    const Tensor once = logistic(exponential, x), e = exponential(-detail::magnitude(x));
    const Tensor better = (e - e * once) - once;
    return detail::ruled(once + where((x < 0) & (e < 0.5), better, 0.0), {x}, kSigmoid);
  });
}
// Near 0 a polynomial: 2 sigmoid(2x) - 1 would leave the rounding of 1.
Tensor Tensor::tanh() const {
  return computed_wide(*this, [](const Tensor& x) {
    const Tensor v = x.clamp(-0.625, 0.625);
    const Tensor small = v * horner(v * v, detail::kTanhF32, detail::kTanhF64);
    const Tensor y = where(detail::magnitude(x) <= 0.625, small,
                           2.0 * logistic(detail::quick_exp, 2.0 * x) - 1.0);
    return detail::ruled(y, {x}, kTanh);
  });
}
Tensor Tensor::erf() const {
  return computed_wide(*this, [](const Tensor& x) {
    const auto [factor, power] = erfc_tail(x);
    const Tensor tail = factor * power;
    const Tensor y =
        where(detail::magnitude(x) <= 1, erf_small(x), where(x < 0, tail - 1, 1 - tail));
    return detail::ruled(y, {x}, kErf);
  });
}
Tensor Tensor::gelu(std::string_view approximate) const {
  if (approximate != "none" && approximate != "tanh")
    fail<InvalidArgument>("gelu: approximate is '{}', neither 'none' nor 'tanh'", approximate);
  if (approximate == "none") return computed_wide(*this, gelu_by_erf);
  return computed_wide(*this, [](const Tensor& x) {
    return x * sigmoid_by(detail::quick_exp, 1.5957691216057307 * x * (1.0 + 0.044715 * x * x));
  });
}
Tensor Tensor::silu() const {
  return with_exponential(*this, [](auto exponential, const Tensor& x) {
    // x e^-|x| by e^(-|x|/2) twice: a subnormal e^-|x| would leave few bits of it.
    const Tensor root = exponential(detail::magnitude(x) * -0.5);
    const Tensor y = where(x < 0, x * root * root, x) / (root * root + 1);
    return detail::ruled(y, {x}, kSilu);
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
