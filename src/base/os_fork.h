// fork(): a child has the process's memory and none of its threads. Owners of
// threads, or of what a driver keeps for the process, ask which of the two they are in.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace tuff::os {

namespace detail {
extern std::atomic<uint32_t> forks;
}

// Rises in a child of fork(): 0 in a process that began with exec().
inline uint32_t forks() noexcept { return detail::forks.load(std::memory_order_relaxed); }

// Calls these around every fork() from now on: before it, and after it in the two processes.
bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept;

// Waits for a thread that was started when forks() was that; where it was the parent's there is
// nothing to wait for.
void join_own(std::thread& thread, uint32_t started_at);

}  // namespace tuff::os
