// What is known to divide the part of an index that is not a number: a power of two, which stays a
// divisor of what wrapped. Used by the renderers, which keep that part and the constant apart, to
// say how accesses are aligned. Knows no ops.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tuff::render {

inline constexpr int64_t kMostDivisor = 1024;  // more alignment than any access asks for

inline int64_t divisor_of_product(int64_t divisor, int64_t factor) {
  return std::min(divisor * (factor & -factor), kMostDivisor);
}
// Of powers of two. A part that is a number alone does not count.
inline int64_t divisor_of_sum(bool a_varies, int64_t a, bool b_varies, int64_t b) {
  return !a_varies ? b : !b_varies ? a : std::min(a, b);
}
// Whether n divides the whole, where the constant is given.
inline bool divides(int64_t n, bool varies, int64_t divisor, int64_t constant) {
  return (!varies || divisor % n == 0) && constant % n == 0;
}

}  // namespace tuff::render
