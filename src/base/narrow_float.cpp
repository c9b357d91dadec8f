// Conversions between binary32/binary64 and the narrow float formats, each with one rounding.
// IEEE 754-2019, 4.3.1 (roundTiesToEven); bfloat16 is binary32 with its low 16 bits cut off.
#include <tuff/dtype.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/narrow_float.h"

namespace tuff {
namespace {

constexpr uint64_t low_mask(int bits) { return (uint64_t{1} << bits) - 1; }

// A finite binary64's magnitude rounded to a format of E exponent and M mantissa bits in integer
// arithmetic; beyond the format's largest number by exponents that it does not have.
// From binary32 this needs no second version: every binary32 is a binary64.
template <int E, int M>
uint64_t rounded_magnitude(uint64_t bits) {
  constexpr int kBias = (1 << (E - 1)) - 1;
  const int exponent = int(bits >> 52 & 0x7FF);
  const int target = exponent - 1023 + kBias;  // biased exponent of the result
  int shift = 52 - M;
  if (target <= 0) shift += 1 - target;             // subnormal result: fewer bits are kept
  if (shift >= 54 || exponent == 0) return 0;       // below half the least subnormal
  const uint64_t significand = (bits & low_mask(52)) | uint64_t{1} << 52;
  uint64_t kept = significand >> shift;
  const uint64_t rest = significand & low_mask(shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A carry out of the mantissa raises the exponent, up to infinity, by plain addition.
  return target > 0 ? (uint64_t(target - 1) << M) + kept : kept;
}

template <int E, int M>
uint16_t round_from_f64(double v) {
  constexpr uint32_t kInf = ((1u << E) - 1) << M;
  const uint64_t bits = std::bit_cast<uint64_t>(v), fraction = bits & low_mask(52);
  const uint32_t sign = uint32_t(bits >> 63) << (E + M);
  if ((bits >> 52 & 0x7FF) != 0x7FF)
    return uint16_t(sign | uint32_t(std::min<uint64_t>(rounded_magnitude<E, M>(bits), kInf)));
  if (fraction == 0) return uint16_t(sign | kInf);
  const uint32_t quiet = 1u << (M - 1);
  return uint16_t(sign | kInf | quiet | uint32_t(fraction >> (52 - M)));
}

// `beyond` is what all above the largest number becomes.
template <int E, int M>
uint8_t f8_from_f64(double v, uint8_t beyond) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  if (std::isnan(v)) return sign | 0x7F;
  if (std::isinf(v)) return sign | beyond;
  const uint64_t magnitude = rounded_magnitude<E, M>(std::bit_cast<uint64_t>(v));
  return sign | uint8_t(std::min<uint64_t>(magnitude, beyond));
}

}  // namespace

uint16_t f16_from_f64(double v) { return round_from_f64<5, 10>(v); }
uint16_t bf16_from_f64(double v) { return round_from_f64<8, 7>(v); }

uint16_t f16_from_f32(float v) { return narrow::f16_from_f32(v); }
float f16_to_f32(uint16_t h) { return narrow::f16_to_f32(h); }
uint16_t bf16_from_f32(float v) { return narrow::bf16_from_f32(v); }
float bf16_to_f32(uint16_t h) { return narrow::bf16_to_f32(h); }

uint8_t f8e4m3fn_from_f64(double v) { return f8_from_f64<4, 3>(v, 0x7F); }
uint8_t f8e5m2_from_f64(double v) { return f8_from_f64<5, 2>(v, 0x7C); }

uint8_t f8e4m3fn_from_f32(float v) { return narrow::f8e4m3fn_from_f32(v); }
float f8e4m3fn_to_f32(uint8_t b) { return narrow::f8e4m3fn_to_f32(b); }
uint8_t f8e5m2_from_f32(float v) { return narrow::f8e5m2_from_f32(v); }
float f8e5m2_to_f32(uint8_t b) { return narrow::f8e5m2_to_f32(b); }

}  // namespace tuff
