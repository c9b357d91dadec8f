// Packs temporaries into arenas by lifetime: best fit, largest first. Called by schedule().
// Knows positions and sizes, nothing of calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tuff::sched {

inline constexpr uint64_t kArenaAlignment = 256;

struct Lifetime {
  uint32_t first = 0, last = 0;  // positions, both inclusive
  uint64_t size_bytes = 0;
};

struct Packing {
  std::vector<uint64_t> offsets;  // 256-aligned, per lifetime
  uint64_t size_bytes = 0;        // of the arena
};

// No two lifetimes that share a position share a byte.
Packing pack(std::span<const Lifetime> lifetimes);

}  // namespace tuff::sched
