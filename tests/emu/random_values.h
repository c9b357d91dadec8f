// Values that kernels are tried with, of a type. Called by the tests of emu that compare kernels
// with the same C on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "base/split_mix.h"

namespace tuff::emu::testing {

enum class Kind { Integer, F16, F32, F64 };
struct Type {
  Kind kind;
  uint32_t bytes;
};
constexpr Type kI8{Kind::Integer, 1}, kI16{Kind::Integer, 2}, kI32{Kind::Integer, 4},
    kI64{Kind::Integer, 8}, kHalf{Kind::F16, 2}, kSingle{Kind::F32, 4}, kDouble{Kind::F64, 8};

// Random bits, and among them ordinary and extreme values.
std::vector<uint8_t> random_values(Type type, uint32_t count, SplitMix64& random);
// All NaN are one.
uint64_t bits_at(const std::vector<uint8_t>& bytes, uint32_t k, Type type);

}  // namespace tuff::emu::testing
