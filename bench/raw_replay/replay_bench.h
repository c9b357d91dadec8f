// What raw_replay measures: the replay of a CommandGraph of dependent kernels and, in turns with it,
// the same dispatches written directly against the device's API. Must never parse or print.
#pragma once

#include <cstdint>
#include <string>

namespace tuff::bench {

struct ReplayWorkload {
  std::string device;
  uint32_t kernels = 1000;
  uint32_t replays = 200;
  uint32_t inputs = 8;     // <= kernels; each is read by one kernel
  uint32_t elements = 16;  // of every buffer
  bool custom = false;     // the kernel is a user's, in GLSL or C
};

// Medians over the replays. Wall times are from launch to completion.
struct ReplayFigures {
  std::string device, driver;
  uint32_t barriers = 0;
  uint32_t patched_words = 0;  // per replay, of 64 bits
  double wall_us = 0;           // of a replay
  double host_us = 0;           // the calling thread's in replay(), without the driver's submit
  double driver_submit_us = 0;  // the driver's part of that call
  double host_behind_us = 0;    // as host_us, of a replay launched right behind another
  double raw_wall_us = 0;       // of the same dispatches without tuff
  double in_flight_us = 0;      // per replay where two are in flight
  double copy_us = 0;           // a plain memcpy of as many words
  double ratio_to_raw() const { return wall_us / raw_wall_us; }
};

// For a device whose kind has a raw replay. Throws Error if a result is not what the kernels had to
// compute.
ReplayFigures measure_replay(const ReplayWorkload& workload);

}  // namespace tuff::bench
