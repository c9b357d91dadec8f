// Conversions between binary32/binary64 and the two 16-bit float formats, each with one rounding.
// IEEE 754-2019, 4.3.1 (roundTiesToEven); bfloat16 is binary32 with its low 16 bits cut off.
#include <tuff/dtype.h>

#include <bit>

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
  if (target <= 0) shift += 1 - target;  // subnormal result: fewer bits are kept
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

uint16_t f16_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return uint16_t(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
  if (magnitude >= 0x47800000u) return uint16_t(sign | 0x7C00u);  // 2^16 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 lets the FPU round at bit 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  magnitude += 0xC8000FFFu + (magnitude >> 13 & 1u);  // exponent re-biased by -112, half minus ulp
  return uint16_t(sign | magnitude >> 13);
}

float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  if (magnitude > 0x7C00u) return std::bit_cast<float>(sign | 0x7FC00000u | (magnitude & 0x3FFu) << 13);
  if (magnitude == 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u);
  if (magnitude < 0x0400u) {  // subnormal: an integer count of 2^-24
    const float value = float(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

uint16_t bf16_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

float bf16_to_f32(uint16_t h) {
  const bool nan = (h & 0x7FFFu) > 0x7F80u;
  return std::bit_cast<float>(uint32_t(h | (nan ? 0x40u : 0u)) << 16);
}

}  // namespace tuff
