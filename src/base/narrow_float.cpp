// Conversions between binary32/binary64 and the two 16-bit float formats, each with one rounding.
// IEEE 754-2019, 4.3.1 (roundTiesToEven); bfloat16 is binary32 with its low 16 bits cut off.
#include <tuff/dtype.h>

#include <bit>

#include "base/narrow_float.h"

namespace tuff {
namespace {

constexpr uint64_t low_mask(int bits) { return (uint64_t{1} << bits) - 1; }

// Rounds a binary64 to a format of E exponent and M mantissa bits in integer arithmetic.
// From binary32 this needs no second version: every binary32 is a binary64.
template <int E, int M>
uint16_t round_from_f64(double v) {
  constexpr int kBias = (1 << (E - 1)) - 1;
  constexpr int kMaxExponent = (1 << E) - 1;
  constexpr uint32_t kInf = uint32_t(kMaxExponent) << M;
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const uint32_t sign = uint32_t(bits >> 63) << (E + M);
  const int exponent = int(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & low_mask(52);
  if (exponent == 0x7FF) {
    if (fraction == 0) return uint16_t(sign | kInf);
    const uint32_t quiet = 1u << (M - 1);
    return uint16_t(sign | kInf | quiet | uint32_t(fraction >> (52 - M)));
  }
  const int target = exponent - 1023 + kBias;  // biased exponent of the result
  if (target >= kMaxExponent) return uint16_t(sign | kInf);
  int shift = 52 - M;
  if (target <= 0) shift += 1 - target;                     // subnormal result: fewer bits are kept
  if (shift >= 54 || exponent == 0) return uint16_t(sign);  // below half the least subnormal
  const uint64_t significand = fraction | uint64_t{1} << 52;
  uint64_t kept = significand >> shift;
  const uint64_t rest = significand & low_mask(shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A carry out of the mantissa raises the exponent, up to infinity, by plain addition.
  const uint64_t magnitude = target > 0 ? (uint64_t(target - 1) << M) + kept : kept;
  return uint16_t(sign | uint32_t(magnitude));
}

}  // namespace

uint16_t f16_from_f64(double v) { return round_from_f64<5, 10>(v); }
uint16_t bf16_from_f64(double v) { return round_from_f64<8, 7>(v); }

uint16_t f16_from_f32(float v) { return narrow::f16_from_f32(v); }
float f16_to_f32(uint16_t h) { return narrow::f16_to_f32(h); }
uint16_t bf16_from_f32(float v) { return narrow::bf16_from_f32(v); }
float bf16_to_f32(uint16_t h) { return narrow::bf16_to_f32(h); }

}  // namespace tuff
