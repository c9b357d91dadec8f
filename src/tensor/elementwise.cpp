// Element-wise arithmetic, comparisons, bits and choices: NumPy broadcasting, promotion with weak
// numbers. Functions of real numbers stand in functions.cpp, quotients in division.cpp.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/two_words.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::as_float;
using detail::derive;
using detail::number_like;
using detail::unify;
using detail::uop;
using ir::Op;
using ir::UOp;

namespace {

Tensor unary(Op op, const Tensor& x) { return derive(x, ir::alu(op, {uop(x)})); }

Tensor binary(const char* what, Op op, const Tensor& a, const Tensor& b) {
  const detail::BuildGuard section;
  auto [x, y] = unify(what, a, b);
  return derive(x, ir::alu(op, {uop(x), uop(y)}));
}

Tensor arithmetic(const char* what, Op op, const Tensor& a, const Tensor& b) {
  if (op == Op::Sub && a.dtype() == DType::Bool && b.dtype() == DType::Bool) {
    fail<InvalidArgument>("subtract: not defined on bool tensors: use ^ or logical_not()");
  }
  return binary(what, op, a, b);
}

Tensor divide(const Tensor& a, const Tensor& b) {
  return binary("divide", Op::Div, as_float(a), as_float(b));
}

Tensor bitwise(const char* what, Op op, const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    if (is_float(t->dtype()))
      fail<InvalidArgument>("{}: not defined on {}", what, name(t->dtype()));
  }
  return binary(what, op, a, b);
}

Tensor less(const Tensor& a, const Tensor& b) { return binary("less", Op::CmpLt, a, b); }

// The op is defined for counts of 0..width-1 alone; a count beyond leaves what the last bit would.
Tensor shifted(const char* what, Op op, const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    if (!is_int(t->dtype())) fail<InvalidArgument>("{}: not defined on {}", what, name(t->dtype()));
  }
  auto [x, count] = unify(what, a, b);
  const int64_t width = row(x.dtype()).storage_bits;
  Tensor inside = less(count, number_like(count, width));
  // count >= 0 would be two comparisons, which bounds cannot prove together.
  if (is_signed(count.dtype())) inside = less(number_like(count, -1), count) & inside;
  const Tensor safe = Tensor::where(inside, count, op == Op::Shr ? width - 1 : 0);
  const Tensor y = derive(x, ir::alu(op, {uop(x), uop(safe)}));
  return op == Op::Shr && is_signed(x.dtype()) ? y : Tensor::where(inside, y, 0);
}

Tensor less_equal(const Tensor& a, const Tensor& b) {
  // Not !(b < a): that would be true where a NaN is compared.
  return less(a, b) | binary("less_equal", Op::CmpEq, a, b);
}

}  // namespace

Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
Tensor operator/(const Tensor& a, Number n) { return a / number_like(a, n); }
Tensor operator/(Number n, const Tensor& b) {
  const Tensor x = detail::widened(b);
  return number_like(x, n) / x;
}
#define TUFF_OPERATOR(op, body)                                                    \
  Tensor operator op(const Tensor& a, const Tensor& b) { return body; }            \
  Tensor operator op(const Tensor& a, Number n) { return a op number_like(a, n); } \
  Tensor operator op(Number n, const Tensor& b) { return number_like(b, n) op b; }
TUFF_OPERATOR(+, arithmetic("add", Op::Add, a, b))
TUFF_OPERATOR(-, arithmetic("subtract", Op::Sub, a, b))
TUFF_OPERATOR(*, arithmetic("multiply", Op::Mul, a, b))
TUFF_OPERATOR(<<, shifted("left shift", Op::Shl, a, b))
TUFF_OPERATOR(>>, shifted("right shift", Op::Shr, a, b))
TUFF_OPERATOR(<, less(a, b))
TUFF_OPERATOR(>, less(b, a))
TUFF_OPERATOR(<=, less_equal(a, b))
TUFF_OPERATOR(>=, less_equal(b, a))
TUFF_OPERATOR(==, binary("equal", Op::CmpEq, a, b))
TUFF_OPERATOR(!=, binary("not_equal", Op::CmpNe, a, b))
TUFF_OPERATOR(&, bitwise("bitwise and", Op::And, a, b))
TUFF_OPERATOR(|, bitwise("bitwise or", Op::Or, a, b))
TUFF_OPERATOR(^, bitwise("bitwise xor", Op::Xor, a, b))
#undef TUFF_OPERATOR
Tensor operator%(const Tensor& a, const Tensor& b) { return a.remainder(b); }
Tensor operator%(const Tensor& a, Number n) { return a.remainder(n); }
Tensor operator%(Number n, const Tensor& b) { return number_like(b, n).remainder(b); }
Tensor operator-(const Tensor& a) { return a.neg(); }
Tensor operator~(const Tensor& a) { return a.bitwise_not(); }

Tensor Tensor::bitwise_left_shift(const Tensor& count) const { return *this << count; }
Tensor Tensor::bitwise_right_shift(const Tensor& count) const { return *this >> count; }
Tensor Tensor::bitwise_not() const {
  if (dtype() == DType::Bool) return logical_not();
  const UOp ones = ir::constant(Scalar::of_int(is_int(dtype()) ? dtype() : DType::I32, -1));
  return bitwise("bitwise not", Op::Xor, *this, derive(*this, ones));
}

