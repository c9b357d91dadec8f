#include "check/error_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/scalar_eval.h"

namespace tuff::check {

using graph::Node;
using graph::Op;

namespace {

// Vulkan allows 2.5 ULP for divisions and inherits sqrt from inversesqrt (2 ULP) and a division;
// the decompositions of exp2, log2 and sin state less than 2 (kernel/lower/transcendental.cpp).
constexpr double kDivideUlps = 3, kSqrtUlps = 3, kCurvedUlps = 4;
// Beyond it the f64 sine's reduction loses accuracy (kernel/lower/transcendental.h).
constexpr double kLargestWideSine = 1 << 20;
// Native log2 near 1: absolute, not relative.
constexpr double kLog2Absolute = 0x1p-21;
// Correctly rounded operations on operands that differ, and products that a device may contract.
constexpr double kRoundingUlps = 1;

int min_exponent(DType t) { return 2 - (1 << (row(t).exponent_bits - 1)); }
double min_normal(DType t) { return std::ldexp(1.0, min_exponent(t)); }
double largest(DType t) {
  return std::ldexp(2 - std::ldexp(1.0, -int(row(t).mantissa_bits)), 1 - min_exponent(t));
}

// Spacing of the floats of a dtype around v.
double ulp(DType t, double v) {
  const int exponent = v == 0 ? min_exponent(t) : std::max(std::ilogb(v), min_exponent(t));
  return std::ldexp(1.0, exponent - int(row(t).mantissa_bits));
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
  if (!std::isfinite(out)) return kUnknown;
  if (std::abs(out) + error > largest(t)) return kUnknown;
  error += ulps * ulp(t, std::abs(out) + error);
  return error + (std::abs(out) < min_normal(t) ? min_normal(t) : 0);
}

double product_error(DType t, const Uncertain& a, const Uncertain& b, double out) {
  const double x = a.value.as_double(), y = b.value.as_double();
  const bool exact = a.error == 0 && b.error == 0;
  if (exact && (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0)) return 0;
  const double error = std::abs(x) * b.error + std::abs(y) * a.error + a.error * b.error;
  const bool fits = bit_length(x) + bit_length(y) <= row(t).mantissa_bits + 1;
  if (exact && fits && std::isfinite(out) && std::abs(out) >= min_normal(t)) return 0;
  return settled(t, out, error, kRoundingUlps);
}

double quotient_error(DType t, const Uncertain& a, const Uncertain& b, double out) {
  const double y = std::abs(b.value.as_double());
  // Vulkan states a precision only for divisors that neither they nor their inverse are subnormal.
  if (!(y - b.error > min_normal(t)) || y + b.error > 0.25 / min_normal(t)) return kUnknown;
  return settled(t, out, (a.error + std::abs(out) * b.error) / (y - b.error), kDivideUlps);
}

double sqrt_error(DType t, const Uncertain& x, double out) {
  const double v = x.value.as_double();
  if (v == 0 && x.error == 0) return 0;
  if (v < 0) return x.error < -v ? 0 : kUnknown;
  if (x.error > v) return kUnknown;
  const double low = std::sqrt(v - x.error), high = std::sqrt(v + x.error);
  return settled(t, out, std::max(high - out, out - low), kSqrtUlps);
}

double log2_error(DType t, const Uncertain& x, double out) {
  const double v = x.value.as_double();
  if (x.error == 0 && v <= 0) return 0;
  if (x.error >= v) return kUnknown;
  const double spread = std::log2(1 / (1 - x.error / v));
  return settled(t, out, spread + kLog2Absolute, kCurvedUlps);
}

double unary_error(Op op, DType t, const Uncertain& x, double out) {
  const double v = x.value.as_double();
  if (op == Op::Neg) return x.error;
  if (std::isnan(v)) return x.error;
  if (op == Op::Recip) return quotient_error(t, {Scalar::of_double(t, 1), 0}, x, out);
  if (op == Op::Sqrt) return sqrt_error(t, x, out);
  if (op == Op::Log2) return log2_error(t, x, out);
  if (op == Op::Trunc) return std::abs(std::trunc(v + x.error) - std::trunc(v - x.error));
  if (op == Op::Exp2) {
    if (x.error > 1) return kUnknown;
    return settled(t, out, out * (std::exp2(x.error) - 1), kCurvedUlps);
  }
  TUFF_CHECK(op == Op::Sin, "{} has no error bound", name(op));
  if (t == DType::F64 && std::abs(v) >= kLargestWideSine) return kUnknown;
  return std::isfinite(v) ? settled(t, out, std::min(x.error, 2.0), kCurvedUlps) : kUnknown;
}

double float_to_int_error(const Uncertain& x, DType to) {
  const double v = x.value.as_double();
  if (to == DType::Bool) return x.error == 0 || std::abs(v) > x.error ? 0 : kUnknown;
  if (std::isnan(v)) return kUnknown;
  const Scalar low = Scalar::of_double(DType::F64, v - x.error).cast(to);
  const Scalar high = Scalar::of_double(DType::F64, v + x.error).cast(to);
  return low == high ? 0 : kUnknown;
}

double cast_error(const Uncertain& x, const Scalar& out) {
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

double bitcast_error(const Uncertain& x, const Scalar& out) {
  if (x.error != 0) return kUnknown;
  if (is_float(x.value.dtype)) {
    const double v = x.value.as_double();
    if (v == 0 || std::isnan(v)) return kUnknown;  // its sign, its payload
  }
  return leaf_error(out);
}

double compare_error(const Uncertain& a, const Uncertain& b) {
  const double error = a.error + b.error;
  if (error == 0) return 0;
  return std::abs(a.value.as_double() - b.value.as_double()) > error ? 0 : kUnknown;
}

double where_error(std::span<const Uncertain> src, const Scalar& out) {
  if (src[0].error == 0) return src[0].value.as_bool() ? src[1].error : src[2].error;
  if (!is_float(out.dtype))
    return src[1].value == src[2].value ? std::max(src[1].error, src[2].error) : kUnknown;
  const double apart = std::abs(src[1].value.as_double() - src[2].value.as_double());
  return std::isnan(apart) ? kUnknown : apart + std::max(src[1].error, src[2].error);
}

double float_binary_error(Op op, DType t, std::span<const Uncertain> src, double out) {
  if (op == Op::Max) return std::max(src[0].error, src[1].error);
  if (op == Op::Mul) return product_error(t, src[0], src[1], out);
  if (op == Op::Div) return quotient_error(t, src[0], src[1], out);
  const double error = src[0].error + src[1].error;
  if (error == 0 && (std::isinf(out) || std::isnan(out))) {
    const bool finite =
        std::isfinite(src[0].value.as_double()) && std::isfinite(src[1].value.as_double());
    return finite ? kUnknown : 0;
  }
  if (error == 0) return leaf_error(Scalar::of_double(t, out));
  return settled(t, out, error, kRoundingUlps);
}

double integer_error(const Node& n, std::span<const Uncertain> src) {
  for (const Uncertain& u : src) {
    if (u.error != 0) return kUnknown;
  }
  const bool shift = n.op == Op::Shl || n.op == Op::Shr;
  if (shift && src[1].value.bits >= row(n.dtype).storage_bits) return kUnknown;
  return 0;
}

// Whether every partial sum, in whatever order, is exact in `digits` bits.
bool sums_exactly(std::span<const Uncertain> terms, double magnitude, int digits) {
  int lowest = 2000;
  for (const Uncertain& u : terms) {
    const double v = u.value.as_double();
    if (v != 0) lowest = std::min(lowest, lowest_bit(v));
  }
  return magnitude <= std::ldexp(1.0, std::max(lowest, -2000) + digits);
}

double sum_error(std::span<const Uncertain> terms, const Scalar& out) {
  const DType t = out.dtype, acc = accumulator(t);
  double magnitude = 0, error = 0;
  bool finite = true;
  for (const Uncertain& u : terms) {
    finite = finite && std::isfinite(u.value.as_double());
    magnitude += std::abs(u.value.as_double());
    error += u.error;
  }
  if (!finite) return error == 0 ? 0 : kUnknown;
  if (magnitude + error > largest(acc)) return kUnknown;
  const bool exact = error == 0 && sums_exactly(terms, magnitude, row(acc).mantissa_bits + 1);
  if (exact) return std::isfinite(out.as_double()) ? leaf_error(out) : kUnknown;
  error += double(terms.size()) * ulp(acc, magnitude + error);
  return settled(t, out.as_double(), error, t == acc ? 0 : kRoundingUlps);
}

double product_of_all_error(std::span<const Uncertain> terms, const Scalar& out) {
  const DType t = out.dtype, acc = accumulator(t);
  double high = 1, plain = 1, largest_part = 1, smallest_part = 1;
  int digits = 0;
  bool exact = true;
  for (const Uncertain& u : terms) {
    const double v = std::abs(u.value.as_double());
    if (!std::isfinite(v)) return kUnknown;
    plain *= v;
    high *= v + u.error;
    largest_part *= std::max(1.0, v + u.error);
    if (v != 0) smallest_part *= std::min(1.0, v);
    if (v != 0) digits += bit_length(v) - 1;
    exact = exact && u.error == 0;
  }
  if (largest_part > largest(acc) || smallest_part < min_normal(acc)) return kUnknown;
  if (exact && digits < row(acc).mantissa_bits) {
    return std::isfinite(out.as_double()) ? leaf_error(out) : kUnknown;
  }
  const double rounding = double(terms.size()) * ulp(acc, high);
  return settled(t, out.as_double(), high - plain + rounding, t == acc ? 0 : kRoundingUlps);
}

}  // namespace

double leaf_error(const Scalar& v) {
  if (!is_float(v.dtype)) return 0;
  const double x = std::abs(v.as_double());
  return x != 0 && x < min_normal(v.dtype) ? min_normal(v.dtype) : 0;
}

double alu_error(const Node& n, std::span<const Uncertain> src, const Scalar& out) {
  if (n.op == Op::Where) return where_error(src, out);
  for (const Uncertain& u : src) {
    if (u.error == kUnknown) return kUnknown;
  }
  if (n.op == Op::Cast) return cast_error(src[0], out);
  if (n.op == Op::Bitcast) return bitcast_error(src[0], out);
  const DType t = src[0].value.dtype;
  if (!is_float(t)) return integer_error(n, src);
  if (n.op == Op::CmpLt || n.op == Op::CmpNe || n.op == Op::CmpEq)
    return compare_error(src[0], src[1]);
  if (src.size() == 1) return unary_error(n.op, t, src[0], out.as_double());
  return float_binary_error(n.op, t, src, out.as_double());
}

double reduce_error(Op op, std::span<const Uncertain> terms, const Scalar& out) {
  double worst = 0;
  for (const Uncertain& u : terms) worst = std::max(worst, u.error);
  if (worst == kUnknown) return kUnknown;
  if (op == Op::Max || !is_float(out.dtype) || terms.size() < 2) return worst;
  return op == Op::Add ? sum_error(terms, out) : product_of_all_error(terms, out);
}

bool agrees(const Scalar& got, const Uncertain& want) {
  if (want.error == kUnknown || got == want.value) return true;
  if (!is_float(want.value.dtype)) return false;
  const double a = got.as_double(), b = want.value.as_double();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= want.error;
}

}  // namespace tuff::check
