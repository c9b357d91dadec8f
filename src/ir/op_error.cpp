#include "ir/op_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tuff::ir {

namespace {

// Vulkan allows 2.5 ULP for divisions and inherits sqrt from inversesqrt (2 ULP) and a division;
// the decompositions of exp2, log2 and sin state less than 2 (kernel/lower/transcendental.cpp).
constexpr double kDivideUlps = 3, kSqrtUlps = 3, kCurvedUlps = 4;
// Vulkan's own exp2 of f32: 3 + 2|x|, which `kernel` takes where a device has it.
constexpr double kExp2Ulps = 4, kExp2UlpsPerUnit = 2;
constexpr double kSumGrowth = 4;  // times sqrt(n)
// Native log2 near 1: absolute, not relative.
constexpr double kLog2Absolute = 0x1p-21;
// Correctly rounded operations on operands that differ, and products that a device may contract.
constexpr double kRoundingUlps = 1;

int min_exponent(DType t) { return 2 - (1 << (row(t).exponent_bits - 1)); }
double min_normal(DType t) { return std::ldexp(1.0, min_exponent(t)); }
double largest(DType t) {
  return std::ldexp(2 - std::ldexp(1.0, -int(row(t).mantissa_bits)), 1 - min_exponent(t));
}

// The exponent of the lowest set bit of a finite v != 0.
int lowest_bit(double v) {
  int exponent;
  const double fraction = std::frexp(v, &exponent);  // 53 bits below the point
  const auto digits = uint64_t(std::ldexp(std::abs(fraction), 53));
  return exponent - 53 + std::countr_zero(digits);
}
int bit_length(double v) { return std::ilogb(v) - lowest_bit(v) + 1; }

// Adds what rounding a result that is not exact may add, and what flushing a subnormal one would.
double settled(DType t, double out, double error, double ulps) {
  if (!std::isfinite(out)) return kUnknownError;
  if (std::abs(out) + error > largest(t)) return kUnknownError;
  error += ulps * ulp_of(t, std::abs(out) + error);
  return error + (std::abs(out) < min_normal(t) ? min_normal(t) : 0);
}

double product_error(DType t, const Bounded& a, const Bounded& b, double out) {
  const double x = a.value.as_double(), y = b.value.as_double();
  const bool exact = a.error == 0 && b.error == 0;
  if (exact && (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0)) return 0;
  const double error = std::abs(x) * b.error + std::abs(y) * a.error + a.error * b.error;
  const bool fits = bit_length(x) + bit_length(y) <= row(t).mantissa_bits + 1;
  if (exact && fits && std::isfinite(out) && std::abs(out) >= min_normal(t)) return 0;
  return settled(t, out, error, kRoundingUlps);
}

double quotient_error(DType t, const Bounded& a, const Bounded& b, double out) {
  const double y = std::abs(b.value.as_double());
  // Vulkan states a precision only for divisors that neither they nor their inverse are subnormal.
  if (!(y - b.error > min_normal(t)) || y + b.error > 0.25 / min_normal(t)) return kUnknownError;
  return settled(t, out, (a.error + std::abs(out) * b.error) / (y - b.error), kDivideUlps);
}

double sqrt_error(DType t, const Bounded& x, double out) {
  const double v = x.value.as_double();
  if (v == 0 && x.error == 0) return 0;
  if (v < 0) return x.error < -v ? 0 : kUnknownError;
  if (x.error > v) return kUnknownError;
  const double low = std::sqrt(v - x.error), high = std::sqrt(v + x.error);
  return settled(t, out, std::max(high - out, out - low), kSqrtUlps);
}

double log2_error(DType t, const Bounded& x, double out) {
  const double v = x.value.as_double();
  if (x.error == 0 && v <= 0) return 0;
  if (x.error >= v) return kUnknownError;
  const double spread = std::log2(1 / (1 - x.error / v));
  return settled(t, out, spread + kLog2Absolute, kCurvedUlps);
}

double exp2_error(const Node& n, DType t, const Bounded& x, double out) {
  if (x.error > 1) return kUnknownError;
  if (std::holds_alternative<int64_t>(n.arg))  // e^x is nobody's own
    return settled(t, out, out * std::expm1(x.error), kExp2Ulps);
  const double per_unit = t == DType::F32 ? kExp2UlpsPerUnit * std::abs(x.value.as_double()) : 0;
  return settled(t, out, out * std::expm1(x.error * std::numbers::ln2), kExp2Ulps + per_unit);
}

double unary_error(const Node& n, DType t, const Bounded& x, double out) {
  const Op op = n.op;
  const double v = x.value.as_double();
  if (op == Op::Neg) return x.error;
  if (std::isnan(v)) return x.error;
  if (op == Op::Recip) return quotient_error(t, {Scalar::of_double(t, 1), 0}, x, out);
  if (op == Op::Sqrt) return sqrt_error(t, x, out);
  if (op == Op::Log2) return log2_error(t, x, out);
  if (op == Op::Trunc) return std::abs(std::trunc(v + x.error) - std::trunc(v - x.error));
  if (op == Op::Exp2) return exp2_error(n, t, x, out);
  TUFF_CHECK(op == Op::Sin, "{} has no error bound", name(op));
  return std::isfinite(v) ? settled(t, out, std::min(x.error, 2.0), kCurvedUlps) : kUnknownError;
}

double float_to_int_error(const Bounded& x, DType to) {
  const double v = x.value.as_double();
  if (to == DType::Bool) return x.error == 0 || std::abs(v) > x.error ? 0 : kUnknownError;
  if (std::isnan(v)) return kUnknownError;
  const Scalar low = Scalar::of_double(DType::F64, v - x.error).cast(to);
  const Scalar high = Scalar::of_double(DType::F64, v + x.error).cast(to);
  return low == high ? 0 : kUnknownError;
}

double cast_error(const Bounded& x, const Scalar& out) {
  if (!is_float(x.value.dtype)) return x.error;
  if (!is_float(out.dtype)) return float_to_int_error(x, out.dtype);
  const double v = out.as_double();
  if (x.error == 0) {
    return v != x.value.as_double() && std::abs(v) < min_normal(out.dtype) ? min_normal(out.dtype)
                                                                           : leaf_error(out);
  }
  if (row(out.dtype).mantissa_bits >= row(x.value.dtype).mantissa_bits) return x.error;
  return settled(out.dtype, v, x.error, kRoundingUlps);
}

double bitcast_error(const Bounded& x, const Scalar& out) {
  if (x.error != 0) return kUnknownError;
  if (is_float(x.value.dtype)) {
    const double v = x.value.as_double();
    if (v == 0 || std::isnan(v)) return kUnknownError;  // its sign, its payload
  }
  return leaf_error(out);
}

double compare_error(const Bounded& a, const Bounded& b) {
  const double error = a.error + b.error;
  if (error == 0) return 0;
  return std::abs(a.value.as_double() - b.value.as_double()) > error ? 0 : kUnknownError;
}

double where_error(std::span<const Bounded> src, const Scalar& out) {
  if (src[0].error == 0) return src[0].value.as_bool() ? src[1].error : src[2].error;
  if (!is_float(out.dtype))
    return src[1].value == src[2].value ? std::max(src[1].error, src[2].error) : kUnknownError;
  const double apart = std::abs(src[1].value.as_double() - src[2].value.as_double());
  return std::isnan(apart) ? kUnknownError : apart + std::max(src[1].error, src[2].error);
}

double float_binary_error(Op op, DType t, std::span<const Bounded> src, double out) {
  if (op == Op::Max) return std::max(src[0].error, src[1].error);
  if (op == Op::Mul) return product_error(t, src[0], src[1], out);
  if (op == Op::Div) return quotient_error(t, src[0], src[1], out);
  const double error = src[0].error + src[1].error;
  if (error == 0 && (std::isinf(out) || std::isnan(out))) {
    const bool finite =
        std::isfinite(src[0].value.as_double()) && std::isfinite(src[1].value.as_double());
    return finite ? kUnknownError : 0;
  }
  if (error == 0) return leaf_error(Scalar::of_double(t, out));
  return settled(t, out, error, kRoundingUlps);
}

// Fused or rounded twice.
double multiply_add_error(DType t, std::span<const Bounded> src, double out) {
  const Scalar product = Scalar::of_double(t, src[0].value.as_double() * src[1].value.as_double());
  const Bounded sum[] = {{product, product_error(t, src[0], src[1], product.as_double())}, src[2]};
  return sum[0].error == kUnknownError ? kUnknownError : float_binary_error(Op::Add, t, sum, out);
}

// Of integers and truth values: none, unless a source may be another one that matters.
double integer_error(const Node& n, std::span<const Bounded> src) {
  const auto certain = [&](const Bounded& b, bool v) {
    return b.error == 0 && b.value.dtype == DType::Bool && b.value.as_bool() == v;
  };
  if (n.op == Op::And && (certain(src[0], false) || certain(src[1], false))) return 0;
  if (n.op == Op::Or && (certain(src[0], true) || certain(src[1], true))) return 0;
  for (const Bounded& b : src) {
    if (b.error != 0) return kUnknownError;
  }
  const bool shift = (n.op == Op::Shl || n.op == Op::Shr) && n.dtype != DType::Index;
  if (shift && src[1].value.bits >= row(n.dtype).storage_bits) return kUnknownError;
  return 0;
}

}  // namespace

