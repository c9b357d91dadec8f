#include "emu/ptx/rounding.h"

#include <bit>
#include <cfenv>

namespace tuff::emu::ptx {
namespace {

// Whether to go one up from the magnitude that was cut off, of which `rest` in units of `unit` is
// left.
bool goes_up(Rounding rounding, bool negative, bool odd, uint64_t rest, uint64_t half) {
  if (rest == 0) return false;
  switch (rounding) {
    case Rounding::Nearest: return rest > half || (rest == half && odd);
    case Rounding::NearestAway: return rest >= half;
    case Rounding::Zero: return false;
    case Rounding::Down: return negative;
    case Rounding::Up: return !negative;
  }
  return false;
}

bool overflows_to_infinity(Rounding rounding, bool negative) {
  if (rounding == Rounding::Zero) return false;
  return rounding == Rounding::Down ? negative : rounding == Rounding::Up ? !negative : true;
}

}  // namespace

double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || bits & 1) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

uint32_t narrowed(double value, NarrowFormat f, Rounding rounding) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const bool negative = bits >> 63;
  const uint32_t sign = uint32_t(negative) << (f.fraction_bits + f.exponent_bits);
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.fraction_bits;
  if (std::isnan(value)) return infinity | ((1u << f.fraction_bits) - 1);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto mantissa = uint64_t(std::ldexp(fraction, 53));         // of 53 bits
  const int least = 2 - (1 << (f.exponent_bits - 1));               // of normal numbers
  const int top = std::max(exponent - 1, least);
  const int cut = top - f.fraction_bits - (exponent - 53);  // bits of the mantissa, at least 43
  const uint64_t kept = cut > 63 ? 0 : mantissa >> cut;
  const uint64_t rest = cut > 63 ? 1 : mantissa & ((uint64_t(1) << cut) - 1);
  const uint64_t half = cut > 63 ? 2 : uint64_t(1) << (cut - 1);
  const uint64_t rounded = kept + goes_up(rounding, negative, kept & 1, rest, half);
  // The leading bit of normal numbers counts as one of the exponent.
  const uint64_t out = rounded + (uint64_t(top - least) << f.fraction_bits);
  if (out >= infinity)
    return sign | (overflows_to_infinity(rounding, negative) ? infinity : infinity - 1);
  return sign | uint32_t(out);
}

HostDirection::HostDirection(Rounding rounding) {
  constexpr int kHost[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
  changed_ = rounding != Rounding::Nearest && rounding != Rounding::NearestAway;
  if (changed_) std::fesetround(kHost[size_t(rounding)]);
}

HostDirection::~HostDirection() {
  if (changed_) std::fesetround(FE_TONEAREST);
}

}  // namespace tuff::emu::ptx
