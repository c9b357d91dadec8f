// The system's clocks in ns, for what emulated GPUs and their kernel drivers tell of time.
#pragma once

#include <cstdint>
#include <ctime>

namespace tuff::emu {

inline uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

}  // namespace tuff::emu
