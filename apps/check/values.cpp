#include "check/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tuff::check {

using ir::HostArray;
using ir::IntVec;

namespace {

uint64_t seed_of(uint64_t seed, std::string_view name) {
  uint64_t hash = seed ^ 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;  // FNV-1a
  return hash;
}

}  // namespace

Draw::Draw(uint64_t seed, std::string_view name) : random_(seed_of(seed, name)) {}

double Draw::uniform(double low, double high) {
  return low + (high - low) * (double(bits() >> 11) * 0x1p-53);
}

int64_t Draw::integer(int64_t low, int64_t high) {
  return low + int64_t(bits() % (uint64_t(high - low) + 1));
}

namespace {

double signed_power(Draw& d, double low, double high) {
  const double v = std::exp2(d.uniform(low, high));
  return d.bits() & 1 ? v : -v;
}

double draw_float(Draw& d, DType t, Domain domain) {
  switch (domain) {
    case Domain::Positive: return std::abs(signed_power(d, -6, 6));
    case Domain::Exponent: return d.uniform(-12, 12);
    case Domain::Angle: return d.uniform(-100, 100);
    case Domain::Wide: return signed_power(d, -6, std::min(std::ilogb(largest_value(t)), 34));
    case Domain::Quarters: return double(d.integer(-32, 32)) / 4;
    case Domain::Powers: {
      const double v = std::ldexp(1.0, int(d.integer(-1, 1)));
      return d.bits() & 1 ? v : -v;
    }
    case Domain::Near: return d.uniform(0.5, 2);
    default: return signed_power(d, -6, 6);
  }
}

Scalar draw_scalar(Draw& d, DType t, Domain domain) {
  if (is_float(t)) return Scalar::of_double(t, draw_float(d, t, domain));
  if (t == DType::Bool) return Scalar::of_int(t, int64_t(d.bits() & 1));
  if (domain == Domain::Shift) return Scalar::of_int(t, d.integer(0, row(t).storage_bits - 1));
  // A divisor of full width makes almost every quotient 0.
  if (domain == Domain::Divisor) return Scalar::of_int(t, int64_t(d.bits() >> d.integer(0, 63)));
  return Scalar::of_int(t, int64_t(d.bits()));
}

std::vector<double> special_floats(DType t, Domain domain) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> out = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.1,
                             -2.5,
                             3.0,
                             1000.3,
                             inf,
                             -inf,
                             std::numeric_limits<double>::quiet_NaN()};
  if (domain == Domain::Divisor) return out;
  const double normal = smallest_normal(t), step = std::ldexp(normal, -row(t).mantissa_bits);
  out.insert(out.end(), {step, normal - step, -step, normal});
  // The sine of f64 is accurate below 2^20 (kernel/lower/transcendental.h).
  if (domain != Domain::Angle || t != DType::F64) out.insert(out.end(), {largest_value(t), -largest_value(t)});
  return out;
}

std::vector<int64_t> special_integers(DType t, Domain domain) {
  const int width = row(t).storage_bits;
  if (domain == Domain::Shift) return {0, 1, width / 2, width - 1};
  std::vector<int64_t> out = {0, 1, 2, 3, 7, 100};
  const uint64_t high = UINT64_MAX >> (64 - width + (is_signed(t) ? 1 : 0));
  out.insert(out.end(), {int64_t(high), int64_t(high - 1), int64_t(high / 3)});
  if (is_signed(t)) out.insert(out.end(), {-1, -2, -7, -int64_t(high), -int64_t(high) - 1});
  return out;
}

}  // namespace

HostArray array_of(DType t, const IntVec& shape, const std::vector<Scalar>& values) {
  HostArray a{t, shape, std::vector<std::byte>(values.size() * size_bytes(t))};
  TUFF_CHECK(a.count() == int64_t(values.size()), "{} values for {} elements", values.size(),
             a.count());
  for (size_t i = 0; i < values.size(); i++)
    store_scalar(values[i], a.bytes.data() + i * size_bytes(t));
  return a;
}

HostArray draw_array(Draw& draw, DType t, const IntVec& shape, Domain domain) {
  HostArray a{t, shape, {}};
  const size_t count = size_t(a.count());
  a.bytes.resize(count * size_bytes(t));
  for (size_t i = 0; i < count; i++)
    store_scalar(draw_scalar(draw, t, domain), a.bytes.data() + i * size_bytes(t));
  return a;
}

std::vector<Scalar> special_values(DType t, Domain domain) {
  std::vector<Scalar> out;
  if (t == DType::Bool) return {Scalar::of_int(t, 0), Scalar::of_int(t, 1)};
  if (is_float(t)) {
    for (const double v : special_floats(t, domain)) out.push_back(Scalar::of_double(t, v));
  } else {
    for (const int64_t v : special_integers(t, domain)) out.push_back(Scalar::of_int(t, v));
  }
  return out;
}

}  // namespace tuff::check
