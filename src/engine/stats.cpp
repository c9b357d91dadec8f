#include "engine/stats.h"

#include "base/os.h"
#include "engine/profile/profile.h"

namespace tuff::engine {

GlobalCounters& counters() {
  static GlobalCounters c;
  return c;
}

ScopedTimer::ScopedTimer(std::atomic<uint64_t>& counter, const char* name)
    : counter_(counter), name_(name), start_(os::monotonic_ns()) {}
ScopedTimer::~ScopedTimer() {
  const uint64_t end = os::monotonic_ns();
  counter_.fetch_add(end - start_, std::memory_order_relaxed);
  profile_host(name_, start_, end);
}

}  // namespace tuff::engine
