// Clock: device ticks as nanoseconds of the host's monotonic clock.
// Used by the queue when timestamps are read. Calibrates by VK_EXT_calibrated_timestamps, else from
// a reference point that the queue measured.
#pragma once

#include <cstdint>
#include <memory>

#include "devices/vulkan/facts/context.h"

namespace tuff::devices::vulkan {

// Ticks have `bits` valid bits and wrap; `ns_per_tick` is VkPhysicalDeviceLimits::timestampPeriod.
struct TickScale {
  double ns_per_tick = 1;
  uint32_t bits = 64;
  uint64_t reference_ticks = 0;
  uint64_t reference_ns = 0;
  // Ticks up to half a wrap before or after the reference.
  uint64_t to_ns(uint64_t ticks) const;
};

class Clock {
 public:
  explicit Clock(std::shared_ptr<Context> context);
  bool ready() const { return ready_ || context_->facts.caps.calibratedTimestamps; }
  void set_reference(uint64_t ticks, uint64_t host_ns);
  // The scale now; calibrates anew where that is possible, since clocks drift.
  TickScale scale();

 private:
  std::shared_ptr<Context> context_;
  TickScale scale_;
  bool ready_ = false;
};

}  // namespace tuff::devices::vulkan
