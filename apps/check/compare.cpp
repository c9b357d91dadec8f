#include "check/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tuff::check {
namespace {

using ir::HostArray;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The bit pattern as a number that rises with the value; both zeros are 0.
int64_t ordered(const Scalar& v) {
  uint64_t bits = 0;
  store_scalar(v, &bits);
  const int top = row(v.dtype).storage_bits - 1;
  const int64_t magnitude = int64_t(bits & ((uint64_t{1} << top) - 1));
  return bits >> top & 1 ? -magnitude : magnitude;
}

// One unit of the last place of the largest finite magnitude.
double unit_of_largest(const HostArray& a) {
  double largest = smallest_normal(a.dtype);
  for (int64_t i = 0; i < a.count(); i++) {
    const double v = std::abs(a.at(i).as_double());
    if (std::isfinite(v)) largest = std::max(largest, v);
  }
  return std::ldexp(1.0, std::ilogb(largest) - row(a.dtype).mantissa_bits);
}

double error_of(const Scalar& got, const Scalar& want, Scale scale, double unit) {
  if (got == want) return 0;
  if (!is_float(want.dtype)) return kInfinite;
  if (scale == Scale::Element) return ulp_distance(got, want);
  const double a = got.as_double(), b = want.as_double();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInfinite;
  if (a == b) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) / unit : kInfinite;
}

// Where the device may take denormals for zeros: in operands, in results, and in comparisons that
// then hand on one of the denormals they compared.
double flushed_error(const Scalar& got, const Scalar& want, const Scalar& flushed, Scale scale,
                     double unit) {
  const double error = error_of(got, flushed, scale, unit);
  if (is_denormal(want) && got.as_double() == 0) return 0;
  if (is_denormal(got) && flushed.as_double() == 0) return 0;
  return error;
}

std::string mismatch(const HostArray& got, const HostArray& want) {
  if (got.dtype != want.dtype)
    return fmt::format("dtype {} where {} was expected", name(got.dtype), name(want.dtype));
  if (got.shape != want.shape)
    return fmt::format("shape ({}) where ({}) was expected", fmt::join(got.shape, ", "),
                       fmt::join(want.shape, ", "));
  return {};
}

std::string value_text(const Scalar& v) {
  if (is_float(v.dtype)) return fmt::format("{}", v.as_double());
  return is_unsigned(v.dtype) ? fmt::format("{}", v.bits) : fmt::format("{}", v.as_int());
}

}  // namespace

double ulp_distance(const Scalar& a, const Scalar& b) {
  TUFF_CHECK(a.dtype == b.dtype && is_float(a.dtype), "ULPs of {} and {}", name(a.dtype),
             name(b.dtype));
  const bool a_nan = std::isnan(a.as_double()), b_nan = std::isnan(b.as_double());
  if (a_nan || b_nan) return a_nan && b_nan ? 0 : kInfinite;
  const int64_t x = ordered(a), y = ordered(b);
  return double(x > y ? uint64_t(x) - uint64_t(y) : uint64_t(y) - uint64_t(x));
}

bool is_denormal(const Scalar& v) {
  if (!is_float(v.dtype)) return false;
  const double x = std::abs(v.as_double());
  return x > 0 && x < smallest_normal(v.dtype);
}

std::optional<HostArray> without_denormals(const HostArray& a) {
  if (!is_float(a.dtype)) return std::nullopt;
  std::optional<HostArray> out;
  for (int64_t i = 0; i < a.count(); i++) {
    const Scalar v = a.at(i);
    if (!is_denormal(v)) continue;
    if (!out) out = a;
    store_scalar(Scalar::of_double(a.dtype, std::copysign(0.0, v.as_double())),
                 out->bytes.data() + size_t(i) * size_bytes(a.dtype));
  }
  return out;
}

Comparison compare(const HostArray& got, const HostArray& want, double budget_ulp, Scale scale,
                   const HostArray* flushed) {
  Comparison out;
  out.message = mismatch(got, want);
  if (!out.message.empty()) return {false, kInfinite, out.message};
  const double unit = is_float(want.dtype) ? unit_of_largest(want) : 1;
  for (int64_t i = 0; i < want.count(); i++) {
    const Scalar g = got.at(i), w = want.at(i);
    double error = error_of(g, w, scale, unit);
    if (flushed && error > budget_ulp)
      error = std::min(error, flushed_error(g, w, flushed->at(i), scale, unit));
    if (error <= out.error_ulp) continue;
    out.error_ulp = error;
    if (error <= budget_ulp) continue;
    out.equal = false;
    out.message =
        fmt::format("element {}: {} where {} was expected", i, value_text(g), value_text(w));
  }
  return out;
}

}  // namespace tuff::check
