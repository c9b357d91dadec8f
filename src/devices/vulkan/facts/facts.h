// Facts: everything asked of one physical device before it is opened, masked by TUFF_VK_DISABLE and
// lowered by TUFF_VK_LIMIT.
// Used by selection, Context (what to enable), memory, queue and the Target. Plain data.
// Must never hold a VkDevice.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/target.h"
#include "devices/vulkan/api/instance.h"

namespace tuff::devices::vulkan {

struct Caps {
#define TUFF_VK_CAP(name, bit, disable, prose) bool name = false;
#include "devices/vulkan/facts/caps.def"
};

struct CapRow {
  const char *name, *disable;  // `disable`: words, separated by spaces
  bool Caps::* member;
};
inline constexpr CapRow kCapRows[] = {
#define TUFF_VK_CAP(name, bit, disable, prose) {#name, disable, &Caps::name},
#include "devices/vulkan/facts/caps.def"
};

// The feature structures that tuff reads and sets, linked as far as version and extensions allow.
struct FeatureChain {
  FeatureChain(uint32_t version, const std::vector<std::string>& extensions);
  FeatureChain(const FeatureChain&) = delete;
  void enable(const Caps& caps);
  VkPhysicalDeviceFeatures2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDevice16BitStorageFeatures storage16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage8{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  VkPhysicalDeviceShaderFloat16Int8Features float16_int8{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  VkPhysicalDeviceBufferDeviceAddressFeatures address{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  VkPhysicalDeviceSynchronization2Features sync2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  // What properties of caps.def ask for.
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{kMatrixFeatures, nullptr, false, false};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{kBfloat16Features, nullptr, false, false,
                                                     false};
};

struct Facts {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  uint32_t version = 0;  // the lower of what device and instance speak
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  VkDriverId driver_id{};
  std::string driver_name, driver_info;
  std::array<uint8_t, VK_UUID_SIZE> device_uuid{};
  uint32_t subgroup_size = 1;
  uint32_t compute_units = 0;  // 0: not told
  uint64_t max_allocation_bytes = UINT64_MAX;
  uint64_t max_loop_trips = UINT64_MAX;  // loop iterations of one invocation, from the quirks
  // Buffers of one kernel, its argument block included where descriptors bind them; addresses in
  // memory know no limit of their own.
  uint32_t max_buffers = 64;
  bool compiles_only = false;  // RADV without a GPU
  uint32_t queue_family = UINT32_MAX;
  uint32_t timestamp_bits = 0;
  std::vector<MatrixShape> matrix_shapes;  // that tuff can use; failed ones are taken out
  std::vector<std::string> extensions;     // all that the device offers, or its owner has enabled
  uint64_t host_import_alignment = 0;      // of address and size, where there is hostMemory
  Caps caps;
  uint32_t caps_offered = 0;  // how many the driver has, before the mask
  std::string disabled;       // by TUFF_VK_DISABLE, of what the driver has: names of caps.def
  // What the self-tests (self_test/self_test.h) said, which are run when a device is opened.
  bool self_tested = false;      // there are verdicts
  std::string failed_self_test;  // names of caps.def that are off for that, comma-separated
  std::string missing;           // why the device cannot be used; empty if it can

  bool usable() const { return missing.empty(); }
  bool software() const { return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  bool has_extension(const char* name) const;
  std::string uuid_text() const;  // 32 hex digits
  int rank() const;               // of Candidate
};

// What the owner of a VkDevice has enabled at its creation. A null chain: nothing.
struct Enabled {
  std::vector<std::string> extensions;
  const void* features = nullptr;  // VkDeviceCreateInfo::pNext
  const VkPhysicalDeviceFeatures* core_features = nullptr;
};

// Reads cooperativeMatrix, bfloat16Matrix and the shapes (matrices.cpp); after the subgroup's size.
void read_matrices(const VkApi& api, Facts& f, const FeatureChain& chain);
// The shapes that the caps in force allow.
std::vector<MatrixShape> usable_shapes(const Facts& f);

// With `enabled` for a device that an application creates or has created.
Facts gather_facts(const Instance& instance, VkPhysicalDevice handle,
                   const Enabled* enabled = nullptr);

// The feature bits of such a chain, whichever structures it names them in (enabled.cpp).
void read_enabled(const Enabled& enabled, FeatureChain& out);

// Usage of buffers that kernels and copies work on.
VkBufferUsageFlags buffer_usage(const Facts& facts);

std::vector<VkQueueFamilyProperties> queue_families(const VkApi& api, VkPhysicalDevice handle);
uint64_t largest_local_heap(const VkPhysicalDeviceMemoryProperties& memory);  // bytes

// Extensions to name at vkCreateDevice: what the caps need and the device's version has not in
// core.
std::vector<const char*> extensions_to_enable(const Facts& facts);

// Switches off the caps named in a comma-separated list, by name or by a word of the column
// `disable` of caps.def; InvalidArgument for one that is not known, with those that are. Gives the
// names of those that were on.
std::string apply_mask(Caps& caps, const std::string& mask);

}  // namespace tuff::devices::vulkan
