#include "engine/stats.h"

#include "base/os.h"

namespace tuff::engine {

GlobalCounters& counters() {
  static GlobalCounters c;
  return c;
}

ScopedTimer::ScopedTimer(std::atomic<uint64_t>& counter)
    : counter_(counter), start_(os::monotonic_ns()) {}
ScopedTimer::~ScopedTimer() {
  counter_.fetch_add(os::monotonic_ns() - start_, std::memory_order_relaxed);
}

}  // namespace tuff::engine
