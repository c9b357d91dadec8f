#include "base/os_fork.h"

#include <pthread.h>

#include <memory>
#include <utility>

namespace tuff::os {

namespace detail {
std::atomic<uint32_t> forks{0};
}

namespace {
void count_fork() { detail::forks.fetch_add(1, std::memory_order_relaxed); }
[[maybe_unused]] const int counted = ::pthread_atfork(nullptr, nullptr, count_fork);
}  // namespace

bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
  return ::pthread_atfork(before, in_parent, in_child) == 0;
}

void join_own(std::thread& thread, uint32_t started_at) {
  if (!thread.joinable()) return;
  if (started_at == forks())
    thread.join();
  else  // a thread that has begun since may have its number: not even to be detached
    (void)std::make_unique<std::thread>(std::move(thread)).release();
}

}  // namespace tuff::os
