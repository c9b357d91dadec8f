// Numbers taken apart and put together: exponents, neighbours, divisors; choices between two.
#include <array>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::self;

namespace {

void require_floats(const char* what, const Tensor& x) {
  if (!is_float(x.dtype()))
    fail<InvalidArgument>("{}: not defined on {}: cast() it to a float", what, name(x.dtype()));
}

// Where the exponent of a float is, and what it is above the power's own.
struct ExponentBits {
  DType bits;
  int64_t at, mask, bias;
};
ExponentBits exponent_of(const Tensor& x) {
  return detail::is_wide(x) ? ExponentBits{DType::I64, 52, 0x7ff, 1023}
                    : ExponentBits{DType::I32, 23, 0xff, 127};
}

// 2 to the power of whole numbers that a normal number can be, exact on every device.
Tensor two_to(const Tensor& n, const Tensor& like) {
  const ExponentBits f = exponent_of(like);
  return ((n.cast(f.bits) + f.bias) << f.at).bitcast(like.dtype());
}

// Of x in F32 or F64; a subnormal is first made a normal number.
std::pair<Tensor, Tensor> taken_apart(const Tensor& x) {
  const ExponentBits f = exponent_of(x);
  const Tensor v = x.detach(), size = detail::magnitude(v);
  const int64_t lift = f.at + 1;
  const Tensor tiny = size < std::ldexp(1.0, int(1 - f.bias));
  const Tensor bits = Tensor::where(tiny, v * std::ldexp(1.0, int(lift)), v).bitcast(f.bits);
  const Tensor found = ((bits >> f.at) & f.mask) - (f.bias - 1);
  const Tensor e = found - Tensor::where(tiny, Tensor::full({}, lift, {f.bits, x.device()}), 0);
  const Tensor none = (v == 0) | ~(size < INFINITY);
  const Tensor exponent = Tensor::where(none, 0, e), half = exponent >> 1;
  return {x * two_to(-half, x) * two_to(half - exponent, x), exponent.cast(DType::I32)};
}

DType integers_as(DType t) {
  switch (size_bytes(t)) {
    case 1: return DType::I8;
    case 2: return DType::I16;
    case 4: return DType::I32;
    default: return DType::I64;
  }
}

std::pair<Tensor, Tensor> two_integers(const char* what, const Tensor& a, const Tensor& b) {
  const auto both = detail::unify(what, a, b);
  if (!is_int(both.first.dtype()))
    fail<InvalidArgument>("{}: not defined on {}: cast() to integers", what,
                          name(both.first.dtype()));
  return both;
}

// Euclid's algorithm. Neighbours among Fibonacci's numbers take the most steps (Lamé, 1844), fewer
// than 1.45 for each bit. Four steps to a kernel: all of these are one program, small to compile.
Tensor greatest_divisor(const Tensor& x, const Tensor& y) {
  Tensor a = x.abs(), b = y.abs();
  const int64_t bits = int64_t(size_bytes(a.dtype())) * 8, steps = bits * 29 / 20 + 2;
  for (int64_t i = 0; i < steps; i++) {
    const Tensor done = b == 0, rest = Tensor::where(done, b, a % b);
    a = Tensor::where(done, a, b);
    b = rest;
    if (i % 4 == 3) {
      a = a.contiguous();
      b = b.contiguous();
    }
  }
  return a;
}

// All three in the dtype that they have together, wide where that is a float of 8 or 16 bits.
std::array<Tensor, 3> three_together(const Tensor& x, const Tensor& a, const Tensor& b, DType t) {
  const DType wide = is_float(t) ? detail::compute_dtype(t) : t;
  return {x.cast(wide), a.cast(wide), b.cast(wide)};
}
Tensor times(const Tensor& x, Number value) { return value.value() == 1 ? x : x * value; }

}  // namespace