double leaf_error(const Scalar& v) {
  if (!is_float(v.dtype)) return 0;
  const double x = std::abs(v.as_double());
  return x != 0 && x < min_normal(v.dtype) ? min_normal(v.dtype) : 0;
}

double ulp_of(DType t, double x) {
  const int exponent = x == 0 ? min_exponent(t) : std::max(std::ilogb(x), min_exponent(t));
  return std::ldexp(1.0, exponent - int(row(t).mantissa_bits));
}

double alu_error(const Node& n, std::span<const Bounded> src, const Scalar& out) {
  if (n.op == Op::Where) return where_error(src, out);
  const DType t = src[0].value.dtype;
  if (!is_float(t) && n.op != Op::Cast && n.op != Op::Bitcast) return integer_error(n, src);
  for (const Bounded& b : src) {
    if (b.error == kUnknownError) return kUnknownError;
  }
  if (n.op == Op::Cast) return cast_error(src[0], out);
  if (n.op == Op::Bitcast) return bitcast_error(src[0], out);
  if (n.op == Op::CmpLt || n.op == Op::CmpNe || n.op == Op::CmpEq)
    return compare_error(src[0], src[1]);
  if (n.op == Op::MulAdd) return multiply_add_error(t, src, out.as_double());
  if (src.size() == 1) return unary_error(n, t, src[0], out.as_double());
  return float_binary_error(n.op, t, src, out.as_double());
}

