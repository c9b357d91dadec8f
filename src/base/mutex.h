// Mutex: for the locks that every replay takes. An uncontended lock is one instruction in the
// caller's code, where pthread's is calls into a library that has left the caches by then (0.3-0.5
// us after long work). A thread that finds it taken sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuff {

// A BasicLockable of the standard. The states are those of U. Drepper, "Futexes Are Tricky", 2011.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  void lock() {
    uint32_t free = kFree;
    if (!state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) wait();
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) wake();
  }

 private:
  static constexpr uint32_t kFree = 0, kTaken = 1, kAwaited = 2;
  [[gnu::cold, gnu::noinline]] void wait() {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited);
  }
  [[gnu::cold, gnu::noinline]] void wake() { state_.notify_one(); }
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace tuff
