// Asks for memory without waiting for it: the replay before has thrown out of the caches what the
// next one reads. Called where a replay begins. Any address will do.
#pragma once

#include <cstddef>

namespace tuff::hcq {

inline void prefetch(const void* at, size_t bytes) {
  constexpr size_t kLine = 64;
  const auto* first = static_cast<const std::byte*>(at);
  for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(first + i);
}

}  // namespace tuff::hcq
