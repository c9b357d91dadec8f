#include "devices/vulkan/quirks/quirks.h"

#include <algorithm>

namespace tuff::devices::vulkan {
namespace {

constexpr const char* kMaliLocal =
    "Arm Mali Bifrost and Valhall OpenCL developer guide (101574), 7.3.2: local memory is main "
    "memory behind the caches";
constexpr const char* kRdnaRegisters =
    "RDNA3 instruction set guide, 3.3: a wave has up to 256 VGPRs; so have RDNA1 and 2 and GCN";
constexpr const char* kNvidiaRegisters =
    "CUDA C++ programming guide, technical specifications per compute capability: at most 255 "
    "registers to a thread since 3.5";
struct QuirkRow {
  VkDriverId driver;
  Quirks quirks;
  const char* why;  // with the place where it was seen
  // VkPhysicalDeviceProperties::driverVersion, inclusive.
  uint32_t first_version = 0, last_version = UINT32_MAX;
};
constexpr QuirkRow kRows[] = {
    {VK_DRIVER_ID_MESA_LLVMPIPE,
     {.max_loop_trips = 65535},
     "LP_MAX_TGSI_LOOP_ITERATIONS ends the loops of an invocation silently after 65,535 in all"},
    {VK_DRIVER_ID_MESA_LLVMPIPE,
     {.folds_zero_products = true},
     "lp_build_mul gives 0 where a factor is a zero that LLVM knows while the kernel is built, "
     "though the other be NaN or infinite (Mesa 22.3.6)"},
    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
     {.u32_to_f32_rounds_twice = true},
     "OpConvertUToF of 0xdbef1f73 gives 0xdbef2000, the nearest float32 is 0xdbef1f00 (Debian's "
     "chromium-common 156)"},
    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
     {.access_bytes = 4},
     "OpBitcast of a pointer, which a vector among scalars needs, ends the process with SIGILL "
     "when the pipeline is made (seen with Debian's chromium-common 156)"},
    {VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     {.folds_f16_casts = true},
     "OpFConvert to 16 bits and back gives the float it began with: -1.00048828 where -1 is the "
     "nearest float16 (580.159.04 on an H200)"},
    {VK_DRIVER_ID_NVIDIA_PROPRIETARY,
     {.loses_wide_quotients = true},
     "OpSDiv and OpUDiv of 64 bits by one divisor, four to an invocation, with the divisor added: 5 / "
     "3 + 3 is 3 (580.159.04 on an H200)"},
    {VK_DRIVER_ID_NVIDIA_PROPRIETARY, {.most_registers = 255}, kNvidiaRegisters},
    {VK_DRIVER_ID_MESA_NVK, {.most_registers = 255}, kNvidiaRegisters},
    {VK_DRIVER_ID_MESA_RADV,
     {.misreads_denormals = true},
     "ACO reads a vector register that nobody wrote where a uniform value's reciprocal, root or "
     "logarithm is scaled (Mesa 22.3.6; right in 25.0.7)",
     0,
     VK_MAKE_VERSION(25, 0, 6)},
    {VK_DRIVER_ID_AMD_PROPRIETARY, {.most_registers = 256}, kRdnaRegisters},
    {VK_DRIVER_ID_AMD_OPEN_SOURCE, {.most_registers = 256}, kRdnaRegisters},
    {VK_DRIVER_ID_MESA_RADV, {.most_registers = 256}, kRdnaRegisters},
    {VK_DRIVER_ID_ARM_PROPRIETARY, {.shared_in_main_memory = true}, kMaliLocal},
    {VK_DRIVER_ID_MESA_PANVK, {.shared_in_main_memory = true}, kMaliLocal},
};

template <class T>
void stricter(T& sum, T row) {
  if (row) sum = sum ? std::min(sum, row) : row;
}

}  // namespace

Quirks quirks_of(VkDriverId driver, uint32_t version) {
  Quirks sum;
  for (const auto& [of, q, why, first, last] : kRows) {
    if (of != driver || version < first || version > last) continue;
    stricter(sum.max_loop_trips, q.max_loop_trips);
    stricter(sum.access_bytes, q.access_bytes);
    stricter(sum.most_registers, q.most_registers);
    sum.u32_to_f32_rounds_twice |= q.u32_to_f32_rounds_twice;
    sum.folds_zero_products |= q.folds_zero_products;
    sum.folds_f16_casts |= q.folds_f16_casts;
    sum.loses_wide_quotients |= q.loses_wide_quotients;
    sum.misreads_denormals |= q.misreads_denormals;
    sum.shared_in_main_memory |= q.shared_in_main_memory;
  }
  return sum;
}

}  // namespace tuff::devices::vulkan