Tensor TensorMath::addcmul(const Tensor& a, const Tensor& b, Number value) const {
  const DType t = promote(promote(self(this).dtype(), a.dtype()), b.dtype());
  const auto [x, first, second] = three_together(self(this), a, b, t);
  const Tensor out = x + times(first * second, value);
  return is_float(t) ? out.cast(t) : out;
}
Tensor TensorMath::addcdiv(const Tensor& a, const Tensor& b, Number value) const {
  const DType t = promote(promote(self(this).dtype(), a.dtype()), b.dtype());
  if (!is_float(t))
    fail<InvalidArgument>("addcdiv: x, a and b are {}: cast() one of them to a float", name(t));
  const auto [x, first, second] = three_together(self(this), a, b, t);
  return (x + times(first / second, value)).cast(t);
}

Tensor TensorMath::gcd(const Tensor& other) const {
  const auto [a, b] = two_integers("gcd", self(this), other);
  return greatest_divisor(a, b);
}
Tensor TensorMath::lcm(const Tensor& other) const {
  const auto [a, b] = two_integers("lcm", self(this), other);
  const Tensor divisor = greatest_divisor(a, b), none = divisor == 0;
  return Tensor::where(none, divisor, (a.floor_divide(Tensor::where(none, 1, divisor)) * b).abs());
}

Tensor TensorMath::isposinf() const { return self(this).isinf() & (self(this) > 0); }
Tensor TensorMath::isneginf() const { return self(this).isinf() & (self(this) < 0); }

Tensor TensorMath::float_power(const Tensor& exponent) const {
  return self(this).cast(DType::F64).pow(exponent.cast(DType::F64));
}
Tensor TensorMath::float_power(Number exponent) const {
  return self(this).cast(DType::F64).pow(exponent.value());
}
Tensor TensorMath::ldexp(const Tensor& exponent) const {
  return detail::as_float(self(this)) * Tensor::pow(2.0, detail::as_float(exponent));
}
std::pair<Tensor, Tensor> TensorMath::frexp() const {
  const Tensor& x = self(this);
  require_floats("frexp", x);
  const auto [mantissa, exponent] = taken_apart(x.cast(detail::compute_dtype(x.dtype())));
  return {mantissa.cast(x.dtype()), exponent};
}

// Floats of one sign are in the order of their bits.
Tensor TensorMath::nextafter(const Tensor& other) const {
  const auto [given, to] = detail::unify("nextafter", self(this), other);
  require_floats("nextafter", given);
  const DType t = given.dtype(), integers = integers_as(t);
  const Tensor x = given.detach(), y = to.detach(), up = y > x, bits = x.bitcast(integers);
  const Tensor one = bits.zeros_like() + 1;
  const int64_t sign = -1 - int64_t((uint64_t(1) << (size_bytes(t) * 8 - 1)) - 1);
  const Tensor first = Tensor::where(up, one, one + sign);  // the smallest numbers beside 0
  const Tensor moved = bits + Tensor::where((x > 0) == up, one, -one);
  const Tensor next = Tensor::where(x == 0, first, moved).bitcast(t);
  const Tensor known = Tensor::where(x == y, y, next);
  return Tensor::where(x == x, Tensor::where(y == y, known, y), x);
}

// Of equal ones each has half of the gradient, as of maximum().
Tensor TensorMath::fmax(const Tensor& other) const {
  const auto [a, b] = detail::unify("fmax", self(this), other);
  return Tensor::where(b != b, a, Tensor::where(a != a, b, a.maximum(b)));
}
Tensor TensorMath::fmin(const Tensor& other) const {
  const auto [a, b] = detail::unify("fmin", self(this), other);
  return Tensor::where(b != b, a, Tensor::where(a != a, b, a.minimum(b)));
}
Tensor TensorMath::heaviside(const Tensor& values) const {
  const auto [x, at_zero] = detail::unify("heaviside", self(this), values);
  return Tensor::where(x == 0, at_zero, (x > 0).cast(at_zero.dtype())).detach();
}

}  // namespace tuff
