// pow: by multiplication, bit by bit of an integer, or through a logarithm and an exponential of
// two words each.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "ir/variants.h"
#include "tensor/impl.h"
#include "tensor/two_words.h"

namespace tuff {

using detail::computed_wide;
using detail::derive;
using detail::number_like;
using detail::ordered_sum;
using detail::TwoWords;
using detail::uop;
using ir::Op;

namespace {

bool is_wide(const Tensor& x) { return x.dtype() == DType::F64; }

// 1 that still depends on x, of which backward() has to find it; its gradient is 0.
Tensor one_of(const Tensor& x) {
  if (!is_float(x.dtype())) return Tensor::where(x == x, 1, 1).cast(x.dtype());
  return Tensor::where(x == x, 1, Tensor::where(x == x, x, 1)).cast(x.dtype());
}

Tensor multiplied(const Tensor& x, int64_t exponent) {
  if (exponent == 0) return one_of(x);
  Tensor out, base = x;
  for (int64_t n = exponent; n > 0; n >>= 1) {
    if (n & 1) out = out.defined() ? out * base : base;
    if (n > 1) base = base * base;
  }
  return out;
}

// x^-n: by halves, as x^n may leave the range of which 1/x^n is still inside.
Tensor divided(const Tensor& x, int64_t n) {
  const Tensor first = multiplied(x, (n + 1) / 2).reciprocal();
  return n == 1 ? first : first / multiplied(x, n / 2);
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

// ---- positive finite numbers to finite powers

struct Format {
  DType bits;
  int mantissa, bias;
};
Format format_of(const Tensor& x) {
  return is_wide(x) ? Format{DType::I64, 52, 1023} : Format{DType::I32, 23, 127};
}
// Shifts by a number inside the width, which need no bounds.
Tensor shifted(Op op, const Tensor& x, int64_t count) {
  return derive(x, ir::alu(op, {uop(x), ir::constant(Scalar::of_int(x.dtype(), count))}));
}

// 1 + s2/3 + s2^2/5 + ... - 1 of s2 <= (3 - 2 sqrt 2)^2: the first term, which alone matters to the
// last bits, in two words.
TwoWords atanh_series(const TwoWords& s2) {
  const int terms = is_wide(s2.hi) ? 13 : 6;
  Tensor rest = number_like(s2.hi, 1.0 / (2 * terms + 1));
  for (int k = terms - 1; k >= 2; k--) rest = rest * s2.hi + 1.0 / (2 * k + 1);
  const TwoWords third = detail::two_words_like(s2.hi, 1.0L / 3);
  const TwoWords sum = ordered_sum(third.hi, rest * s2.hi);
  return detail::product(s2, TwoWords{sum.hi, sum.lo + third.lo});
}

// x = 2^e m, m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1).
TwoWords log2_of(const Tensor& x) {
  const Format f = format_of(x);
  const double lift = is_wide(x) ? 128 : 64;
  const Tensor tiny = x < std::exp2(1 - f.bias);
  const Tensor bits = Tensor::where(tiny, x * std::exp2(lift), x).bitcast(f.bits);
  const int64_t sqrt_half = is_wide(x) ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const Tensor k = shifted(Op::Shr, bits - sqrt_half, f.mantissa);
  const Tensor m = (bits - shifted(Op::Shl, k, f.mantissa)).bitcast(x.dtype());
  const Tensor e = k.cast(x.dtype()) - Tensor::where(tiny, lift, 0.0).cast(x.dtype());
  const Tensor above = m - 1.0, below = m + 1.0, below_lo = m - (below - 1.0);
  const Tensor sh = above / below;
  const TwoWords p = detail::product(sh, below);
  const TwoWords s = ordered_sum(sh, (((above - p.hi) - p.lo) - sh * below_lo) / below);
  const TwoWords rest = detail::product(s, atanh_series(detail::product(s, s)));
  const TwoWords half_log = ordered_sum(s.hi, rest.hi);
  const TwoWords log{half_log.hi, half_log.lo + (s.lo + rest.lo)};
  const TwoWords fraction =
      detail::product(log, detail::two_words_like(x, 2 * std::numbers::log2e_v<long double>));
  const TwoWords sum = ordered_sum(e, fraction.hi);
  return ordered_sum(sum.hi, sum.lo + fraction.lo);
}

// 2^(h + l), rounded once but for what is below the half of a last place: exact where 2^(h + l) is.
Tensor exp2_of(const TwoWords& x) {
  const Format f = format_of(x.hi);
  const Tensor n = (x.hi + Tensor::where(x.hi < 0, -0.5, 0.5).cast(x.hi.dtype())).trunc();
  const TwoWords r{x.hi - n, x.lo};
  const TwoWords t =
      detail::product(r, detail::two_words_like(x.hi, std::numbers::ln2_v<long double>));
  // e^t = 1 + t + t^2 (1/2 + t/6 + ...)
  const int terms = is_wide(x.hi) ? 15 : 8;
  double factorial = 1;
  for (int i = 2; i <= terms; i++) factorial *= i;
  Tensor series = number_like(x.hi, 1 / factorial);
  for (int i = terms - 1; i >= 2; i--) series = series * t.hi + 1 / (factorial /= i + 1);
  const TwoWords sum = ordered_sum(number_like(x.hi, 1.0), t.hi);
  const Tensor y = sum.hi + (sum.lo + (t.hi * t.hi * series + (t.lo + t.lo * t.hi)));
  const Tensor whole = n.cast(f.bits), half = shifted(Op::Shr, whole, 1);
  const auto power = [&](const Tensor& e) {
    return shifted(Op::Shl, e + f.bias, f.mantissa).bitcast(x.hi.dtype());
  };
  return y * power(half) * power(whole - half);
}

Tensor limited(const Tensor& x, double bound) {
  return Tensor::where(x < -bound, -bound, Tensor::where(x > bound, bound, x));
}

Tensor positive_value(const Tensor& x, const Tensor& y) {
  // The logarithm of what is not 1 is at least half a last place of 1: beyond these bounds of
  // exponents the power is 0, 1 or infinite.
  const TwoWords product = detail::product(log2_of(x), limited(y, is_wide(x) ? 0x1p66 : 0x1p34));
  const Tensor h = limited(product.hi, is_wide(x) ? 1100 : 160);
  return exp2_of({h, Tensor::where(h == product.hi, product.lo, 0.0)});
}

// The value without gradient times e^(z - z) = 1 with z = y log x, of which gradients of every
// order come.
Tensor positive_pow(const Tensor& x, const Tensor& y) {
  const Tensor value = positive_value(x.detach(), y.detach()).detach();
  if (!is_grad_enabled()) return value;
  const Tensor log = x.log2() * y * std::numbers::ln2;
  const Tensor z = Tensor::where(detail::magnitude(log) < INFINITY, log, 0.0);
  const Tensor zero = z - z.detach();
  return value * derive(zero, ir::exponential(uop(zero)));
}

// ---- the rest

// What is not chosen is a 1, so that its gradient adds no NaN.
Tensor at(const Tensor& chosen, const Tensor& v) { return Tensor::where(chosen, v, 1.0); }

// a^y at a = 0 and a = inf, with PyTorch's gradients.
Tensor edge_pow(const Tensor& edge, const Tensor& a, const Tensor& y) {
  const Tensor rooted = edge & (y > 0) & (y < 1), pole = edge & (y < 0), steep = edge & (y > 1);
  Tensor out = Tensor::where(y == 1, a, 1.0);
  out = Tensor::where(steep, at(steep, a) * at(steep, a), out);
  out = Tensor::where(rooted, at(rooted, a).sqrt(), out);
  return Tensor::where(pole, at(pole, a).reciprocal(), out);
}

// The gradient of y, result * log x, where that is infinite or NaN: of a root at 0, which is what
// stands here. PyTorch's, but that it knows 0 to the 0 and above, where there is none.
Tensor with_steep_exponents(const Tensor& out, const Tensor& x, const Tensor& y) {
  const Tensor a = detail::magnitude(x), finite = detail::magnitude(y) < INFINITY;
  const Tensor falls = (a == 0) & (y < 0), rises = (a == INFINITY) & (y >= 0);
  const Tensor unknown = ((x < 0) & (a < INFINITY)) | ((a == INFINITY) & (y < 0)) | a.isnan();
  const Tensor any = (falls | rises | unknown) & finite;
  const Tensor exponent = at(any, y), root = at(any, exponent - exponent.detach()).sqrt();
  const Tensor slope = Tensor::where(falls, 1.0, Tensor::where(rises, -1.0, 0.0)).cast(x.dtype());
  return Tensor::where(any, out - root * slope, out);
}

// C's pow (ISO C, F.10.4.4) of floats in one dtype. `positive`: of positive finite numbers to
// finite powers.
Tensor float_pow(const Tensor& x, const Tensor& y, Tensor (*positive)(const Tensor&, const Tensor&)) {
  const Tensor negative = x.bitcast(format_of(x).bits) < 0;
  const Tensor a = Tensor::where(negative, -x, x), power = detail::magnitude(y);
  const Tensor regular = (a > 0) & (a < INFINITY) & (power < INFINITY);
  const Tensor edge = (a == 0) | (a == INFINITY);
  Tensor out = Tensor::where((a > 1) == (y > 0), number_like(x, INFINITY), number_like(x, 0.0));
  out = Tensor::where((a == 1) | (y == 0), 1.0, out);
  out = Tensor::where(edge, edge_pow(edge, a, y), out);
  const Tensor unknown = (a.isnan() & (y != 0)) | (y.isnan() & (x != 1));
  out = Tensor::where(unknown, at(unknown, a) * at(unknown, y) * at(unknown, y), out);
  out = Tensor::where(regular, positive(at(regular, a), at(regular, y)), out);
  const Tensor whole = y == y.trunc(), half = y * 0.5;
  out = Tensor::where(negative & whole & (half != half.trunc()), -out, out);
  // NaN, for the gradient as well.
  const Tensor complex = (x < 0) & regular & ~whole;
  return Tensor::where(complex, at(complex, out) * NAN, out);
}

Tensor quick_positive_pow(const Tensor& x, const Tensor& y) { return (x.log2() * y).exp2(); }

// What is rounded to 16 bits needs no more than f32 has.
auto positive_pow_of(DType t) { return size_bytes(t) < 4 ? quick_positive_pow : positive_pow; }

}  // namespace

Tensor Tensor::pow(const Tensor& exponent) const {
  auto [x, y] = detail::unify("pow", detail::widened(*this), detail::widened(exponent));
  if (x.dtype() == DType::Bool) fail<InvalidArgument>("pow: not defined on two bool tensors");
  if (is_int(x.dtype())) return integer_pow(x, y);
  const DType t = detail::compute_dtype(x.dtype());
  const Tensor base = x.cast(t), power = y.cast(t);
  const Tensor out = float_pow(base, power, positive_pow_of(x.dtype()));
  return (is_grad_enabled() ? with_steep_exponents(out, base, power) : out).cast(x.dtype());
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
  return detail::totalled(x, [&](const Tensor& v) {
    const double e = exponent.value();
    // More multiplications would round more often than 4 ULP allow: x^8 reaches 5.
    if (e == std::floor(e) && std::abs(e) <= 4)
      return e < 0 ? divided(v, int64_t(-e)) : multiplied(v, int64_t(e));
    if (e == 0.5) return v.sqrt();
    return float_pow(v, number_like(v, e), positive_pow_of(x.dtype()));
  });
}

}  // namespace tuff
