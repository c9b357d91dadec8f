// The register MODE as floating-point arithmetic obeys it: rounding, denormals, clamping. Called by
// lanes.h and by what executes steps; knows no operands.
// Source: AMD, "RDNA3 Instruction Set Architecture", 3.3.3 (MODE), 7.2 (input and output
// modifiers); LLVM, "User Guide for AMDGPU Backend", FLOAT_ROUND_MODE and FLOAT_DENORM_MODE.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/narrow_float.h"
#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {

inline constexpr uint32_t kDefaultMode = 0xF0;  // denormals kept, round to nearest even
inline constexpr uint32_t kSingleDenormals = 0x30;
inline constexpr uint32_t kRoundingBits = 0xF, kFloatBits = 0xFF, kDx10Clamp = 1u << 8,
                          kIeee = 1u << 9;
// What else there is (exceptions, FP16_OVFL, debugging) has no meaning here.
inline constexpr uint32_t kKnownModeBits = 0x3FF;

enum class Rounding : uint8_t { Nearest, Up, Down, Zero };

// Halves share the fields of doubles.
template <int bytes>
Rounding rounding_of(uint32_t mode) {
  return Rounding(mode >> (bytes == 4 ? 0 : 2) & 3);
}
template <int bytes>
bool keeps_input_denormals(uint32_t mode) {
  return mode >> (bytes == 4 ? 4 : 6) & 1;
}
template <int bytes>
bool keeps_output_denormals(uint32_t mode) {
  return mode >> (bytes == 4 ? 5 : 7) & 1;
}

// A number of `bytes` bytes; a half is held in a float.
template <int bytes, class T>
T flush_denormal(T value) {
  const T least = bytes == 2 ? T(0x1p-14) : std::numeric_limits<T>::min();
  return std::fabs(value) < least ? std::copysign(T(0), value) : value;
}
inline float flush_denormal(float value) { return flush_denormal<4>(value); }

// As narrow::f16_from_f32, whatever the rounding of this thread is.
uint16_t f16_directed(float value, Rounding rounding);
inline uint16_t f16_rounded(float value, uint32_t mode) {
  const Rounding rounding = rounding_of<2>(mode);
  return rounding == Rounding::Nearest ? narrow::f16_from_f32(value)
                                       : f16_directed(value, rounding);
}

// Which field of MODE rounds the result of an operation.
enum class RoundedBy : uint8_t {
  Nothing,      // exact, an estimate of the hardware's, or a rounding of its own
  Single,       //
  Double,       // of doubles and halves
  Both,         // the two have to agree: which one it is is not written down, or it is both
  NearestOnly,  // what another rounding does is not written down
  DefaultOnly,  // what another rounding, or flushing denormals, does is not written down
  DefaultUnlessDenormal,  // nor what flushing those of 32 bits does: handlers report them
};
RoundedBy rounded_by(Op op);
bool is_emulated(RoundedBy kind, uint32_t mode);

// Has the host round as `kind` says, until it goes.
class HostRounding {
 public:
  HostRounding(RoundedBy kind, uint32_t mode);
  ~HostRounding();
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace tuff::emu::rdna
