#include "devices/opencl/facts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "devices/selector.h"

namespace tuff::devices::opencl {
namespace {

// The features of TUFF_CL_DISABLE.
struct Disabled {
  bool svm = false, fine_svm = false, f64 = false, f16 = false;
};

Disabled disabled_features() {
  Disabled out;
  const std::pair<const char*, bool*> known[] = {
      {"svm", &out.svm}, {"fine-svm", &out.fine_svm}, {"f64", &out.f64}, {"f16", &out.f16}};
  for (const std::string& word : split(env_text(Env::TUFF_CL_DISABLE), ',')) {
    const auto row = std::ranges::find_if(known, [&](const auto& r) { return word == r.first; });
    if (row == std::end(known))
      fail<InvalidArgument>(
          "TUFF_CL_DISABLE: there is no feature '{}'; there are svm, fine-svm, f64, f16", word);
    *row->second = true;
  }
  return out;
}

// A variable with two values; nothing where it is empty.
std::optional<bool> choice(Env variable, const char* yes) {
  const std::string text = env_text(variable);
  return text.empty() ? std::nullopt : std::optional(text == yes);
}

// What a device does not know is 0.
template <class T>
T number(const ClApi& api, cl_device_id id, cl_device_info what) {
  return info<T>(api.clGetDeviceInfo, id, what).value_or(T{});
}

std::string text(const ClApi& api, cl_device_id id, cl_device_info what) {
  return info_text(api.clGetDeviceInfo, id, what).value_or("");
}

// "OpenCL 3.0 ..." or "OpenCL C 1.2 ..." as 300, 102.
uint32_t version_number(const std::string& version) {
  const size_t digit = version.find_first_of("0123456789");
  unsigned major = 0, minor = 0;
  if (digit == std::string::npos ||
      std::sscanf(version.c_str() + digit, "%u.%u", &major, &minor) != 2)
    return 0;
  return major * 100 + minor;
}

bool has_extension(const Facts& f, const char* name) {
  return (" " + f.extensions + " ").find(fmt::format(" {} ", name)) != std::string::npos;
}

std::string uuid_of(const ClApi& api, const Facts& f) {
  if (!has_extension(f, "cl_khr_device_uuid")) return {};
  using Bytes = std::array<uint8_t, CL_UUID_SIZE_KHR>;
  const auto bytes = info<Bytes>(api.clGetDeviceInfo, f.id, CL_DEVICE_UUID_KHR);
  return bytes ? hex(*bytes) : "";
}

MemoryTier tier_of(const ClApi& api, const Facts& f, const Disabled& disabled) {
  const bool functions =
      api.clSVMAlloc && api.clSVMFree && api.clSetKernelArgSVMPointer && api.clEnqueueSVMMemcpy;
  if (disabled.svm || !functions || version_number(f.version) < 200) return MemoryTier::Buffers;
  const auto svm = number<cl_device_svm_capabilities>(api, f.id, CL_DEVICE_SVM_CAPABILITIES);
  if ((svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && !disabled.fine_svm) return MemoryTier::FineSvm;
  return svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER ? MemoryTier::CoarseSvm : MemoryTier::Buffers;
}

std::string why_unusable(const ClApi& api, const Facts& f) {
  if (version_number(f.version) < 102)
    return fmt::format("{} is too old: OpenCL 1.2 is needed", f.version);
  if (!number<cl_bool>(api, f.id, CL_DEVICE_AVAILABLE)) return "the driver says it is unavailable";
  if (!number<cl_bool>(api, f.id, CL_DEVICE_COMPILER_AVAILABLE))
    return "its driver has no compiler of OpenCL C";
  if (!f.full_profile) return "an embedded profile: 64-bit integers and rounding are not promised";
  if (number<cl_uint>(api, f.id, CL_DEVICE_ADDRESS_BITS) != 64)
    return "its addresses are not of 64 bits";
  if (!number<cl_bool>(api, f.id, CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  if (!(f.f32 & CL_FP_ROUND_TO_NEAREST)) return "its floats do not round to nearest";
  return {};
}

void read_limits(const ClApi& api, Facts& f) {
  f.compute_units = std::max(1u, number<cl_uint>(api, f.id, CL_DEVICE_MAX_COMPUTE_UNITS));
  f.max_invocations = number<size_t>(api, f.id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const auto sizes = info_list<size_t>(api.clGetDeviceInfo, f.id, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  if (sizes) std::copy_n(sizes->begin(), std::min<size_t>(sizes->size(), 3), f.max_local.begin());
  f.memory_bytes = number<cl_ulong>(api, f.id, CL_DEVICE_GLOBAL_MEM_SIZE);
  f.allocation_bytes = number<cl_ulong>(api, f.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  f.local_bytes = number<cl_ulong>(api, f.id, CL_DEVICE_LOCAL_MEM_SIZE);
  f.cache_bytes = number<cl_ulong>(api, f.id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  f.parameter_bytes = number<size_t>(api, f.id, CL_DEVICE_MAX_PARAMETER_SIZE);
  f.local_is_fast =
      number<cl_device_local_mem_type>(api, f.id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  f.unified_memory = number<cl_bool>(api, f.id, CL_DEVICE_HOST_UNIFIED_MEMORY);
  f.f32 = number<cl_device_fp_config>(api, f.id, CL_DEVICE_SINGLE_FP_CONFIG);
  f.f64 = number<cl_device_fp_config>(api, f.id, CL_DEVICE_DOUBLE_FP_CONFIG);
  if (version_number(f.version) >= 300)
    f.group_multiple = uint32_t(std::max<size_t>(
        1, number<size_t>(api, f.id, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)));
}

QueueFacts queue_facts(const ClApi& api, const Facts& of) {
  const auto order = choice(Env::TUFF_CL_QUEUE, "out-of-order");
  const auto copies = choice(Env::TUFF_CL_COPY_QUEUE, "1");
  const auto buffers = choice(Env::TUFF_CL_COMMAND_BUFFER, "1");
  const auto bits = [&](cl_device_info what) { return number<cl_bitfield>(api, of.id, what); };
  QueueFacts f;
  const bool offers_any_order =
      bits(CL_DEVICE_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  f.out_of_order = offers_any_order && order.value_or(!of.hardware());
  f.copy_queue = copies.value_or(of.hardware());
  f.has_command_buffers = has_extension(of, "cl_khr_command_buffer");
  // PoCL, which keeps programs, enqueues a buffer's commands one by one, behind the list's checks.
  f.command_buffers = f.has_command_buffers && buffers.value_or(!of.keeps_programs);
  if (!f.has_command_buffers) return f;
  f.recording_needs = bits(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR);
  f.records_out_of_order = bits(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR) &
                           CL_COMMAND_BUFFER_CAPABILITY_OUT_OF_ORDER_KHR;
  return f;
}

Facts gather_facts(const ClApi& api, cl_device_id id, const std::string& platform) {
  const Disabled disabled = disabled_features();
  Facts f;
  f.id = id;
  f.platform = platform;
  f.name = text(api, id, CL_DEVICE_NAME);
  f.vendor = text(api, id, CL_DEVICE_VENDOR);
  f.version = text(api, id, CL_DEVICE_VERSION);
  f.driver = text(api, id, CL_DRIVER_VERSION);
  f.extensions = text(api, id, CL_DEVICE_EXTENSIONS);
  f.opencl_c = version_number(text(api, id, CL_DEVICE_OPENCL_C_VERSION));
  f.full_profile = text(api, id, CL_DEVICE_PROFILE) == "FULL_PROFILE";
  f.type = number<cl_device_type>(api, id, CL_DEVICE_TYPE);
  f.uuid = uuid_of(api, f);
  read_limits(api, f);
  // Before OpenCL 1.2 made it optional core, doubles were the extension's.
  if (disabled.f64) f.f64 = 0;
  if (has_extension(f, "cl_khr_fp16") && !disabled.f16)
    f.f16 = number<cl_device_fp_config>(api, id, CL_DEVICE_HALF_FP_CONFIG);
  f.keeps_programs = f.platform == "Portable Computing Language";
  f.tier = tier_of(api, f, disabled);
  f.queues = queue_facts(api, f);
  f.missing = why_unusable(api, f);
  return f;
}

std::string platform_name(const ClApi& api, cl_platform_id id) {
  return info_text(api.clGetPlatformInfo, id, CL_PLATFORM_NAME).value_or("?");
}

}  // namespace

const char* name(MemoryTier tier) {
  switch (tier) {
    case MemoryTier::Buffers: return "buffers";
    case MemoryTier::CoarseSvm: return "coarse-svm";
    case MemoryTier::FineSvm: return "fine-svm";
  }
  return "?";
}

bool QueueFacts::records(cl_command_queue_properties queue) const {
  return command_buffers && (queue & recording_needs) == recording_needs &&
         (records_out_of_order || !(queue & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
}

std::string Facts::build_options() const {
  std::string out = opencl_c >= 102 ? "-cl-std=CL1.2" : "";
  if (f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) out += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (f64 == 0) out += " -DTUFF_NO_F64";
  if (has_f16()) out += " -DTUFF_F16";
  // Its LLVM makes intrinsics of absolute values and extrema that 21.10 then does not know.
  if (platform == "Oclgrind") out += " -cl-opt-disable";
  return out;
}

Facts facts_of(const ClApi& api, cl_device_id id) {
  return gather_facts(api, id,
                      platform_name(api, number<cl_platform_id>(api, id, CL_DEVICE_PLATFORM)));
}

std::vector<Facts> list_devices(const ClApi& api) {
  cl_uint count = 0;
  const cl_int code = api.clGetPlatformIDs(0, nullptr, &count);
  constexpr const char* kRemedy =
      "install the GPU vendor's OpenCL driver, or pocl-opencl-icd for the CPU";
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0))
    fail<Unsupported>("the OpenCL loader found no driver (ICD): {}", kRemedy);
  if (code != CL_SUCCESS) fail<Unsupported>("clGetPlatformIDs returned {}", error_name(code));
  std::vector<cl_platform_id> platforms(count);
  api.clGetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<Facts> devices;
  for (cl_platform_id p : platforms) {
    cl_uint n = 0;
    if (api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS || n == 0) continue;
    std::vector<cl_device_id> ids(n);
    api.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, n, ids.data(), nullptr);
    for (cl_device_id id : ids) devices.push_back(gather_facts(api, id, platform_name(api, p)));
  }
  if (devices.empty()) fail<Unsupported>("{} OpenCL platforms have no device: {}", count, kRemedy);
  std::stable_sort(devices.begin(), devices.end(), [](const Facts& a, const Facts& b) {
    return a.usable() != b.usable() ? a.usable() : a.rank() > b.rank();
  });
  return devices;
}

size_t select_device(const std::vector<Facts>& devices, const std::string& selector) {
  std::vector<Choice> choices;
  for (const Facts& f : devices) choices.push_back({f.name, f.uuid, f.name + "\n" + f.platform});
  const size_t index = choose("CL", choices, selector);
  const Facts& f = devices[index];
  if (!f.usable()) fail<Unsupported>("CL:{} ({}) cannot be used: {}", index, f.name, f.missing);
  return index;
}

hcq::DeviceInfo describe(const Facts& f, const std::string& name) {
  hcq::DeviceInfo info;
  info.name = name;
  info.description = f.name;
  info.driver = fmt::format("{} {}", f.platform, f.driver);
  info.api_version = f.version;
  info.uuid = f.uuid;
  info.hardware = f.hardware();
  info.slowness = info.hardware ? 1 : 4;  // software drivers compile at a kernel's first launch
  info.memory_bytes = f.memory_bytes;
  info.features = {{"compute_units", std::to_string(f.compute_units)},
                   {"memory", opencl::name(f.tier)},
                   {"f64", f.f64 ? "yes" : "no"},
                   {"f16", f.has_f16() ? "yes" : "no"},
                   {"queue", f.queues.order()},
                   {"copy_queue", f.queues.copy_queue ? "yes" : "no"},
                   {"command_buffer", f.queues.command_buffers       ? "yes"
                                      : f.queues.has_command_buffers ? "off"
                                                                     : "no"}};
  return info;
}

Target target_of(const Facts& f) {
  Target t;
  t.device = "CL";
  t.renderer = "opencl";
  t.arch = fmt::format("opencl-c-{}.{}", f.opencl_c / 100, f.opencl_c % 100);
  t.identity = fmt::format("opencl:{}:{}:{}:{}:{}", f.platform, f.name, f.version, f.driver,
                           f.build_options());
  t.cores = f.compute_units;
  t.vector_bytes = 16;
  t.vector_registers = 128;
  t.has_local = true;
  t.subgroup_size = f.group_multiple;
  t.max_invocations = uint32_t(std::min<size_t>(f.max_invocations, 1024));
  for (size_t i = 0; i < 3; ++i)
    t.max_local[i] = uint32_t(std::min<size_t>(f.max_local[i], t.max_invocations));
  // Work-items are counted in 32 bits by some drivers.
  t.max_groups = {INT32_MAX / t.max_invocations, 65535, 65535};
  t.shared_bytes = uint32_t(std::min<uint64_t>(f.local_bytes, 64 << 10));
  t.has_fast_shared = f.local_is_fast;
  (f.hardware() ? t.l2_bytes : t.l3_bytes) = f.cache_bytes;
  // A buffer takes an object and an offset; 16 scalars of 4 bytes are left room for.
  t.max_buffers = uint32_t(std::clamp<size_t>((f.parameter_bytes - 64) / 16, 8, 64));
  t.max_buffer_bytes = t.max_binding_bytes = f.allocation_bytes;
  t.max_submission_ns = f.hardware() ? 500'000'000 : 0;
  t.launch_cost_ns = f.hardware() ? 5000 : 2000;
  TargetFeatures& features = t.features;
  features.i8 = features.i16 = features.i64 = true;
  features.storage8 = features.storage16 = true;
  features.f16_casts = features.u32_to_f32 = features.atomics = true;
  features.f64 = f.f64 != 0;
  features.f16 = f.has_f16();
  features.device_address = f.tier != MemoryTier::Buffers;
  features.signed_zero_inf_nan = f.f32 & CL_FP_INF_NAN;
  features.known_zero_products = true;
  features.sqrt = f.f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  return t;
}

}  // namespace tuff::devices::opencl
