// The Vulkan device as an application sees it that uses Vulkan itself: its device lent to tuff, its
// memory as blocks, blocks and timelines as handles. Called by tensor (interop_vulkan.cpp) alone,
// and there only where Vulkan's headers were found. Must never know of tensors.
#pragma once

#include <memory>
#include <string>

#include "hcq/device.h"
#include "tuff/interop/vulkan_device.h"

namespace tuff::devices {

// Throws Unsupported with what a device lacks that tuff cannot use at all.
interop::VulkanNeeds vulkan_needs(VkInstance instance, VkPhysicalDevice physical_device,
                                  uint32_t api_version, PFN_vkGetInstanceProcAddr entry);
// Throws InvalidArgument for handles that are missing, Unsupported for features that are.
std::unique_ptr<hcq::Device> vulkan_open_lent(const interop::VulkanApplication& application,
                                              const std::string& name);

// Blocks for Allocator::adopt(); the device's unmap_block() ends them. `end_bytes`: how far from
// byte 0 tuff may read. Throws InvalidArgument naming the rule that the memory breaks.
hcq::MemoryBlock vulkan_block_over(hcq::Device& device, const interop::VulkanBuffer& memory,
                                   size_t size_bytes);
hcq::MemoryBlock vulkan_block_over(hcq::Device& device, const interop::VulkanMemory& memory,
                                   size_t size_bytes);

// InvalidArgument for spans of another kind of device.
interop::VulkanRegion vulkan_region(hcq::Device& device, const hcq::Span& span);
interop::VulkanMemoryFd vulkan_memory_fd(hcq::Device& device, const hcq::Span& span);

// The semaphore of the compute queue. Throws Unsupported where there is none.
VkSemaphore vulkan_timeline(hcq::Device& device);
// An application's timeline semaphore, for WaitCmd and SignalCmd of lists.
std::unique_ptr<hcq::Signal> vulkan_signal_over(hcq::Device& device, VkSemaphore semaphore);

}  // namespace tuff::devices