void ReduceError::add(const Bounded& term) {
  count_++;
  worst_ = std::max(worst_, term.error);
  if (!is_float(t_)) return;
  const double v = std::abs(term.value.as_double());
  finite_ = finite_ && std::isfinite(v);
  exact_ = exact_ && term.error == 0;
  errors_ += term.error;
  magnitude_ += v;
  product_ *= v;
  largest_product_ *= v + term.error;
  above_one_ *= std::max(1.0, v + term.error);
  if (v == 0 || !std::isfinite(v)) return;
  lowest_bit_ = std::min(lowest_bit_, lowest_bit(v));
  below_one_ *= std::min(1.0, v);
  digits_ += bit_length(v) - 1;
}

double ReduceError::rounds() const {
  const double steps = double(count_ - 1);
  return std::min(steps, kSumGrowth * std::sqrt(steps));
}

double ReduceError::of_sum(const Scalar& out) const {
  if (!finite_) return exact_ ? 0 : kUnknownError;
  if (magnitude_ + errors_ > largest(acc_)) return kUnknownError;
  // Every partial sum, in whatever order, fits the significand.
  if (exact_ && magnitude_ <= std::ldexp(1.0, lowest_bit_ + row(acc_).mantissa_bits + 1))
    return std::isfinite(out.as_double()) ? leaf_error(out) : kUnknownError;
  const double unit = std::ldexp(1.0, -int(row(acc_).mantissa_bits) - 1);
  const double error =
      errors_ + rounds() * unit * (magnitude_ + errors_) + double(count_ - 1) * min_normal(acc_);
  return settled(t_, out.as_double(), error, t_ == acc_ ? 0 : kRoundingUlps);
}

double ReduceError::of_product(const Scalar& out) const {
  if (!finite_) return kUnknownError;
  if (above_one_ > largest(acc_) || below_one_ < min_normal(acc_)) return kUnknownError;
  if (exact_ && digits_ < row(acc_).mantissa_bits)
    return std::isfinite(out.as_double()) ? leaf_error(out) : kUnknownError;
  const double rounding = rounds() * ulp_of(acc_, largest_product_);
  return settled(t_, out.as_double(), largest_product_ - product_ + rounding,
                 t_ == acc_ ? 0 : kRoundingUlps);
}

double ReduceError::of(const Scalar& out) const {
  if (worst_ == kUnknownError) return kUnknownError;
  if (op_ == Op::Max || !is_float(t_) || count_ < 2) return worst_;
  return op_ == Op::Add ? of_sum(out) : of_product(out);
}

bool agrees(const Scalar& got, const Bounded& want) {
  if (want.error == kUnknownError || got == want.value) return true;
  if (!is_float(want.value.dtype)) return false;
  const double a = got.as_double(), b = want.value.as_double();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= want.error;
}

}  // namespace tuff::ir
