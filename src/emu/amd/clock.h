// The clock of the emulated GPUs: 100 MHz, one for all of them, as GET_CLOCK_COUNTERS tells it and
// as packets write timestamps. CLOCK_MONOTONIC_RAW, so that clocks of host and GPU never drift.
#pragma once

#include <cstdint>
#include <ctime>

#include "emu/kernel/clock.h"

namespace tuff::emu::amd {

inline constexpr uint64_t kGpuClockHz = 100'000'000;

inline uint64_t gpu_clock() {
  return clock_ns(CLOCK_MONOTONIC_RAW) / (1'000'000'000 / kGpuClockHz);
}

}  // namespace tuff::emu::amd
