#include "devices/vulkan_interop.h"

#include "base/arith.h"
#include "base/check.h"
#include "devices/vulkan/facts/select.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "devices/vulkan/self_test/verdicts.h"

namespace tuff::devices {
namespace vulkan {
namespace {

using interop::VulkanApplication;
using interop::VulkanBuffer;
using interop::VulkanMemory;
using interop::VulkanNeeds;

// Vectors of tuff's kernels begin there, and the last ones reach to the end of 16 bytes.
constexpr size_t kBeginAlignment = 64, kEndAlignment = 16;

std::vector<std::string> cap_names(const Caps& caps) {
  std::vector<std::string> names;
#define TUFF_VK_CAP(name, bit, disable, prose) \
  if (caps.name) names.push_back(#name);
#define TUFF_VK_PROPERTY(name, disable, prose)
#include "devices/vulkan/facts/caps.def"
  if (caps.cooperativeMatrix) names.insert(names.end(), {"cooperativeMatrix", "vulkanMemoryModel"});
  return names;
}

void require(bool given, const char* what, const char* member) {
  if (!given)
    fail<InvalidArgument>("{}: {} is null: give the handle that the application created", what,
                          member);
}

std::shared_ptr<Instance> instance_of(VkInstance handle, uint32_t api_version,
                                      PFN_vkGetInstanceProcAddr entry) {
  if (api_version < VK_API_VERSION_1_1)
    fail<InvalidArgument>(
        "api_version is {}.{} and tuff needs 1.1: create the instance with "
        "VkApplicationInfo::apiVersion VK_API_VERSION_1_1 or later, and say it here",
        VK_API_VERSION_MAJOR(api_version), VK_API_VERSION_MINOR(api_version));
  return Instance::adopt(handle, api_version, entry);
}

// tuff's own calls order themselves and the application's by timelines.
void require_timeline(const Facts& f) {
  if (f.caps.timelineSemaphore) return;
  const bool asked = f.has_extension(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME) ||
                     f.version >= VK_API_VERSION_1_2;
  fail<Unsupported>(
      "{}: the device was created without timelineSemaphore{}: enable it at vkCreateDevice, with "
      "what interop::vulkan_needs() lists, and pass the same chain to open_vulkan()",
      f.properties.deviceName,
      asked ? "" : " and without the extension VK_KHR_timeline_semaphore");
}

void require_usable(const Facts& f) {
  if (!f.usable())
    fail<Unsupported>("{} cannot be used: it {}", f.properties.deviceName, f.missing);
}

// The self-tests may lose a device, so they are run on one of tuff's own of the same driver.
void settle_on_own_device(Facts& lent, const std::string& name) {
  std::shared_ptr<Instance> instance;
  const auto open = [&](const Facts& facts) -> std::unique_ptr<hcq::Device> {
    if (!instance) instance = Instance::acquire();
    for (const Facts& own : list_devices(*instance)) {
      if (own.device_uuid != lent.device_uuid || own.driver_id != lent.driver_id) continue;
      Facts trial = facts;
      trial.handle = own.handle;
      trial.queue_family = own.queue_family;
      trial.timestamp_bits = own.timestamp_bits;
      return std::make_unique<VulkanDevice>(std::make_shared<Context>(instance, trial, name));
    }
    fail<Unsupported>("{}: tuff's own VkInstance has no such device", name);
  };
  settle_verdicts(lent, name, open);
}

Facts facts_of(const Instance& instance, const VulkanApplication& a) {
  const Enabled enabled{a.extensions, a.features, a.core_features};
  Facts f = gather_facts(instance, a.physical_device, &enabled);
  const auto families = queue_families(instance.api, a.physical_device);
  if (a.queue_family >= families.size() ||
      !(families[a.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    fail<InvalidArgument>("open_vulkan: queues of family {} cannot compute: take one of family {}",
                          a.queue_family, f.queue_family);
  f.queue_family = a.queue_family;
  f.timestamp_bits = families[a.queue_family].timestampValidBits;
  require_usable(f);
  require_timeline(f);
  if (a.exportable_memory && !f.caps.memoryFd)
    fail<Unsupported>(
        "{}: exportable_memory takes the extension VK_KHR_external_memory_fd: enable "
        "it at vkCreateDevice and name it in `extensions`",
        f.properties.deviceName);
  return f;
}

std::string flag_names(VkBufferUsageFlags flags) {
  constexpr std::pair<VkBufferUsageFlags, const char*> kFlags[] = {
      {VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, "VK_BUFFER_USAGE_STORAGE_BUFFER_BIT"},
      {VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"},
      {VK_BUFFER_USAGE_TRANSFER_DST_BIT, "VK_BUFFER_USAGE_TRANSFER_DST_BIT"},
      {VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT"},
  };
  std::vector<const char*> names;
  for (const auto& [bit, name] : kFlags)
    if (flags & bit) names.push_back(name);
  return fmt::format("{}", fmt::join(names, " | "));
}

// Bytes [0, result) of the memory are what the tensor's kernels may touch.
size_t end_of(const std::string& device, size_t offset, size_t size_bytes, size_t given) {
  if (offset % kBeginAlignment != 0)
    fail<InvalidArgument>("{}: a tensor at byte {} of the memory: begin at a multiple of {}",
                          device, offset, kBeginAlignment);
  const size_t end = align_up(size_bytes, kEndAlignment);
  if (offset > given || end > given - offset)
    fail<InvalidArgument>(
        "{}: a tensor of {} bytes at byte {} ends at byte {} (of whole {}), and the memory has {}: "
        "make it longer",
        device, size_bytes, offset, offset + end, kEndAlignment, given);
  return offset + end;
}

}  // namespace
}  // namespace vulkan

interop::VulkanNeeds vulkan_needs(VkInstance handle, VkPhysicalDevice physical_device,
                                  uint32_t api_version, PFN_vkGetInstanceProcAddr entry) {
  using namespace vulkan;
  require(handle, "vulkan_needs", "instance");
  require(physical_device, "vulkan_needs", "physical_device");
  const auto instance = instance_of(handle, api_version, entry);
  const Facts f = gather_facts(*instance, physical_device);
  require_usable(f);
  if (!f.caps.timelineSemaphore)
    fail<Unsupported>(
        "{} has no timelineSemaphore, by which tuff and an application wait for each "
        "other: update the driver",
        f.properties.deviceName);
  VulkanNeeds needs;
  needs.extensions = extensions_to_enable(f);
  const auto chain = std::make_shared<FeatureChain>(f.version, f.extensions);
  chain->base.features = {};
  chain->enable(f.caps);
  needs.features = &chain->base;
  needs.chain = chain;
  needs.feature_names = cap_names(f.caps);
  needs.queue_family = f.queue_family;
  needs.buffer_usage = buffer_usage(f);
  if (f.caps.bufferDeviceAddress) needs.allocate_flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  return needs;
}

std::unique_ptr<hcq::Device> vulkan_open_lent(const interop::VulkanApplication& a,
                                              const std::string& name) {
  using namespace vulkan;
  require(a.instance, "open_vulkan", "instance");
  require(a.physical_device, "open_vulkan", "physical_device");
  require(a.device, "open_vulkan", "device");
  require(a.queue, "open_vulkan", "queue");
  if (bool(a.lock_queue) != bool(a.unlock_queue))
    fail<InvalidArgument>("open_vulkan: {} is missing: give both or none",
                          a.lock_queue ? "unlock_queue" : "lock_queue");
  auto instance = instance_of(a.instance, a.api_version, a.get_instance_proc_addr);
  Facts f = facts_of(*instance, a);
  settle_on_own_device(f, name);
  return std::make_unique<VulkanDevice>(std::make_shared<Context>(
      std::move(instance), f, name,
      LentDevice{a.device, a.queue, a.lock_queue, a.unlock_queue, a.exportable_memory}));
}

hcq::MemoryBlock vulkan_block_over(hcq::Device& device, const interop::VulkanBuffer& m,
                                   size_t size_bytes) {
  vulkan::VulkanDevice& d = vulkan::native(device);
  if (!m.buffer) fail<InvalidArgument>("{}: from_blob: the buffer is null", d.name());
  const VkBufferUsageFlags lacking = vulkan::buffer_usage(d.context()->facts) & ~m.usage;
  if (lacking)
    fail<InvalidArgument>(
        "{}: from_blob: the buffer was created without {}: add it to "
        "VkBufferCreateInfo::usage and to VulkanBuffer::usage "
        "(VulkanNeeds::buffer_usage has all)",
        d.name(), vulkan::flag_names(lacking));
  const size_t end = vulkan::end_of(d.name(), m.offset, size_bytes, m.size_bytes);
  const hcq::MemoryBlock block = d.blocks().adopt(m.buffer, m.memory, end, m.mapped);
  if (block.address % vulkan::kBeginAlignment == 0) return block;
  d.unmap_block(block);
  fail<InvalidArgument>(
      "{}: from_blob: the buffer lies at {:#x}, and a tensor begins at a multiple "
      "of {} bytes: bind it to memory at such an offset",
      d.name(), block.address, vulkan::kBeginAlignment);
}

hcq::MemoryBlock vulkan_block_over(hcq::Device& device, const interop::VulkanMemory& m,
                                   size_t size_bytes) {
  vulkan::VulkanDevice& d = vulkan::native(device);
  if (!m.memory) fail<InvalidArgument>("{}: from_blob: the memory is null", d.name());
  const uint32_t types = d.context()->facts.memory.memoryTypeCount;
  if (m.type_index >= types)
    fail<InvalidArgument>(
        "{}: from_blob: type {} of memory, the device has {}: give "
        "VkMemoryAllocateInfo::memoryTypeIndex",
        d.name(), m.type_index, types);
  const size_t end = vulkan::end_of(d.name(), m.offset, size_bytes, m.size_bytes);
  return d.blocks().bind_over(m.memory, m.type_index, m.offset,
                              std::max<size_t>(end - m.offset, 16), m.mapped);
}

interop::VulkanRegion vulkan_region(hcq::Device& device, const hcq::Span& span) {
  vulkan::VulkanDevice& d = vulkan::native(device);
  const auto backing = d.blocks().backing(*span.block);
  interop::VulkanRegion r;
  r.device = d.context()->device;
  r.buffer = vulkan::buffer_of(*span.block);
  r.memory = backing.memory;
  r.offset = span.offset;
  r.memory_offset = backing.memory_offset + span.offset;
  r.size_bytes = span.size_bytes;
  if (d.context()->facts.caps.bufferDeviceAddress) r.address = span.address();
  return r;
}

interop::VulkanMemoryFd vulkan_memory_fd(hcq::Device& device, const hcq::Span& span) {
  vulkan::VulkanDevice& d = vulkan::native(device);
  const auto backing = d.blocks().backing(*span.block);
  return {.fd = d.blocks().export_fd(*span.block),
          .allocation_bytes = backing.allocation_bytes,
          .type_index = backing.type,
          .buffer_bytes = span.block->size_bytes,
          .offset = span.offset};
}

VkSemaphore vulkan_timeline(hcq::Device& device) {
  const VkSemaphore semaphore = vulkan::native(device).timeline_semaphore();
  if (!semaphore)
    fail<Unsupported>(
        "{}: its queue has no timeline semaphore (timelineSemaphore is missing or "
        "disabled): wait for a tensor with item() or copy_to()",
        device.name());
  return semaphore;
}

std::unique_ptr<hcq::Signal> vulkan_signal_over(hcq::Device& device, VkSemaphore semaphore) {
  vulkan_timeline(device);
  if (!semaphore) fail<InvalidArgument>("{}: the semaphore is null", device.name());
  return std::make_unique<vulkan::TimelineSignal>(semaphore, vulkan::native(device).context());
}

}  // namespace tuff::devices
