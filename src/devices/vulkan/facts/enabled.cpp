// The features that the owner of a VkDevice has enabled: Vulkan cannot be asked, so the chain of
// its creation is read again. Features that core has taken in may stand in a structure of their own
// or in the one of a version.
#include "devices/vulkan/facts/facts.h"

namespace tuff::devices::vulkan {
namespace {

// A copy without the caller's links.
template <class Struct>
void take(const VkBaseInStructure* from, Struct& to) {
  void* next = to.pNext;
  to = *reinterpret_cast<const Struct*>(from);
  to.pNext = next;
}

void read_11(const VkPhysicalDeviceVulkan11Features& v, FeatureChain& out) {
  out.storage16.storageBuffer16BitAccess = v.storageBuffer16BitAccess;
}

void read_12(const VkPhysicalDeviceVulkan12Features& v, FeatureChain& out) {
  out.storage8.storageBuffer8BitAccess = v.storageBuffer8BitAccess;
  out.float16_int8.shaderFloat16 = v.shaderFloat16;
  out.float16_int8.shaderInt8 = v.shaderInt8;
  out.address.bufferDeviceAddress = v.bufferDeviceAddress;
  out.timeline.timelineSemaphore = v.timelineSemaphore;
  out.memory_model.vulkanMemoryModel = v.vulkanMemoryModel;
}

void read_13(const VkPhysicalDeviceVulkan13Features& v, FeatureChain& out) {
  out.sync2.synchronization2 = v.synchronization2;
  out.subgroups.computeFullSubgroups = v.computeFullSubgroups;
}

template <class Struct>
const Struct& as(const VkBaseInStructure* s) {
  return *reinterpret_cast<const Struct*>(s);
}

void read_one(const VkBaseInStructure* s, FeatureChain& out) {
  switch (static_cast<uint32_t>(s->sType)) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2: return take(s, out.base);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
      return read_11(as<VkPhysicalDeviceVulkan11Features>(s), out);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
      return read_12(as<VkPhysicalDeviceVulkan12Features>(s), out);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
      return read_13(as<VkPhysicalDeviceVulkan13Features>(s), out);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES: return take(s, out.storage16);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES: return take(s, out.storage8);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
      return take(s, out.float16_int8);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
      return take(s, out.address);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
      return take(s, out.timeline);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES: return take(s, out.sync2);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES:
      return take(s, out.subgroups);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT:
      return take(s, out.atomic_float);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR:
      return take(s, out.executables);
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
      return take(s, out.memory_model);
    default: break;
  }
  if (s->sType == out.matrices.sType) take(s, out.matrices);
  if (s->sType == out.bfloat16.sType) take(s, out.bfloat16);
}

}  // namespace

void read_enabled(const Enabled& enabled, FeatureChain& out) {
  if (enabled.core_features) out.base.features = *enabled.core_features;
  const auto* s = static_cast<const VkBaseInStructure*>(enabled.features);
  for (; s != nullptr; s = s->pNext) read_one(s, out);
}

}  // namespace tuff::devices::vulkan
