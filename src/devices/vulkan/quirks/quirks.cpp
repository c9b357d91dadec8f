#include "devices/vulkan/quirks/quirks.h"

#include <algorithm>

namespace tuff::devices::vulkan {
namespace {

constexpr uint32_t kAll = UINT32_MAX;

constexpr Quirk kQuirks[] = {
    {VK_DRIVER_ID_MESA_LLVMPIPE, 0, kAll, 65535, 0, false,
     "LP_MAX_TGSI_LOOP_ITERATIONS ends the loops of an invocation silently after 65,535 in all"},
    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 0, kAll, 0, 0, true,
     "OpConvertUToF of 0xdbef1f73 gives 0xdbef2000, the nearest float32 is 0xdbef1f00 (Debian's "
     "chromium-common 156)"},
    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER, 0, kAll, 0, 4, false,
     "OpBitcast of a pointer, which a vector among scalars needs, ends the process with SIGILL "
     "when "
     "the pipeline is made (seen with Debian's chromium-common 156)"},
};

template <class T>
void stricter(T& sum, T row) {
  if (row) sum = sum ? std::min(sum, row) : row;
}

}  // namespace

std::span<const Quirk> quirk_rows() { return kQuirks; }

QuirkSum quirks_of(VkDriverId driver, uint32_t version) {
  QuirkSum sum;
  for (const Quirk& q : kQuirks) {
    if (q.driver != driver || version < q.first_version || version > q.last_version) continue;
    stricter(sum.max_loop_trips, q.max_loop_trips);
    stricter(sum.access_bytes, q.access_bytes);
    sum.u32_to_f32_rounds_twice |= q.u32_to_f32_rounds_twice;
  }
  return sum;
}

}  // namespace tuff::devices::vulkan
