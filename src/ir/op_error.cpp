#include "ir/op_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "ir/op_table.h"
#include "ir/scalar_eval.h"

namespace tuff::ir {

namespace {

// Vulkan allows 2.5 ULP for divisions; the decompositions of exp2, log2 and sin state less than 2
// (kernel/lower/transcendental.cpp).
constexpr double kDivideUlps = 3, kCurvedUlps = 4;
// Vulkan's own exp2 of f32: 3 + 2|x|, which `kernel` takes where a device has it.
constexpr double kExp2Ulps = 4, kExp2UlpsPerUnit = 2;
constexpr double kSumGrowth = 4;  // times sqrt(n)
// Native log2 near 1: absolute, not relative.
constexpr double kLog2Absolute = 0x1p-21;
// Correctly rounded operations on operands that differ, and products that a device may contract.
constexpr double kRoundingUlps = 1;

int min_exponent(DType t) { return 2 - (1 << (row(t).exponent_bits - 1)); }

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
  if (std::abs(out) + error > largest_value(t)) return kUnknownError;
  error += ulps * ulp_of(t, std::abs(out) + error);
  return error + (std::abs(out) < smallest_normal(t) ? smallest_normal(t) : 0);
}

double product_error(DType t, const Bounded& a, const Bounded& b, double out) {
  const double x = a.value.as_double(), y = b.value.as_double();
  const bool exact = a.error == 0 && b.error == 0;
  if (exact && (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0)) return 0;
  const double error = std::abs(x) * b.error + std::abs(y) * a.error + a.error * b.error;
  const bool fits = bit_length(x) + bit_length(y) <= row(t).mantissa_bits + 1;
  if (exact && fits && std::isfinite(out) && std::abs(out) >= smallest_normal(t)) return 0;
  return settled(t, out, error, kRoundingUlps);
}

double quotient_error(DType t, const Bounded& a, const Bounded& b, double out) {
  const double y = std::abs(b.value.as_double());
  // Vulkan states a precision only for divisors that neither they nor their inverse are subnormal.
  const double least = smallest_normal(t);
  if (!(y - b.error > least) || y + b.error > 0.25 / least) return kUnknownError;
  return settled(t, out, (a.error + std::abs(out) * b.error) / (y - b.error), kDivideUlps);
}

double float_to_int_error(const Bounded& x, DType to) {
  const double v = x.value.as_double();
  if (to == DType::Bool) return x.error == 0 || std::abs(v) > x.error ? 0 : kUnknownError;
  if (std::isnan(v)) return kUnknownError;
  const Scalar low = Scalar::of_double(DType::F64, v - x.error).cast(to);
  const Scalar high = Scalar::of_double(DType::F64, v + x.error).cast(to);
  return low == high ? 0 : kUnknownError;
}

struct Evaluated {
  const Node& n;
  std::span<const Bounded> src;
  const Scalar& result;
  DType t;          // of the operands
  double x, error;  // the first one and its error
  double out = result.as_double();
};

// The column `error` of ops.def.
namespace error_of {

constexpr std::nullptr_t none = nullptr;
double unchanged(const Evaluated& e) { return e.error; }
double largest(const Evaluated& e) { return std::max(e.error, e.src[1].error); }
double sum(const Evaluated& e) {
  const double error = e.error + e.src[1].error;
  if (error != 0) return settled(e.t, e.out, error, kRoundingUlps);
  const bool finite = std::isfinite(e.x) && std::isfinite(e.src[1].value.as_double());
  if (std::isfinite(e.out)) return leaf_error(Scalar::of_double(e.t, e.out));
  return finite ? kUnknownError : 0;
}
double product(const Evaluated& e) { return product_error(e.t, e.src[0], e.src[1], e.out); }
double quotient(const Evaluated& e) { return quotient_error(e.t, e.src[0], e.src[1], e.out); }
double reciprocal(const Evaluated& e) {
  return quotient_error(e.t, {Scalar::of_double(e.t, 1), 0}, e.src[0], e.out);
}
// Fused or rounded twice.
double product_sum(const Evaluated& e) {
  const Scalar product = Scalar::of_double(e.t, e.x * e.src[1].value.as_double());
  const double error = product_error(e.t, e.src[0], e.src[1], product.as_double());
  const Bounded terms[] = {{product, error}, e.src[2]};
  return error == kUnknownError ? error : sum({e.n, terms, e.result, e.t, product.as_double(), error});
}

double cast(const Evaluated& e) {
  const DType to = e.result.dtype;
  if (!is_float(e.t)) return e.error;
  if (!is_float(to)) return float_to_int_error(e.src[0], to);
  if (e.error == 0) {
    const double least = smallest_normal(to);
    return e.out != e.x && std::abs(e.out) < least ? least : leaf_error(e.result);
  }
  if (row(to).mantissa_bits >= row(e.t).mantissa_bits) return e.error;
  return settled(to, e.out, e.error, kRoundingUlps);
}

double bitcast(const Evaluated& e) {
  const bool vague = is_float(e.t) && (e.x == 0 || std::isnan(e.x));  // its sign, its payload
  return e.error != 0 || vague ? kUnknownError : leaf_error(e.result);
}

// A monotone function: its values at both ends of the interval in which its operand lies. If it is
// undefined at one of them, nothing can be demanded.
template <int ulps>
double monotone(const Evaluated& e) {
  const auto at = [&](double x) {
    const Scalar v = Scalar::of_double(DType::F64, x);
    return eval_scalar(e.n.op, v.dtype, {&v, 1}, word_of(e.n.arg)).as_double();
  };
  const double low = at(e.x - e.error), high = at(e.x + e.error);
  if (std::isnan(low) != std::isnan(high)) return kUnknownError;
  if (std::isnan(low) || (low == 0 && high == 0)) return 0;
  return settled(e.t, e.out, std::max(std::abs(high - e.out), std::abs(low - e.out)), ulps);
}

double trunc(const Evaluated& e) {
  return std::abs(std::trunc(e.x + e.error) - std::trunc(e.x - e.error));
}

double log2(const Evaluated& e) {
  if (e.error == 0 && e.x <= 0) return 0;
  if (e.error >= e.x) return kUnknownError;
  const double spread = std::log2(1 / (1 - e.error / e.x));
  return settled(e.t, e.out, spread + kLog2Absolute, kCurvedUlps);
}

double exp2(const Evaluated& e) {
  if (e.error > 1) return kUnknownError;
  if (std::holds_alternative<int64_t>(e.n.arg))  // no device has its own e^x
    return settled(e.t, e.out, e.out * std::expm1(e.error), kExp2Ulps);
  const double per_unit = e.t == DType::F32 ? kExp2UlpsPerUnit * std::abs(e.x) : 0;
  return settled(e.t, e.out, e.out * std::expm1(e.error * std::numbers::ln2), kExp2Ulps + per_unit);
}

double sine(const Evaluated& e) {
  if (!std::isfinite(e.x)) return kUnknownError;
  return settled(e.t, e.out, std::min(e.error, 2.0), kCurvedUlps);
}

double comparison(const Evaluated& e) {
  const double error = e.error + e.src[1].error;
  return error == 0 || std::abs(e.x - e.src[1].value.as_double()) > error ? 0 : kUnknownError;
}

double choice(const Evaluated& e) {
  const Bounded &x = e.src[1], &y = e.src[2];
  if (e.error == 0) return e.src[0].value.as_bool() ? x.error : y.error;
  if (!is_float(e.result.dtype))
    return x.value == y.value ? std::max(x.error, y.error) : kUnknownError;
  const double apart = std::abs(x.value.as_double() - y.value.as_double());
  return std::isnan(apart) ? kUnknownError : apart + std::max(x.error, y.error);
}

}  // namespace error_of

constexpr OpTable<OptionalFunction<double(const Evaluated&)>> kRules{{
#define TUFF_ALU(name, text, arity, rule, flags, floors, dtypes, first, second, cost, constants, \
                 ulps, error, prose)                                                             \
  {Op::name, error_of::error},
#include "ir/ops.def"
}};
static_assert(!any_op([](Op op) { return takes_floats(op) && !*kRules.find(op); }),
              "ir/op_error.cpp: ops.def's column `error` is none for an op of floats");

