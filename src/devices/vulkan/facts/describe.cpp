#include "devices/vulkan/facts/describe.h"

#include <algorithm>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "devices/selector.h"
#include "devices/vulkan/facts/limits.h"
#include "devices/vulkan/quirks/quirks.h"
#include "render/binary.h"

namespace tuff::devices::vulkan {
namespace {

TargetFeatures make_features(const Caps& c) {
  TargetFeatures f;
  f.i8 = c.shaderInt8;
  f.i16 = c.shaderInt16;
  f.i64 = c.shaderInt64;
  f.f16 = f.f16_casts = c.shaderFloat16 && c.shaderInt16;  // bitcasts between both are needed
  f.folds_f16_casts = !c.roundedF16Casts;
  f.loses_wide_quotients = c.shaderInt64 && !c.wideQuotients;
  f.f64 = c.shaderFloat64 && c.shaderInt64;  // doubles are taken apart as 64-bit integers
  f.storage8 = c.storageBuffer8BitAccess;
  f.storage16 = c.storageBuffer16BitAccess;
  f.device_address = c.bufferDeviceAddress;
  f.atomics = true;
  f.atomic_f32_add = c.shaderBufferFloat32AtomicAdd;
  f.subgroup_arithmetic = c.subgroupArithmetic;
  f.subgroup_shuffle = c.subgroupShuffle;
  f.full_subgroups = c.computeFullSubgroups;
  f.signed_zero_inf_nan = c.signedZeroInfNanPreserve;
  f.denormals = c.denormPreserve;
  f.u32_to_f32 = c.exactU32ToF32;
  f.known_zero_products = c.zeroProducts;
  // The specification bounds exp2 by 3+2|x| ULP, log2 by 3 ULP and sqrt through inversesqrt; sin is
  // bounded in [-pi, pi] alone and absolutely, which is not enough.
  f.exp2 = f.sqrt = true;
  // Decomposed like sin, so that normal random numbers (Box-Muller) have the same bits as on the
  // CPU.
  f.log2 = false;
  f.sin = false;
  return f;
}

// 0, no limit, for software, which no watchdog ends.
uint64_t submission_ns(bool software) {
  constexpr int64_t kWatchedMs = 500;
  int64_t ms = env_int(Env::TUFF_SUBMIT_MS);
  if (ms == 0 && !software) ms = kWatchedMs;
  return static_cast<uint64_t>(ms) * 1'000'000;
}

const char* cap_state(const Facts& f, const CapRow& row) {
  const std::string failed = "," + f.failed_self_test + ",";
  if (failed.find(fmt::format(",{},", row.name)) != std::string::npos) return "failed self-test";
  return f.caps.*row.member ? "yes" : "no";
}

std::string version_text(uint32_t v) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v),
                     VK_API_VERSION_PATCH(v));
}

}  // namespace

Target make_target(const Facts& f) {
  const VkPhysicalDeviceLimits& limits = f.properties.limits;
  Target t;
  t.device = "VULKAN";
  t.renderer = "spirv";
  t.arch = f.version >= VK_API_VERSION_1_2 ? "spirv1.5" : "spirv1.3";
  t.identity = fmt::format("{} {} {:#x} {}", f.properties.deviceName, f.driver_info,
                           f.properties.driverVersion, hex(f.properties.pipelineCacheUUID));
  t.cores = f.software() ? os::core_count() : std::max(1u, f.compute_units);
  t.vector_registers = 128;  // Vulkan does not say; 128 to 255 on desktop GPUs
  t.has_local = true;
  t.subgroup_size = f.subgroup_size;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, t.max_groups.begin());
  std::copy_n(limits.maxComputeWorkGroupSize, 3, t.max_local.begin());
  t.max_invocations = limits.maxComputeWorkGroupInvocations;
  t.shared_bytes = limits.maxComputeSharedMemorySize;
  t.max_buffer_bytes = f.max_allocation_bytes;
  t.max_buffers = f.max_buffers;
  if (!f.caps.bufferDeviceAddress) {
    t.max_buffers -= 1;  // the argument block
    // A binding begins at the multiple of kBindingAlignment before the buffer.
    t.max_binding_bytes = limits.maxStorageBufferRange - render::kBindingAlignment;
  }
  t.max_loop_trips = f.max_loop_trips == UINT64_MAX ? 0 : f.max_loop_trips;
  const Quirks quirks = quirks_of(f.driver_id, f.properties.driverVersion);
  t.most_registers = quirks.most_registers;
  t.vector_bytes = quirks.access_bytes ? quirks.access_bytes : 16;
  t.max_submission_ns = submission_ns(f.software());
  t.launch_cost_ns = f.software() ? 40000 : 5000;
  t.has_fast_shared = !quirks.shared_in_main_memory;
  t.matrix_shapes = usable_shapes(f);
  t.features = make_features(f.caps);
  return t;
}

hcq::DeviceInfo make_info(const Facts& f, const std::string& name) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description = f.properties.deviceName;
  info.driver = f.driver_name.empty() ? "" : f.driver_name + " " + f.driver_info;
  info.api_version = version_text(f.properties.apiVersion);
  info.uuid = f.uuid_text();
  info.hardware = !f.software();
  info.memory_bytes = largest_local_heap(f.memory);
  info.features = {{"sync", f.caps.timelineSemaphore ? "timeline" : "fences"},
                   {"buffers", f.caps.bufferDeviceAddress ? "addresses" : "descriptors"},
                   {"disabled", f.disabled.empty() ? "none" : f.disabled},
                   {"self-tests", !f.failed_self_test.empty() ? "failed"
                                  : f.self_tested             ? "passed"
                                                              : "not run yet"},
                   {"subgroup size", std::to_string(f.subgroup_size)}};
  for (const MatrixShape& s : usable_shapes(f))
    info.features.emplace_back("matrices", to_string(s));
  for (auto& limit : limit_values(f)) info.features.push_back(std::move(limit));
  for (const CapRow& r : kCapRows) info.features.emplace_back(r.name, cap_state(f, r));
  return info;
}

}  // namespace tuff::devices::vulkan
