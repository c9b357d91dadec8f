#include "devices/word_wait.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/os.h"

namespace tuff::devices {
namespace {

constexpr uint64_t kSpinNs = 20'000;
// A thread that waits long sleeps between two looks, at first shortly.
constexpr uint64_t kFirstSleepNs = 20'000, kLongestSleepNs = 500'000;

}  // namespace

bool wait_for_word(uint64_t& word, uint64_t value, uint64_t timeout_ns,
                   const std::function<void()>& ask) {
  const auto reached = [&] {
    return std::atomic_ref(word).load(std::memory_order_acquire) >= value;
  };
  const uint64_t begin = os::monotonic_ns(), end = begin + timeout_ns;
  const uint64_t spin_end = begin + std::min(timeout_ns, kSpinNs);
  while (!reached() && os::monotonic_ns() < spin_end) os::cpu_relax();
  for (uint64_t sleep_ns = kFirstSleepNs; !reached();) {
    const uint64_t now = os::monotonic_ns();
    if (now >= end) return false;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(sleep_ns, end - now)));
    if (sleep_ns == kLongestSleepNs && ask) ask();
    sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs);
  }
  return true;
}

}  // namespace tuff::devices
