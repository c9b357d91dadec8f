// How many random cases a property test runs.
#pragma once

#include <cstdint>

namespace tuff::testing {

// Sanitizers look for errors of memory, which show early: a quarter is enough there, and takes as
// long as all do without.
constexpr uint32_t random_cases(uint32_t count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (count + 3) / 4;
#else
  return count;
#endif
}

}  // namespace tuff::testing
