// Arithmetic and comparisons by name, truth, and what looks at the parts of numbers.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::computed_wide;
using detail::number_like;
using detail::self;

namespace {

Tensor truth(const Tensor& x) { return x.cast(DType::Bool); }

DType bits_of(DType t) {
  switch (size_bytes(t)) {
    case 1: return DType::I8;
    case 2: return DType::I16;
    case 4: return DType::I32;
    default: return DType::I64;
  }
}

void require_real(const char* what, const Tensor& x) {
  if (!is_float(x.dtype()))
    fail<InvalidArgument>("{}: not defined on {}", what, name(x.dtype()));
}

// From the nearer end: at weight 1 this is `end` itself.
Tensor between(const Tensor& from, const Tensor& to, const Tensor& weight) {
  const Tensor step = to - from;
  return Tensor::where(weight < 0.5, from + weight * step, to - step * (1 - weight));
}

}  // namespace

#define TUFF_NAMED(function, op)                                                            \
  Tensor TensorMath::function(const Tensor& other) const { return self(this) op other; } \
  Tensor TensorMath::function(Number other) const { return self(this) op other; }
TUFF_NAMED(add, +)
TUFF_NAMED(sub, -)
TUFF_NAMED(mul, *)
TUFF_NAMED(div, /)
TUFF_NAMED(eq, ==)
TUFF_NAMED(ne, !=)
TUFF_NAMED(lt, <)
TUFF_NAMED(le, <=)
TUFF_NAMED(gt, >)
TUFF_NAMED(ge, >=)
TUFF_NAMED(bitwise_and, &)
TUFF_NAMED(bitwise_or, |)
TUFF_NAMED(bitwise_xor, ^)
#undef TUFF_NAMED

Tensor TensorMath::logical_and(const Tensor& other) const {
  return truth(self(this)) & truth(other);
}
Tensor TensorMath::logical_or(const Tensor& other) const {
  return truth(self(this)) | truth(other);
}
Tensor TensorMath::logical_xor(const Tensor& other) const {
  return truth(self(this)) ^ truth(other);
}

Tensor TensorMath::isfinite() const {
  const Tensor& x = self(this);
  if (!is_float(x.dtype())) return Tensor::full(x.sizes(), true, {DType::Bool, x.device()});
  return has_infinity(x.dtype()) ? x.abs() < INFINITY : x == x;
}
Tensor TensorMath::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  if (!(rtol >= 0 && atol >= 0))
    fail<InvalidArgument>("isclose: tolerances {} and {} must be 0 or more", rtol, atol);
  const auto [a, b] = detail::unify("isclose", self(this), other);
  const DType t = detail::compute_dtype(a.dtype());
  const Tensor x = a.cast(t), y = b.cast(t), near = (x - y).abs() <= y.abs() * rtol + atol;
  // An infinite tolerance takes in what is infinitely far off.
  const Tensor close = (a == b) | (near & y.isfinite());
  return equal_nan ? close | (x.isnan() & y.isnan()) : close;
}
Tensor TensorMath::signbit() const {
  const Tensor& x = self(this);
  if (is_float(x.dtype())) return x.bitcast(bits_of(x.dtype())) < 0;
  if (is_signed(x.dtype())) return x < 0;
  return Tensor::full(x.sizes(), false, {DType::Bool, x.device()});
}

Tensor TensorMath::frac() const {
  require_real("frac", self(this));
  return self(this) - self(this).trunc();
}
Tensor TensorMath::copysign(const Tensor& sign) const {
  const auto [a, b] = detail::unify("copysign", self(this), sign);
  const Tensor x = detail::as_float(a);
  // Of an integer as well, whose 0 has no sign.
  const Tensor negative = b.signbit() != x.signbit();
  const Tensor turned = Tensor::where(negative, -x, x);
  return Tensor::where(x == 0, turned.detach(), turned);
}
Tensor TensorMath::copysign(Number sign) const {
  const Tensor x = detail::as_float(self(this));
  return x.copysign(number_like(x, sign));
}
Tensor TensorMath::lerp(const Tensor& end, const Tensor& weight) const {
  require_real("lerp", self(this));
  const auto [a, b] = detail::unify("lerp", self(this), end);
  const auto [x, w] = detail::unify("lerp", a, weight);
  const DType t = detail::compute_dtype(x.dtype());
  const Tensor to = b.cast(t), weights = w.cast(t);
  return computed_wide(x, [&](const Tensor& from) { return between(from, to, weights); });
}
Tensor TensorMath::lerp(const Tensor& end, double weight) const {
  return lerp(end, number_like(self(this), weight));
}
Tensor TensorMath::nan_to_num(double nan, std::optional<double> posinf,
                              std::optional<double> neginf) const {
  const Tensor& x = self(this);
  if (!is_float(x.dtype())) return detail::no_view(x);
  const double most = largest_value(x.dtype());
  const Tensor known = Tensor::where(x == x, x, nan);
  return Tensor::where(x == INFINITY, posinf.value_or(most),
                       Tensor::where(x == -INFINITY, neginf.value_or(-most), known));
}

// NaN stays, of a bound as well.
Tensor Tensor::clamp(const Tensor& low, const Tensor& high) const {
  if (!low.defined() && !high.defined()) fail<InvalidArgument>("clamp: neither bound given");
  const auto bounded = [](const Tensor& x, const Tensor& bound, bool from_below) {
    const auto [a, b] = detail::unify("clamp", x, bound);
    const Tensor beyond = (from_below ? a < b : b < a) | b.isnan();
    return where(beyond & (a == a), b, a);
  };
  Tensor out = *this;
  if (low.defined()) out = bounded(out, low, true);
  return high.defined() ? bounded(out, high, false) : out;
}

}  // namespace tuff
