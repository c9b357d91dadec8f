// Sharing with an application that uses Vulkan itself: tuff on the application's device and queue,
// tensors over its buffers, the buffers beneath tensors, semaphores between its work and tuff's.
// For users who include Vulkan's headers; there only where tuff was built with them. Compiles
// without linking a Vulkan loader.
//
// The rules: the application's handles stay valid until close_vulkan() has returned, or the deleter
// of the memory was called. Only one side at a time writes memory that both use: an application
// waits for vulkan_ready() before it touches the memory, and says when it has finished with
// wait_for(). A tensor over a buffer in VK_SHARING_MODE_EXCLUSIVE takes a queue of the same family
// on both sides, or ownership transfers by the application.
#pragma once

#include <string>

#include <tuff/interop/vulkan_device.h>
#include <tuff/tensor.h>

namespace tuff::interop {

/// What to enable when the device is created. InvalidArgument for null handles; Unsupported, naming
/// what is missing, for a device that tuff cannot use.
VulkanNeeds vulkan_needs(VkInstance instance, VkPhysicalDevice physical_device,
                         uint32_t api_version,
                         PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr);

/// Opens the application's device and gives its name, "VULKAN:app0", for TensorOptions::device and
/// Tensor::to(). Each call is a device of its own. InvalidArgument for handles that are null or do
/// not belong together; Unsupported, naming the feature or extension and where to enable it, where
/// the device was created without timelineSemaphore.
std::string open_vulkan(const VulkanApplication& application);

/// Waits for tuff's work on the device and destroys what tuff has made of it; before
/// vkDestroyDevice. InvalidArgument, and the device stays open, while tensors or Jits still hold
/// memory of it (the text says how much) or no application's device has that name.
void close_vulkan(const std::string& device);

/// The same whatever is left: tensors and Jits of the device may be destroyed afterwards, also
/// after vkDestroyDevice, and throw DeviceLost when they are used. What they hold is not destroyed:
/// it goes with the VkDevice. Deleters of memory are called by their end. For ends of a program.
void abandon_vulkan(const std::string& device);

/// A tensor over the application's buffer, without a copy, on its device (options.device). The
/// memory has to stay until blob.deleter is called, with null, as Tensor::from_blob() says.
/// InvalidArgument for a buffer that is too short, begins elsewhere than at a multiple of 64 bytes
/// or lacks a usage flag. The buffer holds whole 16 bytes: of a tensor of 12 bytes tuff may read,
/// never write, the 4 behind it.
Tensor from_blob(const VulkanBuffer& memory, const Sizes& sizes, BlobOptions blob = {},
                 const TensorOptions& options = {});
/// The same over memory without a buffer.
Tensor from_blob(const VulkanMemory& memory, const Sizes& sizes, BlobOptions blob = {},
                 const TensorOptions& options = {});

/// Where the tensor lies; realizes it, does not wait for it. On any Vulkan device. Valid until the
/// tensor and all that shares its memory has gone, or was assigned to. InvalidArgument for tensors
/// elsewhere.
VulkanRegion vulkan_memory(const Tensor& tensor);

/// When everything that tuff does with the tensor has finished, that is: from then on the
/// application may read and write it. Realizes the tensor, does not wait. Unsupported without
/// timelineSemaphore.
VulkanPoint vulkan_ready(const Tensor& tensor);

/// What tuff does on the tensor's device from now on begins when the application's timeline
/// semaphore has reached the value. It has to within TUFF_TIMEOUT_MS once the host waits for tuff's
/// results: a device without progress counts as lost.
void wait_for(const Tensor& tensor, VulkanPoint point);

/// Raises the application's timeline semaphore to the value when vulkan_ready(tensor) is reached.
void signal(const Tensor& tensor, VulkanPoint point);

/// The memory beneath the tensor as a file descriptor of VK_KHR_external_memory_fd. Realizes it.
/// Unsupported where the device was not opened with exportable_memory, and for memory of the
/// application.
VulkanMemoryFd vulkan_memory_fd(const Tensor& tensor);

}  // namespace tuff::interop
