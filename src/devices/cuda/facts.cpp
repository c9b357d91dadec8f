#include "devices/cuda/facts.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "devices/selector.h"

namespace tuff::devices::cuda {
namespace {

constexpr int kOldest = 75;  // Turing
constexpr uint64_t kWatchdogNs = 500'000'000;

// What runs on a compute capability and, but for the architecture with code of its own, on later
// ones (PTX ISA, .target).
struct Row {
  int capability;
  const char* target;
  bool later = true;
};
constexpr Row kRows[] = {{75, "nvptx-sm_75"}, {80, "nvptx-sm_80"},         {86, "nvptx-sm_86"},
                         {89, "nvptx-sm_89"}, {90, "nvptx-sm_90a", false}, {100, "nvptx-sm_100"},
                         {120, "nvptx-sm_120"}};

void check(const CudaApi& api, CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) fail<Unsupported>("{} returned {}", call, error_text(api, code));
}

int attribute(const CudaApi& api, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(api, api.DeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

std::string why_unusable(const Facts& f, const CudaApi& api) {
  const auto has = [&](CUdevice_attribute which) { return attribute(api, f.device, which) != 0; };
  if (f.capability < kOldest)
    return fmt::format("its compute capability is {}.{}: 7.5 or later is needed", f.capability / 10,
                       f.capability % 10);
  if (attribute(api, f.device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
    return "its compute mode is 'prohibited': nvidia-smi -c DEFAULT changes that";
  if (!has(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) || !has(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY))
    return "it has no addresses in common with the host";
  if (!has(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
    return "its driver has no 64-bit memory operations in streams";
  return {};
}

Facts facts_of(const CudaApi& api, int index) {
  Facts f;
  check(api, api.DeviceGet(&f.device, index), "cuDeviceGet");
  char name[256] = {};
  check(api, api.DeviceGetName(name, sizeof name - 1, f.device), "cuDeviceGetName");
  f.name = name;
  CUuuid uuid{};
  check(api, api.DeviceGetUuid(&uuid, f.device), "cuDeviceGetUuid");
  f.uuid = hex({reinterpret_cast<const uint8_t*>(uuid.bytes), sizeof uuid.bytes});
  size_t bytes = 0;
  check(api, api.DeviceTotalMem(&bytes, f.device), "cuDeviceTotalMem");
  f.memory_bytes = bytes;
  check(api, api.DriverGetVersion(&f.driver_version), "cuDriverGetVersion");
  const auto get = [&](CUdevice_attribute which) { return attribute(api, f.device, which); };
  f.capability = 10 * get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                 get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  f.multiprocessors = std::max(1, get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  f.copy_engines = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  f.l2_bytes = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  f.shared_bytes = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  f.integrated = get(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  f.has_watchdog = get(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT) != 0;
  f.registered_at_host_address =
      get(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0;
  f.missing = why_unusable(f, api);
  return f;
}

}  // namespace

std::string Facts::target_name() const {
  const Row* best = &kRows[0];
  for (const Row& r : kRows) {
    if (r.capability == capability || (r.capability < capability && r.later)) best = &r;
  }
  return best->target;
}

std::vector<Facts> list_devices(const CudaApi& api) {
  int count = 0;
  check(api, api.DeviceGetCount(&count), "cuDeviceGetCount");
  if (count == 0) fail<Unsupported>("the CUDA driver lists no GPU");
  std::vector<Facts> devices;
  for (int i = 0; i < count; ++i) devices.push_back(facts_of(api, i));
  return devices;
}

hcq::DeviceInfo describe(const Facts& f, const std::string& name) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description = fmt::format("{}, {} multiprocessors", f.name, f.multiprocessors);
  info.driver = "CUDA driver";
  info.api_version = fmt::format("{}.{}", f.driver_version / 1000, f.driver_version % 1000 / 10);
  info.uuid = f.uuid;
  info.hardware = true;
  info.memory_bytes = f.memory_bytes;
  info.features = {
      {"compute_capability", fmt::format("{}.{}", f.capability / 10, f.capability % 10)},
      {"proven_on_hardware", "no"},
      {"memory", f.integrated ? "shared with the CPU" : "staged"},
      {"copy_queue", f.copy_engines > 0 ? "yes" : "no"}};
  return info;
}

Target target_of(const Facts& f) {
  Target t = builtin_target(f.target_name());
  t.identity = fmt::format("cuda:{}:{}:{}sm", f.capability, f.name, f.multiprocessors);
  t.cores = uint32_t(f.multiprocessors);
  if (f.l2_bytes > 0) t.l2_bytes = uint64_t(f.l2_bytes);
  if (f.shared_bytes > 0) t.shared_bytes = std::min(t.shared_bytes, uint32_t(f.shared_bytes));
  t.max_buffer_bytes = t.max_binding_bytes = f.memory_bytes;
  if (f.has_watchdog) t.max_submission_ns = kWatchdogNs;
  return t;
}

}  // namespace tuff::devices::cuda
