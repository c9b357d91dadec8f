#include "devices/vulkan/quirks/quirks.h"

#include <algorithm>

namespace tuff::devices::vulkan {
namespace {

constexpr const char* kMaliLocal =
    "Arm Mali Bifrost and Valhall OpenCL developer guide (101574), 7.3.2: local memory is main "
    "memory behind the caches";
constexpr Quirk kQuirks[] = {
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .max_loop_trips = 65535,
     .why = "LP_MAX_TGSI_LOOP_ITERATIONS ends the loops of an invocation silently after 65,535 in "
            "all"},
    {.driver = VK_DRIVER_ID_MESA_LLVMPIPE,
     .folds_zero_products = true,
     .why = "lp_build_mul gives 0 where a factor is a zero that LLVM knows while the kernel is "
            "built, though the other be NaN or infinite (Mesa 22.3.6)"},
    {.driver = VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
     .u32_to_f32_rounds_twice = true,
     .why = "OpConvertUToF of 0xdbef1f73 gives 0xdbef2000, the nearest float32 is 0xdbef1f00 "
            "(Debian's chromium-common 156)"},
    {.driver = VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
     .access_bytes = 4,
     .why = "OpBitcast of a pointer, which a vector among scalars needs, ends the process with "
            "SIGILL when the pipeline is made (seen with Debian's chromium-common 156)"},
    {.driver = VK_DRIVER_ID_ARM_PROPRIETARY, .shared_in_main_memory = true, .why = kMaliLocal},
    {.driver = VK_DRIVER_ID_MESA_PANVK, .shared_in_main_memory = true, .why = kMaliLocal},
};

template <class T>
void stricter(T& sum, T row) {
  if (row) sum = sum ? std::min(sum, row) : row;
}

}  // namespace

QuirkSum quirks_of(VkDriverId driver, uint32_t version) {
  QuirkSum sum;
  for (const Quirk& q : kQuirks) {
    if (q.driver != driver || version < q.first_version || version > q.last_version) continue;
    stricter(sum.max_loop_trips, q.max_loop_trips);
    stricter(sum.access_bytes, q.access_bytes);
    sum.u32_to_f32_rounds_twice |= q.u32_to_f32_rounds_twice;
    sum.folds_zero_products |= q.folds_zero_products;
    sum.shared_in_main_memory |= q.shared_in_main_memory;
  }
  return sum;
}

}  // namespace tuff::devices::vulkan
