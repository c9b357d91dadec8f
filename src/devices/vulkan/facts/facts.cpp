#include "devices/vulkan/facts/facts.h"

#include <algorithm>

#include "base/check.h"
#include "base/env.h"
#include "devices/selector.h"
#include "devices/vulkan/facts/limits.h"
#include "devices/vulkan/quirks/quirks.h"

namespace tuff::devices::vulkan {
namespace {

bool contains(const std::vector<std::string>& names, const char* name) {
  return std::ranges::find(names, name) != names.end();
}

// Extensions that later versions took into core, with the caps that need them.
struct Promoted {
  const char* extension;
  uint32_t core_version;
};
constexpr Promoted k8Bit{VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kFloat16Int8{VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kAddress{VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kTimeline{VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kFloatControls{VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kDriver{VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kMemoryModel{VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2};
constexpr Promoted kSubgroups{VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3};
constexpr Promoted kSync2{VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, VK_API_VERSION_1_3};

bool offered(const Promoted& p, uint32_t version, const std::vector<std::string>& extensions) {
  return version >= p.core_version || contains(extensions, p.extension);
}

template <class Struct>
void link(void*& chain, Struct& s) {
  s.pNext = chain;
  chain = &s;
}

std::vector<std::string> device_extensions(const VkApi& api, VkPhysicalDevice handle) {
  std::vector<std::string> names;
  const auto call = [&](uint32_t* count, auto* all) {
    return api.vkEnumerateDeviceExtensionProperties(handle, nullptr, count, all);
  };
  for (const auto& e : enumerate<VkExtensionProperties>(call)) names.push_back(e.extensionName);
  return names;
}

// Compute without graphics first: such queues run beside the desktop's.
void choose_queue_family(const VkApi& api, Facts& f) {
  const std::vector<VkQueueFamilyProperties> families = queue_families(api, f.handle);
  int best = -1;
  for (uint32_t i = 0; i < families.size(); ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0) continue;
    int score = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1) +
                (families[i].timestampValidBits ? 2 : 0);
    if (score <= best) continue;
    best = score;
    f.queue_family = i;
    f.timestamp_bits = families[i].timestampValidBits;
  }
}

// VK_TIME_DOMAIN_CLOCK_MONOTONIC beside the device's own.
bool can_calibrate(const VkApi& api, const Facts& f) {
  if (!f.has_extension(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) return false;
  if (!api.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT) return false;
  const auto domains = enumerate<VkTimeDomainEXT>([&](uint32_t* count, auto* all) {
    return api.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(f.handle, count, all);
  });
  auto has = [&](VkTimeDomainEXT d) { return std::ranges::find(domains, d) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

// Before anything is read that depends on it.
void settle_version(Facts& f) {
  Caps allowed;
  allowed.vulkan12 = f.version >= VK_API_VERSION_1_2;
  apply_mask(allowed, env_text(Env::TUFF_VK_DISABLE));
  if (!allowed.vulkan12) f.version = std::min<uint32_t>(f.version, VK_API_VERSION_1_1);
}

struct PropertyChain {
  VkPhysicalDeviceProperties2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties maintenance3{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties maintenance4{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceFloatControlsProperties floats{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD cu{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceDrmPropertiesEXT drm{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT};
};

void query_properties(const VkApi& api, const Facts& f, PropertyChain& p) {
  void* chain = nullptr;
  link(chain, p.id);
  link(chain, p.subgroup);
  link(chain, p.maintenance3);
  if (f.version >= VK_API_VERSION_1_3) link(chain, p.maintenance4);
  if (offered(kDriver, f.version, f.extensions)) link(chain, p.driver);
  if (offered(kFloatControls, f.version, f.extensions)) link(chain, p.floats);
  if (f.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) link(chain, p.host);
  if (f.has_extension(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) link(chain, p.sm);
  if (f.has_extension(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) link(chain, p.cu);
  if (f.has_extension(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME)) link(chain, p.drm);
  p.base.pNext = chain;
  api.vkGetPhysicalDeviceProperties2(f.handle, &p.base);
}

void read_properties(const VkApi& api, Facts& f) {
  PropertyChain p;
  query_properties(api, f, p);
  f.driver_id = p.driver.driverID;
  f.driver_name = p.driver.driverName;
  f.driver_info = p.driver.driverInfo;
  std::copy(std::begin(p.id.deviceUUID), std::end(p.id.deviceUUID), f.device_uuid.begin());
  f.subgroup_size = std::max(1u, p.subgroup.subgroupSize);
  f.max_allocation_bytes = p.maintenance3.maxMemoryAllocationSize;
  if (uint64_t buffer = p.maintenance4.maxBufferSize) {
    f.max_allocation_bytes = std::min(f.max_allocation_bytes, buffer);
  }
  const Quirks quirks = quirks_of(f.driver_id, f.properties.driverVersion);
  if (quirks.max_loop_trips) f.max_loop_trips = quirks.max_loop_trips;
  f.compute_units = p.sm.shaderSMCount;
  if (p.cu.shaderEngineCount) {
    f.compute_units =
        p.cu.shaderEngineCount * p.cu.shaderArraysPerEngineCount * p.cu.computeUnitsPerShaderArray;
  }
  f.compiles_only = f.driver_id == VK_DRIVER_ID_MESA_RADV &&
                    f.has_extension(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME) &&
                    !p.drm.hasPrimary && !p.drm.hasRender;
  f.host_import_alignment = p.host.minImportedHostPointerAlignment;
  bool in_compute = p.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
  auto op = [&](VkSubgroupFeatureFlags bit) {
    return in_compute && (p.subgroup.supportedOperations & bit);
  };
  f.caps.vulkan12 = f.properties.apiVersion >= VK_API_VERSION_1_2;
  f.caps.subgroupArithmetic = op(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  f.caps.subgroupShuffle = op(VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
  f.caps.exactU32ToF32 = !quirks.u32_to_f32_rounds_twice;
  f.caps.roundedF16Casts = f.caps.shaderFloat16 && !quirks.folds_f16_casts;
  f.caps.wideQuotients = f.caps.shaderInt64 && !quirks.loses_wide_quotients;
  f.caps.zeroProducts = !quirks.folds_zero_products;
  // Where the other widths' need not be the same.
  f.caps.denormPreserve =
      p.floats.shaderDenormPreserveFloat32 && !quirks.misreads_denormals &&
      p.floats.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  f.caps.signedZeroInfNanPreserve =
      p.floats.shaderSignedZeroInfNanPreserveFloat32 &&
      (!f.caps.shaderFloat64 || p.floats.shaderSignedZeroInfNanPreserveFloat64);
}

// What Blocks makes of such memory: buffers without an allocation of their own kind.
bool has_external_buffers(const VkApi& api, const Facts& f, const char* extension,
                          VkExternalMemoryHandleTypeFlagBits type,
                          VkExternalMemoryFeatureFlags wanted) {
  if (!f.has_extension(extension) || !api.vkGetPhysicalDeviceExternalBufferProperties) return false;
  VkPhysicalDeviceExternalBufferInfo info{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
  info.usage = buffer_usage(f);
  info.handleType = type;
  VkExternalBufferProperties found{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  api.vkGetPhysicalDeviceExternalBufferProperties(f.handle, &info, &found);
  const auto features = found.externalMemoryProperties.externalMemoryFeatures;
  return (features & wanted) && !(features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

void read_external_memory(const VkApi& api, Facts& f) {
  f.caps.hostMemory = has_external_buffers(api, f, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
                                           VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                           VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT);
  f.caps.memoryFd = has_external_buffers(api, f, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                                         VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                         VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT);
}

// Where descriptors bind a kernel's buffers their number is the driver's.
void settle_max_buffers(Facts& f) {
  if (f.caps.bufferDeviceAddress) return;
  const VkPhysicalDeviceLimits& l = f.properties.limits;
  f.max_buffers = std::min({f.max_buffers, l.maxPerStageDescriptorStorageBuffers,
                            l.maxDescriptorSetStorageBuffers, l.maxPerStageResources});
}

// The floor; every row of caps.def has a fallback.
std::string what_is_missing(const Facts& f) {
  if (f.compiles_only)
    return "is a null device of Mesa's (RADV_FORCE_FAMILY is set), which compiles and runs nothing: "
           "unset it, or see `tuff gpu`";
  std::string missing;
  auto lacks = [&](const std::string& what) {
    missing += (missing.empty() ? "lacks " : ", ") + what;
  };
  if (f.queue_family == UINT32_MAX) lacks("a compute queue");
  if (f.properties.limits.maxPushConstantsSize < sizeof(VkDeviceAddress))
    lacks("8 bytes of push constants");
  if (!f.caps.bufferDeviceAddress && f.max_buffers < 4)
    lacks("four storage buffers of a kernel, or buffer device addresses (bufferDeviceAddress)");
  return missing;
}

}  // namespace

FeatureChain::FeatureChain(uint32_t version, const std::vector<std::string>& extensions) {
  void* chain = nullptr;
  link(chain, storage16);
  if (offered(k8Bit, version, extensions)) link(chain, storage8);
  if (offered(kFloat16Int8, version, extensions)) link(chain, float16_int8);
  if (offered(kAddress, version, extensions)) link(chain, address);
  if (offered(kTimeline, version, extensions)) link(chain, timeline);
  if (offered(kSync2, version, extensions)) link(chain, sync2);
  if (offered(kSubgroups, version, extensions)) link(chain, subgroups);
  if (offered(kMemoryModel, version, extensions)) link(chain, memory_model);
  if (contains(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) link(chain, matrices);
  if (contains(extensions, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME)) link(chain, bfloat16);
  if (contains(extensions, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME)) link(chain, atomic_float);
  if (contains(extensions, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
    link(chain, executables);
  base.pNext = chain;
}

void FeatureChain::enable(const Caps& caps) {
#define TUFF_VK_CAP(name, bit, disable, prose) bit = caps.name;
#define TUFF_VK_PROPERTY(name, disable, prose)
#include "devices/vulkan/facts/caps.def"
  memory_model = {memory_model.sType, memory_model.pNext, caps.cooperativeMatrix, false, false};
  matrices = {matrices.sType, matrices.pNext, caps.cooperativeMatrix, false};
  bfloat16 = {bfloat16.sType, bfloat16.pNext, caps.bfloat16Matrix, false, caps.bfloat16Matrix};
}

bool Facts::has_extension(const char* name) const { return contains(extensions, name); }

std::string Facts::uuid_text() const { return hex(device_uuid); }

int Facts::rank() const {
  switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 400;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 300;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 200;
    default: return 50;
  }
}

VkBufferUsageFlags buffer_usage(const Facts& f) {
  VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                             VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (f.caps.bufferDeviceAddress) usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  return usage;
}

std::vector<VkQueueFamilyProperties> queue_families(const VkApi& api, VkPhysicalDevice handle) {
  return enumerate<VkQueueFamilyProperties>([&](uint32_t* count, auto* all) {
    api.vkGetPhysicalDeviceQueueFamilyProperties(handle, count, all);
  });
}

uint64_t largest_local_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      largest = std::max<uint64_t>(largest, heap.size);
  }
  return largest;
}

Facts gather_facts(const Instance& instance, VkPhysicalDevice handle, const Enabled* enabled) {
  const VkApi& api = instance.api;
  Facts f;
  f.handle = handle;
  api.vkGetPhysicalDeviceProperties(handle, &f.properties);
  f.version =
      std::min(f.properties.apiVersion, std::min<uint32_t>(instance.version, VK_API_VERSION_1_3));
  if (f.version < VK_API_VERSION_1_1 || !api.vkGetPhysicalDeviceProperties2) {
    f.missing = fmt::format("speaks Vulkan {}.{} and tuff needs 1.1: update the driver",
                            VK_API_VERSION_MAJOR(f.version), VK_API_VERSION_MINOR(f.version));
    return f;
  }
  f.extensions = enabled ? enabled->extensions : device_extensions(api, handle);
  settle_version(f);
  api.vkGetPhysicalDeviceMemoryProperties(handle, &f.memory);
  choose_queue_family(api, f);
  FeatureChain chain(f.version, f.extensions);
  if (enabled)
    read_enabled(*enabled, chain);
  else
    api.vkGetPhysicalDeviceFeatures2(f.handle, &chain.base);
#define TUFF_VK_CAP(name, bit, disable, prose) f.caps.name = chain.bit;
#define TUFF_VK_PROPERTY(name, disable, prose)
#include "devices/vulkan/facts/caps.def"
  read_properties(api, f);
  read_matrices(api, f, chain);
  read_external_memory(api, f);
  f.caps.calibratedTimestamps = can_calibrate(api, f);
  f.caps.debugUtils = instance.debug_utils;
  for (const CapRow& r : kCapRows) f.caps_offered += f.caps.*r.member;
  f.disabled = apply_mask(f.caps, env_text(Env::TUFF_VK_DISABLE));
  settle_max_buffers(f);
  apply_limits(f, env_text(Env::TUFF_VK_LIMIT));
  f.missing = what_is_missing(f);
  return f;
}

std::vector<const char*> extensions_to_enable(const Facts& f) {
  std::vector<const char*> names;
  auto need = [&](bool wanted, const Promoted& p) {
    if (wanted && f.version < p.core_version && f.has_extension(p.extension))
      names.push_back(p.extension);
  };
  need(f.caps.bufferDeviceAddress, kAddress);
  need(f.caps.timelineSemaphore, kTimeline);
  need(f.caps.synchronization2, kSync2);
  need(f.caps.computeFullSubgroups, kSubgroups);
  need(f.caps.storageBuffer8BitAccess, k8Bit);
  need(f.caps.shaderInt8 || f.caps.shaderFloat16, kFloat16Int8);
  need(f.caps.signedZeroInfNanPreserve || f.caps.denormPreserve, kFloatControls);
  need(f.caps.cooperativeMatrix, kMemoryModel);
  if (f.caps.cooperativeMatrix) names.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (f.caps.bfloat16Matrix) names.push_back(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  if (f.caps.hostMemory) names.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (f.caps.memoryFd) names.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (f.caps.shaderBufferFloat32AtomicAdd)
    names.push_back(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
  if (f.caps.pipelineExecutableInfo)
    names.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  if (f.caps.calibratedTimestamps) names.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  // A portability driver (MoltenVK) requires that its subset is named.
  if (f.has_extension("VK_KHR_portability_subset")) names.push_back("VK_KHR_portability_subset");
  return names;
}

namespace {

bool is_called(const CapRow& row, const std::string& word) {
  const std::vector<std::string> words = split(row.disable, ' ');
  return word == row.name || std::ranges::find(words, word) != words.end();
}

std::string known_words() {
  std::vector<std::string> words, names;
  for (const CapRow& r : kCapRows) {
    for (const std::string& word : split(r.disable, ' '))
      if (std::ranges::find(words, word) == words.end()) words.push_back(word);
    names.emplace_back(r.name);
  }
  return fmt::format("{}, or of {}", fmt::join(words, ", "), fmt::join(names, ", "));
}

}  // namespace

std::string apply_mask(Caps& caps, const std::string& mask) {
  const Caps before = caps;
  for (const std::string& word : split(mask, ',')) {
    bool known = false;
    for (const CapRow& r : kCapRows) {
      if (!is_called(r, word)) continue;
      caps.*r.member = false;
      known = true;
    }
    if (!known)
      fail<InvalidArgument>("TUFF_VK_DISABLE: \"{}\" is not one of {}", word, known_words());
  }
  std::vector<const char*> disabled;
  for (const CapRow& r : kCapRows)
    if (before.*r.member && !(caps.*r.member)) disabled.push_back(r.name);
  return fmt::format("{}", fmt::join(disabled, ","));
}

}  // namespace tuff::devices::vulkan
