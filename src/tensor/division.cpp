// Quotients that are rounded and what they leave: floor_divide, remainder, fmod.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/two_words.h"

namespace tuff {

using detail::derive;
using detail::number_like;
using detail::unify;
using detail::upper_half;
using detail::uop;
using ir::Op;

namespace {

Tensor integer(Op op, const Tensor& a, const Tensor& b) {
  return derive(a, ir::alu(op, {uop(a), uop(b)}));
}
Tensor differ_in_sign(const Tensor& a, const Tensor& b) { return (a < 0) != (b < 0); }

// a - q*b, with the product's rounding error taken off as well (Dekker, "A floating-point technique
// for extending the available precision", 1971). Gradients: 1 and -q.
Tensor less_product(const Tensor& a, const Tensor& q, const Tensor& b) {
  const Tensor product = Tensor::where(q == 0, 0.0, q * b);
  const Tensor qh = upper_half(q), bh = upper_half(b), ql = q - qh, bl = (b - bh).detach();
  const Tensor error = ((qh * bh - product.detach()) + qh * bl + ql * bh) + ql * bl;
  return (a - product) - Tensor::where(q == 0, 0.0, error).detach();
}

// r, with the sign of `sign` where it is 0; its gradient is r's, also there.
Tensor signed_if_zero(const Tensor& r, const Tensor& sign) {
  const Tensor is_zero = r == 0, zero = Tensor::where(is_zero, r, 0.0);
  return Tensor::where(is_zero, detail::zero_of_sign(sign.detach()) - (zero.detach() - zero), r);
}

Tensor quotient_of(const Tensor& a, const Tensor& b) { return (a / b).detach(); }
// A finite quotient that is beyond the type's range.
Tensor overflows(const Tensor& a, const Tensor& b) {
  return quotient_of(a, b).isinf() & (b != 0) & ~a.isinf();
}

// The remainder with the sign of a. The quotient is rounded twice, so that it may be one off.
Tensor unsigned_fmod(const Tensor& a, const Tensor& b) {
  const Tensor q = (a / b).trunc();
  const Tensor r = less_product(a, q, b);
  const Tensor one = Tensor::where(differ_in_sign(a, b), -1.0, 1.0).cast(a.dtype());
  const Tensor beyond = (r != 0) & differ_in_sign(r, a);
  const Tensor too_much = r.abs() >= b.abs();
  const Tensor step = Tensor::where(beyond, -one, Tensor::where(too_much, one, 0)).detach();
  return Tensor::where(step == 0, r, r - step * b);
}
Tensor float_fmod(const Tensor& a, const Tensor& b) {
  const Tensor over = overflows(a, b);
  const Tensor divisor = Tensor::where(over, 1.0, b), dividend = Tensor::where(over, 0.0, a);
  return signed_if_zero(unsigned_fmod(dividend, divisor), a);
}

template <class F>
Tensor computed_as_floats(const Tensor& a, const Tensor& b, F&& f) {
  const DType t = detail::compute_dtype(a.dtype());
  return f(a.cast(t), b.cast(t)).cast(a.dtype());
}

std::pair<Tensor, Tensor> operands(const char* what, const Tensor& a, const Tensor& b) {
  auto [x, y] = unify(what, a, b);
  if (x.dtype() == DType::Bool) fail<InvalidArgument>("{}: not defined on bool tensors", what);
  return {x, y};
}

Tensor divisor(const char* what, const Tensor& x, Number n) {
  const Tensor y = number_like(x, n);
  if (is_int(y.dtype()) && n.int_value() == 0)
    fail<InvalidArgument>("{}: integers of a tensor {} are divided by 0", what,
                          detail::text(x.sizes()));
  return y;
}

}  // namespace

Tensor Tensor::fmod(const Tensor& other) const {
  auto [x, y] = operands("fmod", *this, other);
  if (is_int(x.dtype())) return where(y == 0, x, integer(Op::IMod, x, y));
  return computed_as_floats(x, y, float_fmod);
}
Tensor Tensor::fmod(Number other) const { return fmod(divisor("fmod", *this, other)); }

Tensor Tensor::remainder(const Tensor& other) const {
  auto [x, y] = operands("remainder", *this, other);
  if (is_int(x.dtype())) {
    const Tensor r = where(y == 0, x, integer(Op::IMod, x, y));
    return is_unsigned(x.dtype()) ? r : where((r != 0) & (y != 0) & differ_in_sign(r, y), r + y, r);
  }
  return computed_as_floats(x, y, [](const Tensor& a, const Tensor& b) {
    const Tensor r = float_fmod(a, b);
    return signed_if_zero(where((r != 0) & differ_in_sign(r, b), r + b, r), b);
  });
}
Tensor Tensor::remainder(Number other) const {
  return remainder(divisor("remainder", *this, other));
}

// As Python's and NumPy's, also in the signs of zeros: from the remainder, so that both agree; no
// gradient.
Tensor Tensor::floor_divide(const Tensor& other) const {
  auto [x, y] = operands("floor_divide", *this, other);
  if (is_int(x.dtype())) {
    const Tensor q = integer(Op::IDiv, x, y);
    if (is_unsigned(x.dtype())) return q;
    return where((integer(Op::IMod, x, y) != 0) & differ_in_sign(x, y), q - 1, q);
  }
  return computed_as_floats(x, y, [](const Tensor& a, const Tensor& b) {
    const Tensor r = float_fmod(a, b);
    const Tensor below = where((r != 0) & differ_in_sign(r, b), 1.0, 0.0).cast(a.dtype());
    // A whole number but for rounding.
    const Tensor quotient = quotient_of(a, b), whole = ((a - r) / b - below).round();
    const Tensor signed_whole = where(whole == 0, detail::zero_of_sign(quotient), whole);
    return where((b == 0) | overflows(a, b), quotient, signed_whole).detach();
  });
}
Tensor Tensor::floor_divide(Number other) const {
  return floor_divide(divisor("floor_divide", *this, other));
}

}  // namespace tuff
