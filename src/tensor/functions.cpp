// Functions of real numbers, composed of exp2, log2, sin, sqrt and arithmetic. Coefficients come
// from scripts/fit-polynomials.py.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::as_float;
using detail::computed_wide;
using detail::derive;
using detail::number_like;
using detail::uop;
using graph::Op;

namespace {

#define TUFF_POLYNOMIAL(name, ...) constexpr double name[] = {__VA_ARGS__};
#include "tensor/polynomials.def"
#undef TUFF_POLYNOMIAL

Tensor real(Op op, const Tensor& x) {
  const Tensor v = as_float(x);
  return derive(v, graph::alu(op, {uop(v)}));
}
bool is_wide(const Tensor& x) { return x.dtype() == DType::F64; }

// c[0] + x*(c[1] + x*(...))
Tensor horner(const Tensor& x, std::span<const double> c) {
  Tensor sum = x * c.back() + c[c.size() - 2];
  for (size_t i = c.size() - 2; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

Tensor exp_of(const Tensor& x) { return (x * std::numbers::log2e).exp2(); }

// With e = exp(-|x|) <= 1 nothing overflows: 1/(1 + exp(-x)) alone has a gradient of 0 * inf far
// below 0.
Tensor sigmoid_of(const Tensor& x) {
  const Tensor e = exp_of(-detail::magnitude(x));
  return Tensor::where(x < 0, e, 1.0) * (e + 1).reciprocal();
}

// erf near 0; the branch that is not taken sees an argument that keeps it finite.
Tensor erf_small(const Tensor& x) {
  const Tensor v = x.clamp(-1, 1);
  return v * (is_wide(x) ? horner(v * v, kErfF64) : horner(v * v, kErfF32));
}
// erfc(|x|) from 1 up to where exp(-x^2) is 0: t = 1/(1 + |x|/2) as in Numerical Recipes' erfcc,
// with polynomials of our own.
Tensor erfc_tail(const Tensor& x) {
  const Tensor a = detail::magnitude(x).clamp(1, is_wide(x) ? 28 : 14);
  const Tensor t = (a * 0.5 + 1).reciprocal();
  return t * (is_wide(x) ? horner(t, kErfcF64) : horner(t, kErfcF32)) * exp_of(-(a * a));
}

// The distribution function of the standard normal, with its tail.
Tensor normal_cdf(const Tensor& x) {
  const Tensor z = x * std::numbers::sqrt2 * 0.5, tail = erfc_tail(z) * 0.5;
  return Tensor::where(detail::magnitude(z) <= 1, erf_small(z) * 0.5 + 0.5,
                       Tensor::where(z < 0, tail, 1 - tail));
}

// pi in parts of so few bits that their products with the counts of half turns below are exact.
struct PiParts {
  std::vector<double> parts;
  double limit;  // arguments up to here may be reduced with them
};
const PiParts& pi_parts(bool wide) {
  static const PiParts kF32{{201.0 / 64, 0x3F6p-20, 0x2A2p-30, 0x1.0b4611a626331p-33}, 25000};
  static const PiParts kF64{{0x1.921fb544p+1, 0x1.0b4611a6p-33, 0x1.3198a2e037073p-68}, 3e6};
  return wide ? kF64 : kF32;
}

// cos((n + 1/2) pi + r) = -(-1)^n sin(r). Far out, where the parts no longer serve, 1 - 2
// sin^2(x/2) leaves the reduction to the device's sine.
Tensor cos_of(const Tensor& x) {
  const PiParts& pi = pi_parts(is_wide(x));
  const Tensor n = (x * std::numbers::inv_pi).floor(), turns = n + 0.5;
  Tensor rest = x;
  for (const double part : pi.parts) rest = rest - turns * part;
  const Tensor near = detail::magnitude(x) < pi.limit;
  const Tensor y = Tensor::where(near, rest, x * 0.5).sin();
  const Tensor odd = (n * 0.5).floor() * 2 != n;
  return Tensor::where(near, Tensor::where(odd, y, -y), 1 - 2 * (y * y));
}

}  // namespace

namespace detail {

Tensor magnitude(const Tensor& x) { return Tensor::where(x < 0, -x, x); }

// 2 atanh(s) with s = e/(2 + e) <= 1/3: a series in s^2 that needs no small difference.
Tensor log1p_of_unit(const Tensor& e) {
  const Tensor s = e / (e + 2);
  std::vector<double> series;
  for (int k = 0; k <= (is_wide(e) ? 17 : 8); k++) series.push_back(2.0 / (2 * k + 1));
  return s * horner(s * s, series);
}

}  // namespace detail

Tensor Tensor::sqrt() const { return real(Op::Sqrt, *this); }
Tensor Tensor::rsqrt() const {
  return computed_wide(*this, [](const Tensor& x) { return x.sqrt().reciprocal(); });
}
Tensor Tensor::exp2() const { return real(Op::Exp2, *this); }
Tensor Tensor::log2() const { return real(Op::Log2, *this); }
Tensor Tensor::exp() const { return computed_wide(*this, exp_of); }
Tensor Tensor::log() const {
  return computed_wide(*this, [](const Tensor& x) { return x.log2() * std::numbers::ln2; });
}
Tensor Tensor::sin() const { return real(Op::Sin, *this); }
Tensor Tensor::cos() const { return computed_wide(*this, cos_of); }
Tensor Tensor::tan() const {
  return computed_wide(*this, [](const Tensor& x) { return x.sin() / cos_of(x); });
}
Tensor Tensor::sigmoid() const { return computed_wide(*this, sigmoid_of); }
// Near 0 a polynomial: 2 sigmoid(2x) - 1 would leave the rounding of 1.
Tensor Tensor::tanh() const {
  return computed_wide(*this, [](const Tensor& x) {
    const Tensor v = x.clamp(-0.625, 0.625);
    const Tensor small = v * (is_wide(x) ? horner(v * v, kTanhF64) : horner(v * v, kTanhF32));
    return where(detail::magnitude(x) <= 0.625, small, 2.0 * sigmoid_of(2.0 * x) - 1.0);
  });
}
Tensor Tensor::erf() const {
  return computed_wide(*this, [](const Tensor& x) {
    const Tensor tail = erfc_tail(x);
    return where(detail::magnitude(x) <= 1, erf_small(x), where(x < 0, tail - 1, 1 - tail));
  });
}
Tensor Tensor::gelu(std::string_view approximate) const {
  if (approximate != "none" && approximate != "tanh")
    fail<InvalidArgument>("gelu: approximate is '{}', neither 'none' nor 'tanh'", approximate);
  if (approximate == "none")
    return computed_wide(*this, [](const Tensor& x) { return x * normal_cdf(x); });
  return computed_wide(*this, [](const Tensor& x) {
    return x * sigmoid_of(1.5957691216057307 * x * (1.0 + 0.044715 * x * x));
  });
}
Tensor Tensor::silu() const {
  return computed_wide(*this, [](const Tensor& x) { return x * sigmoid_of(x); });
}
Tensor Tensor::softplus(double beta, double threshold) const {
  if (!(beta != 0)) fail<InvalidArgument>("softplus: beta is {}", beta);
  return computed_wide(*this, [&](const Tensor& x) {
    const Tensor v = x * beta;
    const Tensor soft = where(v < 0, 0.0, v) + detail::log1p_of_unit(exp_of(-detail::magnitude(v)));
    return where(v > threshold, x, soft * (1 / beta));
  });
}

namespace {

Tensor multiplied(const Tensor& x, int64_t exponent) {
  // 1 that still depends on x, of which backward() has to find it.
  if (exponent == 0) return Tensor::where(x == x, 1, 1).cast(x.dtype());
  Tensor out, base = x;
  for (int64_t n = exponent; n > 0; n >>= 1) {
    if (n & 1) out = out.defined() ? out * base : base;
    if (n > 1) base = base * base;
  }
  return out;
}

// Bit by bit of the exponent; negative exponents leave something of 1 and -1 alone.
Tensor integer_pow(const Tensor& x, const Tensor& y) {
  const DType t = x.dtype();
  const bool with_sign = is_signed(t);
  Tensor out = x.full_like(1), base = x;
  for (int bit = 0; bit < row(t).storage_bits - (with_sign ? 1 : 0); bit++) {
    const Tensor set = ((y >> bit) & 1) != 0;
    out = Tensor::where(set, out * base, out);
    base = base * base;
  }
  if (!with_sign) return out;
  const Tensor parity = Tensor::where((y & 1) != 0, x, x * x);
  const Tensor unit = (x == 1) | (x == -1);
  return Tensor::where(y < 0, Tensor::where(unit, parity, 0), out);
}

// x^y at x = +-0, of x's sign taken off. Roots and poles keep PyTorch's infinite gradients; what is
// not chosen sees a 1, so that it adds no NaN.
Tensor zero_pow(const Tensor& zero, const Tensor& a, const Tensor& y) {
  auto at = [&](const Tensor& where_used) { return Tensor::where(where_used, a, 1.0); };
  const Tensor rooted = zero & (y > 0) & (y < 1), pole = zero & (y < 0);
  Tensor out = Tensor::where(y > 1, 0.0, y);  // NaN stays
  out = Tensor::where(rooted, at(rooted).sqrt(), out);
  out = Tensor::where(y == 1, a, out);
  out = Tensor::where(y == 0, 1.0, out);
  return Tensor::where(pole, at(pole).reciprocal(), out);
}

// C's pow (ISO C, F.10.4.4) of floats in one dtype.
Tensor float_pow(const Tensor& x, const Tensor& y) {
  const Tensor a = detail::magnitude(x), zero = a == 0, finite = a < INFINITY;
  Tensor out = (Tensor::where(zero, 1.0, a).log2() * y).exp2();
  out = Tensor::where(zero, zero_pow(zero, a, y), out);
  const Tensor one = ((a == 1) & y.isinf()) | ((x == 1) & y.isnan()) | ((y == 0) & ~finite);
  out = Tensor::where(one, 1.0, out);
  const Tensor whole = y == y.trunc(), half = y * 0.5;
  const Tensor odd = whole & (half != half.trunc());
  const Tensor negative = x.bitcast(is_wide(x) ? DType::I64 : DType::I32) < 0;
  out = Tensor::where(negative & odd, -out, out);
  return Tensor::where((x < 0) & finite & ~whole, NAN, out);
}

}  // namespace

Tensor Tensor::pow(const Tensor& exponent) const {
  auto [x, y] = detail::unify("pow", *this, exponent);
  if (x.dtype() == DType::Bool) fail<InvalidArgument>("pow: not defined on two bool tensors");
  if (is_int(x.dtype())) return integer_pow(x, y);
  const DType t = detail::compute_dtype(x.dtype());
  return float_pow(x.cast(t), y.cast(t)).cast(x.dtype());
}
Tensor Tensor::pow(Number base, const Tensor& exponent) {
  return number_like(exponent, base).pow(exponent);
}

Tensor Tensor::pow(Number exponent) const {
  const Tensor x = cast(strengthen(promote(dtype(), exponent.dtype())));
  if (is_int(x.dtype())) {
    if (exponent.int_value() < 0)
      fail<InvalidArgument>("pow: integers to the power {}: cast() them to a float first",
                            exponent.int_value());
    return multiplied(x, exponent.int_value());
  }
  return computed_wide(x, [&](const Tensor& v) {
    const double e = exponent.value();
    if (e == std::floor(e) && std::abs(e) <= 64) {
      const Tensor product = multiplied(v, int64_t(std::abs(e)));
      return e < 0 ? product.reciprocal() : product;
    }
    if (e == 0.5) return v.sqrt();
    return float_pow(v, number_like(v, e));
  });
}

}  // namespace tuff
