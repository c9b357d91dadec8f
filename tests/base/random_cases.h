// How many random cases a property test runs.
#pragma once

#include <cstdint>

namespace tuff::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Sanitizers look for errors of memory, which show early: a quarter is enough there, and takes as
// long as all do without.
constexpr uint32_t random_cases(uint32_t count) { return kSanitized ? (count + 3) / 4 : count; }

// How often those cases must have met something, where all of them must meet it count times. The
// few of a part scatter more about their share: half of it is asked for there.
constexpr uint32_t random_hits(uint32_t count) {
  return random_cases(count) == count ? count : (random_cases(count) + 1) / 2;
}

}  // namespace tuff::testing