Tensor Tensor::neg() const {
  if (dtype() == DType::Bool) fail<InvalidArgument>("neg: not defined on bool: use logical_not()");
  return unary(Op::Neg, *this);
}
// +0 for both zeros, and no gradient there, as PyTorch has it.
Tensor Tensor::abs() const {
  if (is_unsigned(dtype()) || dtype() == DType::Bool) return detail::no_view(*this);
  return where(*this == 0, 0, where(*this < 0, neg(), *this));
}
Tensor Tensor::sign() const {
  const Tensor positive = (*this > 0).cast(dtype());
  if (is_unsigned(dtype()) || dtype() == DType::Bool) return positive;
  return where(isnan(), *this, positive - (*this < 0).cast(dtype()));
}
Tensor Tensor::reciprocal() const { return unary(Op::Recip, as_float(detail::widened(*this))); }
// No gradient at 0, as in PyTorch: of maximum() half would flow.
Tensor Tensor::relu() const {
  if (is_unsigned(dtype()) || dtype() == DType::Bool) return detail::no_view(*this);
  return where(*this <= 0, 0, *this);
}
Tensor Tensor::leaky_relu(double negative_slope) const {
  const Tensor x = as_float(*this);
  return where(x > 0, x, x * negative_slope);
}
Tensor Tensor::trunc() const {
  return is_float(dtype()) ? unary(Op::Trunc, *this) : detail::no_view(*this);
}
Tensor Tensor::floor() const {
  if (!is_float(dtype())) return detail::no_view(*this);
  const Tensor t = trunc();
  return where(*this < t, t - 1, t);
}
Tensor Tensor::ceil() const {
  if (!is_float(dtype())) return detail::no_view(*this);
  const Tensor t = trunc();
  return where(*this > t, t + 1, t);
}
Tensor Tensor::round() const {
  if (!is_float(dtype())) return detail::no_view(*this);
  // floor(x + 1/2), except that a half goes to the even neighbour.
  const Tensor down = floor(), rest = *this - down;
  const Tensor odd = (down * 0.5).floor() * 2.0 != down;
  const Tensor up = (rest > 0.5) | ((rest == 0.5) & odd), whole = where(up, down + 1, down);
  return where(whole == 0, detail::zero_of_sign(*this), whole);
}
Tensor Tensor::square() const { return *this * *this; }

// NaN stays, of a bound as well, and a bound that is met keeps the gradient, as in PyTorch.
Tensor Tensor::clamp(std::optional<Number> low, std::optional<Number> high) const {
  if (!low && !high) fail<InvalidArgument>("clamp: neither bound given");
  const auto is_nan = [](const std::optional<Number>& n) {
    return n && !n->varies() && std::isnan(n->value());
  };
  if (is_nan(low) || is_nan(high)) return where(*this == *this, NAN, *this);
  Tensor out = *this;
  if (low) out = where(out < *low, *low, out);
  if (high) out = where(out > *high, *high, out);
  return out;
}
Tensor Tensor::maximum(const Tensor& other) const {
  return binary("maximum", Op::Max, *this, other);
}
Tensor Tensor::minimum(const Tensor& other) const {
  auto [x, y] = unify("minimum", *this, other);
  if (x.dtype() == DType::Bool) return x & y;
  // NaN wins from either side, as in maximum.
  if (is_float(x.dtype())) return (x.neg()).maximum(y.neg()).neg();
  return where(y < x, y, x);
}
Tensor Tensor::logical_not() const { return cast(DType::Bool) ^ true; }
Tensor Tensor::isnan() const { return *this != *this; }
Tensor Tensor::isinf() const {
  if (!is_float(dtype())) return full(sizes(), false, {DType::Bool, device()});
  return abs() == INFINITY;
}

Tensor Tensor::where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  const detail::BuildGuard section;
  auto [a, b] = unify("where", x, y);
  if (condition.dtype() != DType::Bool)
    fail<InvalidArgument>("where: the condition is {}, not bool", name(condition.dtype()));
  auto [c, wide] = unify("where", condition, a, true);
  const Sizes sizes = wide.sizes();
  return derive(c, ir::alu(Op::Where, {uop(c), uop(a.expand(sizes)), uop(b.expand(sizes))}));
}
Tensor Tensor::where(const Tensor& condition, const Tensor& x, Number y) {
  return where(condition, x, number_like(x, y));
}
Tensor Tensor::where(const Tensor& condition, Number x, const Tensor& y) {
  return where(condition, number_like(y, x), y);
}
Tensor Tensor::where(const Tensor& condition, Number x, Number y) {
  const DType t = strengthen(promote(x.dtype(), y.dtype()));
  auto constant = [&](Number v) {
    return derive(condition, ir::constant(detail::scalar_of(t, v)));
  };
  uop(condition);
  return where(condition, constant(x), constant(y));
}
Tensor Tensor::masked_fill(const Tensor& mask, Number value) const {
  if (mask.dtype() != DType::Bool)
    fail<InvalidArgument>("masked_fill: the mask is {}, not bool", name(mask.dtype()));
  return where(mask, derive(*this, ir::constant(detail::scalar_of(dtype(), value))), *this);
}

Tensor Tensor::cast(DType t) const {
  detail::require_element_type("cast", t);
  return t == dtype() ? *this : derive(*this, ir::cast(uop(*this), t));
}
Tensor Tensor::bitcast(DType t) const {
  detail::require_element_type("bitcast", t);
  if (size_bytes(t) != size_bytes(dtype()) || t == DType::Bool || dtype() == DType::Bool) {
    fail<InvalidArgument>("bitcast: {} and {} differ in size or are bool", name(dtype()), name(t));
  }
  return derive(*this, ir::bitcast(uop(*this), t));
}

}  // namespace tuff
