// Sharing with an application that uses Vulkan: devices by name, tensors over its memory, memory of
// tensors for it, and waiting for each other.
#include <tuff/interop/vulkan.h>

#include "base/check.h"
#include "devices/vulkan_interop.h"
#include "engine/device.h"
#include "tensor/dft.h"
#include "tensor/impl.h"
#include "tensor/lent_device.h"

namespace tuff::interop {
namespace {

constinit detail::LentDevices vulkan_devices("VULKAN", "open_vulkan", "close_vulkan");

detail::Realized realized_on_vulkan(const char* what, const Tensor& tensor) {
  return detail::realized_on("VULKAN", what, tensor);
}

template <class Memory>
Tensor blob_over(const Memory& memory, const Sizes& sizes, const BlobOptions& blob,
                 const TensorOptions& options) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(options.device);
  hcq::Device& on = device->hcq();
  const auto make = [&](int64_t count, size_t lead) {
    if (lead > memory.offset)
      fail<InvalidArgument>("from_blob: elements {} bytes in front of byte {} of the memory", lead,
                            memory.offset);
    Memory part = memory;
    part.offset -= lead;
    const size_t bytes = size_t(count) * size_bytes(options.dtype);
    const hcq::MemoryBlock block = devices::vulkan_block_over(on, part, bytes);
    // A buffer of tuff's own begins where the tensor does.
    constexpr bool kLaidOver = std::is_same_v<Memory, VulkanMemory>;
    hcq::ForeignMemory lent{.block = block, .offset = kLaidOver ? 0 : size_t(part.offset)};
    lent.read_only = blob.read_only;
    lent.release = [&on, block, deleter = blob.deleter] {
      on.unmap_block(block);
      if (deleter) deleter(nullptr);
    };
    return engine::Buffer::adopted(device, options.dtype, count, std::move(lent));
  };
  return detail::finish(detail::tensor_over({sizes, blob, options}, make), options);
}

// One command that names the semaphore, after everything submitted before.
template <class Command>
uint64_t submit_alone(engine::Device& device, VulkanPoint point) {
  const std::unique_ptr<hcq::Signal> signal =
      devices::vulkan_signal_over(device.hcq(), point.semaphore);
  hcq::CommandList list;
  list.slot_count = 1;
  list.commands.push_back({.body = Command{signal.get(), 0}});
  hcq::Queue& queue = device.queue();
  return queue.submit_once(queue.encode(list, hcq::EncodeUse::Once), {&point.value, 1});
}

}  // namespace

VulkanNeeds vulkan_needs(VkInstance instance, VkPhysicalDevice physical_device,
                         uint32_t api_version, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
  return devices::vulkan_needs(instance, physical_device, api_version, get_instance_proc_addr);
}

std::string open_vulkan(const VulkanApplication& application) {
  const std::string name = vulkan_devices.next_name();
  engine::Device::add(devices::vulkan_open_lent(application, name));
  return name;
}

void close_vulkan(const std::string& device) {
  vulkan_devices.close(device, "let go of them first, or abandon_vulkan()");
}

void abandon_vulkan(const std::string& device) {
  vulkan_devices.require("abandon_vulkan", device);
  detail::drop_generator(device);
  detail::drop_tables(device);
  engine::abandon_device(device,
                         device + " was abandoned (abandon_vulkan()): its tensors are gone");
}

Tensor from_blob(const VulkanBuffer& memory, const Sizes& sizes, BlobOptions blob,
                 const TensorOptions& options) {
  return blob_over(memory, sizes, blob, options);
}

Tensor from_blob(const VulkanMemory& memory, const Sizes& sizes, BlobOptions blob,
                 const TensorOptions& options) {
  return blob_over(memory, sizes, blob, options);
}

VulkanRegion vulkan_memory(const Tensor& tensor) {
  const detail::Realized r = realized_on_vulkan("vulkan_memory", tensor);
  return devices::vulkan_region(r.device->hcq(), r.buffer->span().sub(0, r.buffer->size_bytes()));
}

VulkanPoint vulkan_ready(const Tensor& tensor) {
  const detail::Realized r = realized_on_vulkan("vulkan_ready", tensor);
  return {devices::vulkan_timeline(r.device->hcq()), r.buffer->uses().last()};
}

void wait_for(const Tensor& tensor, VulkanPoint point) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(tensor.device());
  detail::host_waits(tensor, submit_alone<hcq::WaitCmd>(*device, point));
}

void signal(const Tensor& tensor, VulkanPoint point) {
  const detail::Realized r = realized_on_vulkan("signal", tensor);
  submit_alone<hcq::SignalCmd>(*r.device, point);
}

VulkanMemoryFd vulkan_memory_fd(const Tensor& tensor) {
  const detail::Realized r = realized_on_vulkan("vulkan_memory_fd", tensor);
  return devices::vulkan_memory_fd(r.device->hcq(), r.buffer->span());
}

}  // namespace tuff::interop
