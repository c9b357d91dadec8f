// Rounding that the host does not do by itself: of sums that are rounded once more, to narrow
// formats, and in directions. Called by what executes floating point.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "emu/ptx/types.h"

namespace tuff::emu::ptx {

// a + b rounded to odd, so that rounding it once more to at most 51 bits is as rounding the exact
// sum. Source: Boldo, Melquiond, "Emulation of FMA and Correctly Rounded Sums" (2008).
double sum_to_odd(double a, double b);

struct NarrowFormat {
  int fraction_bits = 10, exponent_bits = 5;
};
inline constexpr NarrowFormat kHalf{10, 5}, kBrain{7, 8}, kTensor{10, 8};  // tf32 without low bits

// The format's bits; NaN becomes the one whose other bits are all set.
uint32_t narrowed(double value, NarrowFormat format, Rounding rounding);

template <class T>
T flushed(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min() ? std::copysign(T(0), value) : value;
}

// PTX ISA, 9.7.3: NaN and what is below 0 become +0.
template <class T>
T saturated_to_unit(T value) {
  return value > 0 ? (value < 1 ? value : T(1)) : T(0);
}

// Has the host round so until it goes.
class HostDirection {
 public:
  explicit HostDirection(Rounding rounding);
  ~HostDirection();
  HostDirection(const HostDirection&) = delete;
  HostDirection& operator=(const HostDirection&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace tuff::emu::ptx
