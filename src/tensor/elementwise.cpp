// Element-wise functions and operators: NumPy broadcasting, promotion with weak numbers.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::derive;
using detail::number_like;
using detail::unify;
using detail::uop;
using graph::Op;

namespace {

Tensor unary(Op op, const Tensor& x) { return derive(x, graph::alu(op, {uop(x)})); }

// Functions of real numbers: integers and bools become f32 first.
Tensor as_float(const Tensor& x) { return is_float(x.dtype()) ? x : x.cast(DType::F32); }
Tensor real(Op op, const Tensor& x) { return unary(op, as_float(x)); }

Tensor binary(const char* what, Op op, const Tensor& a, const Tensor& b) {
  auto [x, y] = unify(what, a, b);
  return derive(x, graph::alu(op, {uop(x), uop(y)}));
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
Tensor less_equal(const Tensor& a, const Tensor& b) {
  // Not !(b < a): that would be true where a NaN is compared.
  return less(a, b) | binary("less_equal", Op::CmpEq, a, b);
}

}  // namespace

#define TUFF_OPERATOR(op, body)                                                    \
  Tensor operator op(const Tensor& a, const Tensor& b) { return body; }            \
  Tensor operator op(const Tensor& a, Number n) { return a op number_like(a, n); } \
  Tensor operator op(Number n, const Tensor& b) { return number_like(b, n) op b; }
TUFF_OPERATOR(+, arithmetic("add", Op::Add, a, b))
TUFF_OPERATOR(-, arithmetic("subtract", Op::Sub, a, b))
TUFF_OPERATOR(*, arithmetic("multiply", Op::Mul, a, b))
TUFF_OPERATOR(/, divide(a, b))
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
Tensor operator-(const Tensor& a) { return a.neg(); }

Tensor Tensor::neg() const {
  if (dtype() == DType::Bool) fail<InvalidArgument>("neg: not defined on bool: use logical_not()");
  return unary(Op::Neg, *this);
}
Tensor Tensor::abs() const {
  return is_unsigned(dtype()) || dtype() == DType::Bool ? *this : where(*this < 0, neg(), *this);
}
Tensor Tensor::sign() const {
  const Tensor positive = (*this > 0).cast(dtype());
  if (is_unsigned(dtype()) || dtype() == DType::Bool) return positive;
  return where(isnan(), *this, positive - (*this < 0).cast(dtype()));
}
Tensor Tensor::reciprocal() const { return real(Op::Recip, *this); }
Tensor Tensor::sqrt() const { return real(Op::Sqrt, *this); }
Tensor Tensor::rsqrt() const { return sqrt().reciprocal(); }
Tensor Tensor::exp2() const { return real(Op::Exp2, *this); }
Tensor Tensor::log2() const { return real(Op::Log2, *this); }
Tensor Tensor::exp() const { return (as_float(*this) * (1.0 / std::log(2.0))).exp2(); }
Tensor Tensor::log() const { return log2() * std::log(2.0); }
Tensor Tensor::sin() const { return real(Op::Sin, *this); }
Tensor Tensor::cos() const { return (1.57079632679489661923 - as_float(*this)).sin(); }
// With e = exp(-|x|) <= 1 nothing overflows: 1/(1 + exp(-x)) alone has a gradient of 0 * inf far
// below 0.
Tensor Tensor::sigmoid() const {
  const Tensor x = as_float(*this), e = (x.abs() * (-1.0 / std::log(2.0))).exp2();
  return where(x < 0, e, 1.0) * (e + 1).reciprocal();
}
Tensor Tensor::tanh() const { return 2.0 * (2.0 * as_float(*this)).sigmoid() - 1.0; }
Tensor Tensor::relu() const { return maximum(number_like(*this, 0)); }
Tensor Tensor::gelu() const {
  const Tensor x = as_float(*this);
  return x * (1.5957691216057307 * x * (1.0 + 0.044715 * x * x)).sigmoid();
}
Tensor Tensor::silu() const { return as_float(*this) * sigmoid(); }
Tensor Tensor::trunc() const { return is_float(dtype()) ? unary(Op::Trunc, *this) : *this; }
Tensor Tensor::floor() const {
  if (!is_float(dtype())) return *this;
  const Tensor t = trunc();
  return where(*this < t, t - 1, t);
}
Tensor Tensor::ceil() const {
  if (!is_float(dtype())) return *this;
  const Tensor t = trunc();
  return where(*this > t, t + 1, t);
}
Tensor Tensor::round() const {
  if (!is_float(dtype())) return *this;
  // floor(x + 1/2), except that a half goes to the even neighbour.
  const Tensor down = floor(), rest = *this - down;
  const Tensor odd = (down * 0.5).floor() * 2.0 != down;
  const Tensor up = (rest > 0.5) | ((rest == 0.5) & odd);
  return where(up, down + 1, down);
}
Tensor Tensor::square() const { return *this * *this; }

Tensor Tensor::pow(Number exponent) const {
  const double e = exponent.value();
  if (e == 0) return where(isnan(), number_like(*this, 1), number_like(*this, 1));
  if (e < 0) return as_float(*this).pow(-e).reciprocal();
  if (e == std::floor(e) && e <= 64) {
    Tensor out, base = *this;
    for (int64_t n = int64_t(e); n > 0; n >>= 1) {
      if (n & 1) out = out.defined() ? out * base : base;
      if (n > 1) base = base * base;
    }
    return out;
  }
  if (e == 0.5) return sqrt();
  return (as_float(*this).log2() * e).exp2();
}

Tensor Tensor::clamp(std::optional<Number> low, std::optional<Number> high) const {
  if (!low && !high) fail<InvalidArgument>("clamp: neither bound given");
  Tensor out = *this;
  if (low) out = out.maximum(number_like(out, *low));
  if (high) out = out.minimum(number_like(out, *high));
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
  auto [a, b] = unify("where", x, y);
  if (condition.dtype() != DType::Bool)
    fail<InvalidArgument>("where: the condition is {}, not bool", name(condition.dtype()));
  auto [c, wide] = unify("where", condition, a, true);
  const Sizes sizes = wide.sizes();
  return derive(c, graph::alu(Op::Where, {uop(c), uop(a.expand(sizes)), uop(b.expand(sizes))}));
}
Tensor Tensor::where(const Tensor& condition, const Tensor& x, Number y) {
  return where(condition, x, number_like(x, y));
}
Tensor Tensor::where(const Tensor& condition, Number x, const Tensor& y) {
  return where(condition, number_like(y, x), y);
}
Tensor Tensor::masked_fill(const Tensor& mask, Number value) const {
  return where(mask, number_like(*this, value).cast(dtype()), *this);
}

Tensor Tensor::cast(DType t) const {
  if (t == DType::Void || t == DType::Index || is_weak(t))
    fail<InvalidArgument>("cast: {} is no element type of a tensor", name(t));
  return t == dtype() ? *this : derive(*this, graph::cast(uop(*this), t));
}
Tensor Tensor::bitcast(DType t) const {
  if (size_bytes(t) != size_bytes(dtype()) || t == DType::Bool || dtype() == DType::Bool) {
    fail<InvalidArgument>("bitcast: {} and {} differ in size or are bool", name(dtype()), name(t));
  }
  return derive(*this, graph::bitcast(uop(*this), t));
}

}  // namespace tuff
