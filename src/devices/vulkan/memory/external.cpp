// Blocks over memory of others: an application's buffers and memory, memory of the process; and
// blocks as file descriptors for others.
#include "base/check.h"
#include "base/os.h"
#include "devices/vulkan/memory/blocks.h"

namespace tuff::devices::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kCoherent =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

int coherent_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits) {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((type_bits & (1u << i)) && (memory.memoryTypes[i].propertyFlags & kCoherent) == kCoherent)
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

hcq::MemoryBlock Blocks::adopt(VkBuffer buffer, VkDeviceMemory memory, size_t size_bytes,
                               void* host) {
  return keep(buffer, {.memory = memory, .owns_buffer = false, .owns_memory = false}, size_bytes,
              host);
}

hcq::MemoryBlock Blocks::lay_over(VkDeviceMemory memory, uint32_t type, size_t offset,
                                  size_t size_bytes, void* host) {
  Context& c = *context_;
  const Beneath beneath{
      .memory = memory, .memory_offset = offset, .type = type, .owns_memory = false};
  const VkBuffer buffer = create_buffer(size_bytes);
  try {
    VkMemoryRequirements needs{};
    c.api.vkGetBufferMemoryRequirements(c.device, buffer, &needs);
    if (offset % needs.alignment != 0)
      fail<InvalidArgument>("{}: memory at {}: buffers begin at multiples of {} bytes", c.name,
                            offset, needs.alignment);
    if (!(needs.memoryTypeBits & (1u << type)))
      fail<InvalidArgument>(
          "{}: buffers cannot lie in memory of type {}: allocate it from one of "
          "the types {:#x} (bits)",
          c.name, type, needs.memoryTypeBits);
    c.check(c.api.vkBindBufferMemory(c.device, buffer, memory, offset), "vkBindBufferMemory");
    return keep(buffer, beneath, size_bytes,
                host ? static_cast<std::byte*>(host) + offset : nullptr);
  } catch (...) {
    release(buffer, beneath);
    throw;
  }
}

void Blocks::import_memory(VkBuffer buffer, void* data, size_t size_bytes, Beneath& out) {
  Context& c = *context_;
  constexpr auto kHostAllocation = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  c.check(c.api.vkGetMemoryHostPointerPropertiesEXT(c.device, kHostAllocation, data, &pointer),
          "vkGetMemoryHostPointerPropertiesEXT", fmt::format("memory at {}", data));
  VkMemoryRequirements needs{};
  c.api.vkGetBufferMemoryRequirements(c.device, buffer, &needs);
  const int type = coherent_type(c.facts.memory, needs.memoryTypeBits & pointer.memoryTypeBits);
  if (type < 0)
    fail<Unsupported>("{}: the driver has no coherent type for memory at {}: copy it", c.name,
                      data);
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  if (c.facts.caps.bufferDeviceAddress) import.pNext = &flags;
  import.handleType = kHostAllocation;
  import.pHostPointer = data;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.pNext = &import;
  info.allocationSize = size_bytes;
  info.memoryTypeIndex = out.type = static_cast<uint32_t>(type);
  c.check(c.api.vkAllocateMemory(c.device, &info, nullptr, &out.memory), "vkAllocateMemory",
          fmt::format("{} bytes of host memory at {}", size_bytes, data));
  out.allocation_bytes = size_bytes;
}

hcq::MemoryBlock Blocks::import_host(void* data, size_t size_bytes) {
  Context& c = *context_;
  if (!c.facts.caps.hostMemory || !c.api.vkGetMemoryHostPointerPropertiesEXT)
    fail<Unsupported>(
        "{}: its kernels cannot work on memory of the process, for want of "
        "VK_EXT_external_memory_host: copy it",
        c.name);
  const size_t unit = c.facts.host_import_alignment, page = os::page_size();
  // The rest of the last page is there for the taking; other pages may be nobody's.
  const size_t whole = (size_bytes + unit - 1) / unit * unit;
  if (reinterpret_cast<uintptr_t>(data) % unit != 0 || (unit > page && whole != size_bytes))
    fail<InvalidArgument>(
        "{}: {} bytes of host memory at {}: the driver takes memory that begins at a multiple of "
        "{} "
        "bytes{}: allocate it so (std::aligned_alloc), or copy it",
        c.name, size_bytes, data, unit, unit > page ? " and is as long" : "");
  const VkBuffer buffer =
      create_buffer(whole, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
  Beneath beneath;
  try {
    import_memory(buffer, data, whole, beneath);
    c.check(c.api.vkBindBufferMemory(c.device, buffer, beneath.memory, 0), "vkBindBufferMemory");
    return keep(buffer, beneath, whole, data);
  } catch (...) {
    release(buffer, beneath);
    throw;
  }
}

int Blocks::export_fd(const hcq::MemoryBlock& block) const {
  const Context& c = *context_;
  const Beneath b = beneath(block);
  if (!b.exportable)
    fail<Unsupported>(
        "{}: the memory was not made for export: open the device with exportable_memory, and take "
        "a "
        "tensor of tuff's own",
        c.name);
  VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
  info.memory = b.memory;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  context_->check(c.api.vkGetMemoryFdKHR(c.device, &info, &fd), "vkGetMemoryFdKHR");
  return fd;
}

}  // namespace tuff::devices::vulkan
