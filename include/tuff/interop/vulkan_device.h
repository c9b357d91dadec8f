// What tuff and an application tell each other about a Vulkan device, its memory and its queue:
// plain data, in Vulkan's own types. Called by users through interop/vulkan.h. Must never know of
// tensors.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tuff::interop {

/// What tuff asks of a VkDevice that an application creates, as far as its driver has it.
/// Everything but timelineSemaphore has a fallback, which is slower.
struct VulkanNeeds {
  /// For VkDeviceCreateInfo::ppEnabledExtensionNames, beside the application's own.
  std::vector<const char*> extensions;
  /// For VkDeviceCreateInfo::pNext: features switched on, one structure each, chained. Lives as
  /// long as a copy of this. An application with a chain of its own sets the same bits there.
  const VkPhysicalDeviceFeatures2* features = nullptr;
  /// The bits that are on, by Vulkan's names: "timelineSemaphore", ...
  std::vector<std::string> feature_names;
  /// The family of queues that suits tuff best; any one that computes will do.
  uint32_t queue_family = 0;
  /// VkBufferCreateInfo::usage of buffers that become tensors.
  VkBufferUsageFlags buffer_usage = 0;
  /// VkMemoryAllocateFlagsInfo::flags of the memory beneath them.
  VkMemoryAllocateFlags allocate_flags = 0;
  /// Keeps `features` alive.
  std::shared_ptr<const void> chain;
};

/// An application's device and one queue of it, lent to tuff. Vulkan cannot be asked what a
/// VkDevice was created with, so the application says it again.
struct VulkanApplication {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  /// VkApplicationInfo::apiVersion of the instance.
  uint32_t api_version = 0;
  /// VkDeviceCreateInfo::ppEnabledExtensionNames.
  std::vector<std::string> extensions = {};
  /// VkDeviceCreateInfo::pNext: the chain with the features, of which VkPhysicalDeviceFeatures2 and
  /// the structures that tuff knows count. Read while the device is opened.
  const void* features = nullptr;
  /// VkDeviceCreateInfo::pEnabledFeatures, if that was used instead of VkPhysicalDeviceFeatures2.
  const VkPhysicalDeviceFeatures* core_features = nullptr;
  /// Called around every submission to the queue, which Vulkan wants its users to synchronize: by
  /// any thread that computes. May be empty if nothing else submits to this queue. They must not
  /// call tuff, nor throw, and callers of tuff must not hold the lock.
  std::function<void()> lock_queue = {}, unlock_queue = {};
  /// Empty: of libvulkan.so.1.
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  /// Memory of tensors can be exported with vulkan_memory_fd(); takes VK_KHR_external_memory_fd.
  bool exportable_memory = false;
};

/// A part of an application's buffer that becomes a tensor.
struct VulkanBuffer {
  /// A buffer of the VkDevice that tuff was given, bound to its memory.
  VkBuffer buffer = VK_NULL_HANDLE;
  /// VkBufferCreateInfo::size.
  VkDeviceSize size_bytes = 0;
  /// VkBufferCreateInfo::usage, which has VulkanNeeds::buffer_usage (InvalidArgument otherwise).
  VkBufferUsageFlags usage = 0;
  /// Where the tensor begins: a multiple of 64.
  VkDeviceSize offset = 0;
  /// The memory beneath, as vulkan_memory() then gives it; tuff does without.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  /// Where byte 0 of the buffer is mapped, if its memory is coherent; may be null. Reading a tensor
  /// then takes no copy by the device.
  void* mapped = nullptr;
};

/// A part of an application's memory, over which tuff lays a buffer of its own.
struct VulkanMemory {
  /// Memory of the VkDevice that tuff was given, with VulkanNeeds::allocate_flags.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  /// VkMemoryAllocateInfo::allocationSize and memoryTypeIndex.
  VkDeviceSize size_bytes = 0;
  uint32_t type_index = 0;
  /// Where the tensor begins: a multiple of what VkMemoryRequirements::alignment says (the error
  /// names it) and of 64.
  VkDeviceSize offset = 0;
  /// Where byte 0 of the memory is mapped, if it is coherent; may be null.
  void* mapped = nullptr;
};

/// Where the elements of a tensor lie, row-major.
struct VulkanRegion {
  VkDevice device = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  /// Null beneath an application's buffer that came without.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  /// From byte 0 of the buffer, and of the memory.
  VkDeviceSize offset = 0, memory_offset = 0;
  VkDeviceSize size_bytes = 0;
  /// The address of the first element; 0 without bufferDeviceAddress.
  VkDeviceAddress address = 0;
};

/// A value of a timeline semaphore.
struct VulkanPoint {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// Memory as another device or process imports it (VkImportMemoryFdInfoKHR, OPAQUE_FD).
struct VulkanMemoryFd {
  /// Owned by the import; otherwise close() it.
  int fd = -1;
  /// VkMemoryAllocateInfo of the import: the same size and type.
  VkDeviceSize allocation_bytes = 0;
  uint32_t type_index = 0;
  /// VkBufferCreateInfo::size and where the tensor begins in it.
  VkDeviceSize buffer_bytes = 0, offset = 0;
};

}  // namespace tuff::interop
