#include "devices/vulkan/quirks/quirks.h"

#include <algorithm>

namespace tuff::devices::vulkan {
namespace {

constexpr uint32_t kAll = UINT32_MAX;

constexpr Quirk kQuirks[] = {
    {VK_DRIVER_ID_MESA_LLVMPIPE, 0, kAll, 65535,
     "LP_MAX_TGSI_LOOP_ITERATIONS ends the loops of an invocation silently after 65,535 in all"},
};

}  // namespace

std::span<const Quirk> quirk_rows() { return kQuirks; }

QuirkSum quirks_of(VkDriverId driver, uint32_t version) {
  QuirkSum sum;
  for (const Quirk& q : kQuirks) {
    if (q.driver != driver || version < q.first_version || version > q.last_version) continue;
    if (q.max_loop_trips) {
      sum.max_loop_trips =
          sum.max_loop_trips ? std::min(sum.max_loop_trips, q.max_loop_trips) : q.max_loop_trips;
    }
  }
  return sum;
}

}  // namespace tuff::devices::vulkan
