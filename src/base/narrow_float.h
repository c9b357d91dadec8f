// The float32 side of the 8- and 16-bit formats, inline and free of branches that compilers could
// not turn into selects, so that loops over arrays vectorize. Called by narrow_float.cpp and convert.cpp.
#pragma once

#include <bit>
#include <cstdint>

namespace tuff::narrow {

inline uint16_t f16_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Below 2^-14 adding 0.5 lets the FPU round at bit 2^-24.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  // The exponent re-biased by -112, and half an ulp less one, or exactly half for odd results.
  const uint32_t normal = (magnitude + 0xC8000FFFu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t nan = 0x7E00u | (magnitude >> 13 & 0x3FFu);
  uint32_t out = magnitude < 0x38800000u ? small : normal;
  out = magnitude >= 0x47800000u ? 0x7C00u : out;  // 2^16 and above
  out = magnitude > 0x7F800000u ? nan : out;
  return uint16_t(sign | out);
}

inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  const uint32_t widened = magnitude << 13;
  const uint32_t subnormal = std::bit_cast<uint32_t>(float(int32_t(magnitude)) * 0x1p-24f);
  uint32_t out = magnitude < 0x0400u ? subnormal : widened + 0x38000000u;
  out = magnitude >= 0x7C00u ? 0x7F800000u | widened : out;
  out = magnitude > 0x7C00u ? out | 0x400000u : out;  // a NaN becomes quiet
  return std::bit_cast<float>(sign | out);
}

inline uint16_t bf16_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40u;
  return uint16_t((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

inline float bf16_to_f32(uint16_t h) {
  const uint32_t quiet = (h & 0x7FFFu) > 0x7F80u ? 0x400000u : 0u;
  return std::bit_cast<float>(uint32_t(h) << 16 | quiet);
}

// The f32 magnitude in units of the format's last place, where its numbers are normal.
template <int kMantissaBits, uint32_t kRebias>
uint32_t rounded_magnitude(uint32_t magnitude) {
  constexpr int kCut = 23 - kMantissaBits;
  constexpr uint32_t kBelowHalf = (1u << (kCut - 1)) - 1;
  return (magnitude - (kRebias << 23) + kBelowHalf + (magnitude >> kCut & 1u)) >> kCut;
}

inline uint8_t f8e4m3fn_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v), magnitude = bits & 0x7FFFFFFFu;
  // Below 2^-6 adding 2^14 lets the FPU round at bit 2^-9.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const uint32_t normal = rounded_magnitude<3, 120>(magnitude);
  uint32_t out = normal > 0x7Fu ? 0x7Fu : normal;
  out = magnitude < 0x3C800000u ? small : out;
  return uint8_t((bits >> 24 & 0x80u) | out);
}

inline float f8e4m3fn_to_f32(uint8_t b) {
  const uint32_t magnitude = b & 0x7Fu;
  const uint32_t subnormal = std::bit_cast<uint32_t>(float(int32_t(magnitude)) * 0x1p-9f);
  uint32_t out = magnitude < 8u ? subnormal : (magnitude << 20) + 0x3C000000u;
  out = magnitude == 0x7Fu ? 0x7FC00000u : out;
  return std::bit_cast<float>((uint32_t(b & 0x80u) << 24) | out);
}

inline uint8_t f8e5m2_from_f32(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v), magnitude = bits & 0x7FFFFFFFu;
  // Below 2^-14 adding 2^7 lets the FPU round at bit 2^-16.
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p7f) - 0x43000000u;
  const uint32_t normal = rounded_magnitude<2, 112>(magnitude);
  uint32_t out = normal > 0x7Cu ? 0x7Cu : normal;
  out = magnitude < 0x38800000u ? small : out;
  out = magnitude > 0x7F800000u ? 0x7Fu : out;
  return uint8_t((bits >> 24 & 0x80u) | out);
}

// The upper byte of an f16.
inline float f8e5m2_to_f32(uint8_t b) { return f16_to_f32(uint16_t(b << 8)); }

}  // namespace tuff::narrow