// Integers and truth values have no error, unless another value of a source would change them.
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
  return x != 0 && x < smallest_normal(v.dtype) ? smallest_normal(v.dtype) : 0;
}

double ulp_of(DType t, double x) {
  const int exponent = x == 0 ? min_exponent(t) : std::max(std::ilogb(x), min_exponent(t));
  return std::ldexp(1.0, exponent - int(row(t).mantissa_bits));
}

double alu_error(const Node& n, std::span<const Bounded> src, const Scalar& out) {
  const auto* rule = kRules.find(n.op);
  TUFF_CHECK(rule, "{} has no error bound", name(n.op));
  const DType t = src[0].value.dtype;
  const Evaluated e{n, src, out, t, src[0].value.as_double(), src[0].error};
  if (n.op == Op::Where) return (*rule)(e);
  if (!is_float(t) && n.op != Op::Cast && n.op != Op::Bitcast) return integer_error(n, src);
  for (const Bounded& b : src) {
    if (b.error == kUnknownError) return kUnknownError;
  }
  const bool is_function = has_flag(n.op, kUnary) && row(n.op).rule == DTypeRule::Same;
  return is_function && std::isnan(e.x) ? e.error : (*rule)(e);
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
  odd_part_ *= std::ldexp(v, -lowest_bit(v));
}

double ReduceError::rounds() const {
  const double steps = double(count_ - 1);
  return std::min(steps, kSumGrowth * std::sqrt(steps));
}

double ReduceError::of_sum(const Scalar& out) const {
  if (!finite_) return exact_ ? 0 : kUnknownError;
  if (magnitude_ + errors_ > largest_value(acc_)) return kUnknownError;
  // Every partial sum, in whatever order, fits the significand.
  if (exact_ && magnitude_ <= std::ldexp(1.0, lowest_bit_ + row(acc_).mantissa_bits + 1))
    return std::isfinite(out.as_double()) ? leaf_error(out) : kUnknownError;
  const double unit = std::ldexp(1.0, -int(row(acc_).mantissa_bits) - 1);
  const double error =
      errors_ + rounds() * unit * (magnitude_ + errors_) + double(count_ - 1) * smallest_normal(acc_);
  return settled(t_, out.as_double(), error, t_ == acc_ ? 0 : kRoundingUlps);
}

double ReduceError::of_product(const Scalar& out) const {
  if (!finite_) return kUnknownError;
  if (above_one_ > largest_value(acc_) || below_one_ < smallest_normal(acc_)) return kUnknownError;
  // Every partial product, in whatever order, divides it.
  if (exact_ && odd_part_ <= std::ldexp(1.0, row(acc_).mantissa_bits + 1))
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
