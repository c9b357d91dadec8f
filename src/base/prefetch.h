// Asks for memory that is soon read or written, and waits for nothing. Used on the way of a replay,
// whose lines and pages the kernels have thrown out of the caches: asked for together they come in
// the time of one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuff {

inline void prefetch(const void* memory, size_t size_bytes) {
  constexpr uintptr_t kLineBytes = 64;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  for (uintptr_t line = begin & ~(kLineBytes - 1); line < begin + size_bytes; line += kLineBytes)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 1);
}

}  // namespace tuff
