// raise_to(): an atomic value that only rises.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuff {

inline void raise_to(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value.load(std::memory_order_relaxed);
  while (before < to && !value.compare_exchange_weak(before, to, std::memory_order_acq_rel)) {}
}

}  // namespace tuff
