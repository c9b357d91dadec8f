#include "devices/opencl/facts.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/check.h"
#include "base/env.h"

namespace tuff::devices::opencl {
namespace {

// The features of TUFF_CL_DISABLE.
struct Disabled {
  bool svm = false, fine_svm = false, f64 = false, f16 = false;
};

Disabled disabled_features() {
  Disabled out;
  const std::string text = env_text(Env::TUFF_CL_DISABLE);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word == "svm") {
      out.svm = true;
    } else if (word == "fine-svm") {
      out.fine_svm = true;
    } else if (word == "f64") {
      out.f64 = true;
    } else if (word == "f16") {
      out.f16 = true;
    } else {
      fail<InvalidArgument>(
          "TUFF_CL_DISABLE: there is no feature '{}'; there are svm, fine-svm, f64, f16", word);
    }
    at = end + 1;
  }
  return out;
}

template <class T>
T number(const ClApi& api, cl_device_id id, cl_device_info what) {
  T value{};
  // What a device does not know stays 0.
  if (api.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}

std::string text(const ClApi& api, cl_device_id id, cl_device_info what) {
  size_t size = 0;
  if (api.clGetDeviceInfo(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string out(size, '\0');
  if (api.clGetDeviceInfo(id, what, size, out.data(), nullptr) != CL_SUCCESS) return {};
  return out.substr(0, out.find('\0'));
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
  uint8_t bytes[CL_UUID_SIZE_KHR] = {};
  if (api.clGetDeviceInfo(f.id, CL_DEVICE_UUID_KHR, sizeof bytes, bytes, nullptr) != CL_SUCCESS)
    return {};
  std::string out;
  for (uint8_t b : bytes) out += fmt::format("{:02x}", b);
  return out;
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
  std::vector<size_t> sizes(
      std::max(3u, number<cl_uint>(api, f.id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)), 1);
  api.clGetDeviceInfo(f.id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes.size() * sizeof(size_t),
                      sizes.data(), nullptr);
  std::copy_n(sizes.begin(), 3, f.max_local.begin());
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
  f.queues = queue_facts(api, id, has_extension(f, "cl_khr_command_buffer"), !f.hardware(),
                         f.keeps_programs);
  f.missing = why_unusable(api, f);
  return f;
}

std::string platform_name(const ClApi& api, cl_platform_id id) {
  size_t size = 0;
  if (api.clGetPlatformInfo(id, CL_PLATFORM_NAME, 0, nullptr, &size) != CL_SUCCESS) return "?";
  std::string out(size, '\0');
  api.clGetPlatformInfo(id, CL_PLATFORM_NAME, size, out.data(), nullptr);
  return out.substr(0, out.find('\0'));
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

std::string listing(const std::vector<Facts>& devices) {
  std::string out = "there is";
  for (size_t i = 0; i < devices.size(); ++i)
    out += fmt::format("{} {} \"{}\"{}", i ? "," : "", i, devices[i].name,
                       devices[i].uuid.empty() ? "" : " uuid=" + devices[i].uuid);
  return out;
}

template <class Match>
size_t first_match(const std::vector<Facts>& devices, const std::string& selector, Match match) {
  const auto it = std::find_if(devices.begin(), devices.end(), match);
  if (it == devices.end())
    fail<InvalidArgument>("CL:{} matches no device; {}", selector, listing(devices));
  return size_t(it - devices.begin());
}

size_t find_by_selector(const std::vector<Facts>& devices, const std::string& selector) {
  const bool by_uuid = selector.starts_with("uuid="), by_name = selector.starts_with("name=");
  if ((by_uuid || by_name) && selector.size() == 5)
    fail<InvalidArgument>("CL:{} needs a part of what it names; {}", selector, listing(devices));
  const std::string wanted = lower(selector.substr(std::min<size_t>(5, selector.size())));
  if (by_uuid)
    return first_match(devices, selector,
                       [&](const Facts& f) { return f.uuid.starts_with(wanted); });
  if (by_name)
    return first_match(devices, selector, [&](const Facts& f) {
      return lower(f.name).find(wanted) != std::string::npos ||
             lower(f.platform).find(wanted) != std::string::npos;
    });
  size_t index = 0;
  const char* end = selector.data() + selector.size();
  const auto [stop, error] = std::from_chars(selector.data(), end, index);
  if (error != std::errc() || stop != end)
    fail<InvalidArgument>("CL:{} is no selector: give an index, uuid=<hex> or name=<part>; {}",
                          selector, listing(devices));
  if (index >= devices.size())
    fail<InvalidArgument>("CL:{} does not exist; {}", selector, listing(devices));
  return index;
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
  const size_t index = selector.empty() ? 0 : find_by_selector(devices, selector);
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
  t.shared_load_cost = f.local_is_fast ? 1 : 0;
  (f.hardware() ? t.l2_bytes : t.l3_bytes) = f.cache_bytes;
  // A buffer takes an object and an offset; 16 scalars of 4 bytes are left room for.
  t.max_buffers = uint32_t(std::clamp<size_t>((f.parameter_bytes - 64) / 16, 8, 64));
  t.max_buffer_bytes = t.max_binding_bytes = f.allocation_bytes;
  t.max_submission_ns = f.hardware() ? 500'000'000 : 0;
  t.launch_cost_ns = f.hardware() ? 5000 : 2000;
  TargetFeatures& features = t.features;
  features.i8 = features.i16 = features.i64 = true;
  features.storage8 = features.storage16 = true;
  features.f16_casts = features.u32_to_f32 = true;
  features.f64 = f.f64 != 0;
  features.f16 = f.has_f16();
  features.device_address = f.tier != MemoryTier::Buffers;
  features.signed_zero_inf_nan = f.f32 & CL_FP_INF_NAN;
  features.known_zero_products = true;
  features.sqrt = f.f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  return t;
}

}  // namespace tuff::devices::opencl
