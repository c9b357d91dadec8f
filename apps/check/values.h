// Operands of the conformance suite's cases: drawn from a seed, or the special values of a dtype.
// The same on every machine. Called by the suites and the random graphs. Must never know ops'
// meanings beyond the domain that a caller names.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/split_mix.h"
#include "ir/interpret.h"

namespace tuff::check {

class Draw {
 public:
  // Different names give unrelated streams of one seed.
  Draw(uint64_t seed, std::string_view name);
  uint64_t bits() { return random_.next(); }
  double uniform(double low, double high);
  int64_t integer(int64_t low, int64_t high);  // both included

 private:
  SplitMix64 random_;
};

// Which values an op is promised to get right, or a test wants.
enum class Domain : uint8_t {
  Any,       // integers of any bits; floats of either sign from 2^-6 to 2^6
  Positive,  // the magnitudes of Any
  Divisor,  // Any; as special values those whose quotient Vulkan promises: none below 2^-14 or vast
  Exponent,  // floats from -12 to 12
  Angle,     // floats from -100 to 100
  Shift,     // 0 to the width of the dtype less one
  Wide,      // floats from 2^-6 to 2^34 as far as the dtype goes: what saturates when cast
  Quarters,  // floats: multiples of 1/4 up to 8 in magnitude: any order of 2^18 sums is exact
  Powers,    // floats: 1/2, 1 or 2 of either sign: any order of products is exact
  Near,      // floats from 1/2 to 2: sums round, and nothing cancels
};

ir::HostArray draw_array(Draw& draw, DType t, const ir::IntVec& shape, Domain domain);

// Zeros of both signs, infinities, NaN, denormals, the ends of the range; the extremes of integers;
// both bools. What the domain excludes is missing.
std::vector<Scalar> special_values(DType t, Domain domain);

ir::HostArray array_of(DType t, const ir::IntVec& shape, const std::vector<Scalar>& values);

}  // namespace tuff::check
