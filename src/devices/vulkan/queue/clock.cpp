#include "devices/vulkan/queue/clock.h"

#include <cmath>

namespace tuff::devices::vulkan {

uint64_t TickScale::to_ns(uint64_t ticks) const {
  uint32_t shift = 64 - bits;
  // Sign-extended difference in `bits` bits: right across one wrap of the counter.
  int64_t delta = static_cast<int64_t>((ticks - reference_ticks) << shift) >> shift;
  return reference_ns +
         static_cast<int64_t>(std::llround(static_cast<double>(delta) * ns_per_tick));
}

Clock::Clock(std::shared_ptr<Context> context) : context_(std::move(context)) {
  scale_.ns_per_tick = context_->facts.properties.limits.timestampPeriod;
  scale_.bits = context_->facts.timestamp_bits ? context_->facts.timestamp_bits : 64;
}

void Clock::set_reference(uint64_t ticks, uint64_t host_ns) {
  scale_.reference_ticks = ticks;
  scale_.reference_ns = host_ns;
  ready_ = true;
}

TickScale Clock::scale() {
  Context& c = *context_;
  if (!c.facts.caps.calibratedTimestamps) return scale_;
  VkCalibratedTimestampInfoEXT domains[2] = {
      {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_DEVICE_EXT},
      {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr,
       VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
  uint64_t values[2] = {}, deviation = 0;
  c.check(c.api.vkGetCalibratedTimestampsEXT(c.device, 2, domains, values, &deviation),
          "vkGetCalibratedTimestampsEXT");
  set_reference(values[0], values[1]);
  return scale_;
}

}  // namespace tuff::devices::vulkan
