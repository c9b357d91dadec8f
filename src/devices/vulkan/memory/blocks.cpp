#include "devices/vulkan/memory/blocks.h"

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_memory_room.h"

namespace tuff::devices::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kHost =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Never chosen: they need extensions or are only for tile memory and protected content.
constexpr VkMemoryPropertyFlags kForbidden =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

struct TypeQuery {
  VkMemoryPropertyFlags with, without;
};

constexpr const char* kind_name(hcq::MemoryKind kind) {
  constexpr const char* names[] = {"Device", "Args", "Upload", "Readback"};
  return names[static_cast<int>(kind)];
}

int find_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits, TypeQuery query,
              uint64_t least_heap_bytes) {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(type_bits & (1u << i)) || (flags & kForbidden)) continue;
    if ((flags & query.with) != query.with || (flags & query.without)) continue;
    if (memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size < least_heap_bytes) continue;
    return static_cast<int>(i);
  }
  return -1;
}

int first_of(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits,
             std::initializer_list<TypeQuery> queries, uint64_t least_heap_bytes = 0) {
  for (const TypeQuery& query : queries) {
    int type = find_type(memory, type_bits, query, least_heap_bytes);
    if (type >= 0) return type;
  }
  return -1;
}

}  // namespace

int choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits,
                       hcq::MemoryKind kind) {
  switch (kind) {
    case hcq::MemoryKind::Device: {
      // A small BAR window is also DEVICE_LOCAL | HOST_VISIBLE: only the largest heap counts.
      uint64_t heap = largest_local_heap(memory);
      int type = first_of(memory, type_bits,
                          {{kLocal | kHost | kCached, 0}, {kLocal, kHost}, {kLocal, 0}}, heap);
      return type >= 0 ? type : first_of(memory, type_bits, {{kLocal, 0}, {0, 0}});
    }
    case hcq::MemoryKind::Args:
      return first_of(memory, type_bits,
                      {{kLocal | kHost, kCached}, {kLocal | kHost, 0}, {kHost, 0}});
    case hcq::MemoryKind::Upload:
      return first_of(memory, type_bits, {{kHost, kLocal | kCached}, {kHost, kLocal}, {kHost, 0}});
    case hcq::MemoryKind::Readback:
      return first_of(memory, type_bits,
                      {{kHost | kCached, kLocal}, {kHost | kCached, 0}, {kHost, 0}});
  }
  return -1;
}

Blocks::~Blocks() {
  for (const auto& [buffer, backing] : live_) release(buffer, backing);
}

VkBuffer Blocks::create_buffer(size_t size_bytes, VkExternalMemoryHandleTypeFlags external) {
  VkExternalMemoryBufferCreateInfo shared{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  shared.handleTypes = external;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  if (external) info.pNext = &shared;
  info.size = size_bytes;
  info.usage = buffer_usage(context_->facts) | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  context_->check(context_->api.vkCreateBuffer(context_->device, &info, nullptr, &buffer),
                  "vkCreateBuffer", fmt::format("{} bytes", size_bytes));
  return buffer;
}

VkMemoryRequirements Blocks::needs_of(VkBuffer buffer) const {
  VkMemoryRequirements needs{};
  context_->api.vkGetBufferMemoryRequirements(context_->device, buffer, &needs);
  return needs;
}

// `chain`: what else is said of the memory. Sets type and size of `out`.
VkResult Blocks::allocate_memory(const void* chain, size_t size_bytes, int type, Backing& out) {
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  flags.pNext = chain;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.pNext = context_->facts.caps.bufferDeviceAddress ? &flags : chain;
  info.allocationSize = out.allocation_bytes = size_bytes;
  info.memoryTypeIndex = out.type = static_cast<uint32_t>(type);
  return context_->api.vkAllocateMemory(context_->device, &info, nullptr, &out.memory);
}

void Blocks::allocate(VkBuffer buffer, size_t size_bytes, hcq::MemoryKind kind, Backing& out) {
  Context& c = *context_;
  const VkMemoryRequirements needs = needs_of(buffer);
  int type = choose_memory_type(c.facts.memory, needs.memoryTypeBits, kind);
  if (type < 0)
    fail<Unsupported>("{}: no coherent memory type for {} memory", c.name, kind_name(kind));
  uint32_t heap = c.facts.memory.memoryTypes[type].heapIndex;
  uint64_t heap_bytes = c.facts.memory.memoryHeaps[heap].size;
  if (needs.size > heap_bytes) {
    fail<OutOfMemory>("{}: a block of {} bytes of {} memory is larger than its heap of {} bytes",
                      c.name, size_bytes, kind_name(kind), heap_bytes);
  }
  VkExportMemoryAllocateInfo shared{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO};
  shared.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  const VkResult result =
      allocate_memory(out.exportable ? &shared : nullptr, needs.size, type, out);
  // The host-visible window of a discrete card is small; argument blocks also work outside it.
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && kind == hcq::MemoryKind::Args)
    return allocate(buffer, size_bytes, hcq::MemoryKind::Upload, out);
  c.check(result, "vkAllocateMemory",
          fmt::format("{} bytes of {} memory (heap {} has {} bytes in all)", size_bytes,
                      kind_name(kind), heap, heap_bytes));
}

uint64_t Blocks::address_of(VkBuffer buffer, size_t size_bytes) {
  Context& c = *context_;
  if (!c.facts.caps.bufferDeviceAddress) {
    std::lock_guard lock(mutex_);
    const uint64_t address = next_address_;
    next_address_ =
        (address + size_bytes) / kFakeAddressGap * kFakeAddressGap + 2 * kFakeAddressGap;
    return address;
  }
  VkBufferDeviceAddressInfo info{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  info.buffer = buffer;
  return c.api.vkGetBufferDeviceAddress(c.device, &info);
}

// A block over a new buffer. `fill` gives `backing` its memory, and the host's pointer to it.
template <class Fill>
hcq::MemoryBlock Blocks::make(size_t size_bytes, VkExternalMemoryHandleTypeFlags external,
                              Backing backing, const Fill& fill) {
  Context& c = *context_;
  const VkBuffer buffer = create_buffer(size_bytes, external);
  try {
    void* host = fill(buffer, backing);
    c.check(c.api.vkBindBufferMemory(c.device, buffer, backing.memory, backing.memory_offset),
            "vkBindBufferMemory");
    return keep(buffer, backing, size_bytes, host);
  } catch (...) {
    release(buffer, backing);
    throw;
  }
}

hcq::MemoryBlock Blocks::map(size_t size_bytes, hcq::MemoryKind kind) {
  Context& c = *context_;
  c.require_alive();
  if (size_bytes == 0) fail<InvalidArgument>("{}: a memory block of 0 bytes", c.name);
  if (size_bytes > c.facts.max_allocation_bytes) {
    fail<OutOfMemory>("{}: a block of {} bytes exceeds the driver's largest allocation of {} bytes",
                      c.name, size_bytes, c.facts.max_allocation_bytes);
  }
  if (c.facts.software()) os::require_memory_room(size_bytes, c.name.c_str());
  const bool exportable = c.lent.exportable_memory && kind == hcq::MemoryKind::Device;
  const auto fill = [&](VkBuffer buffer, Backing& backing) {
    allocate(buffer, size_bytes, kind, backing);
    VkMemoryPropertyFlags flags = c.facts.memory.memoryTypes[backing.type].propertyFlags;
    bool host = (flags & kHost) == kHost && (kind != hcq::MemoryKind::Device || (flags & kCached));
    void* data = nullptr;
    if (!host) return data;
    c.check(c.api.vkMapMemory(c.device, backing.memory, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
    if (c.facts.software()) os::prefer_huge_pages(data, size_bytes);
    return data;
  };
  hcq::MemoryBlock block =
      make(size_bytes, exportable ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT : 0,
           {.exportable = exportable}, fill);
  block.kind = kind;
  TUFF_DEBUG_LINE(7, "{}: block of {} bytes of {} memory at {:#x}{}", c.name, size_bytes,
                  kind_name(kind), block.address, block.host ? ", mapped" : "");
  return block;
}

hcq::MemoryBlock Blocks::keep(VkBuffer buffer, const Backing& backing, size_t size_bytes,
                              void* host) {
  hcq::MemoryBlock block{.address = address_of(buffer, size_bytes),
                         .size_bytes = size_bytes,
                         .host = static_cast<std::byte*>(host),
                         .native = reinterpret_cast<uint64_t>(buffer)};
  std::lock_guard lock(mutex_);
  live_.emplace(buffer, backing);
  return block;
}

void Blocks::unmap(const hcq::MemoryBlock& block) noexcept {
  VkBuffer buffer = buffer_of(block);
  Backing backing;
  {
    std::lock_guard lock(mutex_);
    auto it = live_.find(buffer);
    if (it == live_.end()) return;
    backing = it->second;
    live_.erase(it);
  }
  release(buffer, backing);
}

Blocks::Backing Blocks::backing(const hcq::MemoryBlock& block) const {
  std::lock_guard lock(mutex_);
  const auto it = live_.find(buffer_of(block));
  TUFF_CHECK(it != live_.end(), "{}: a block that it does not know", context_->name);
  return it->second;
}

void Blocks::release(VkBuffer buffer, const Backing& backing) noexcept {
  const Context& c = *context_;
  if (backing.owns_buffer) c.api.vkDestroyBuffer(c.device, buffer, nullptr);
  if (backing.owns_memory && backing.memory)
    c.api.vkFreeMemory(c.device, backing.memory, nullptr);  // also unmaps
}

// ---- blocks over memory of others, and for others

hcq::MemoryBlock Blocks::adopt(VkBuffer buffer, VkDeviceMemory memory, size_t size_bytes,
                               void* host) {
  return keep(buffer, {.memory = memory, .owns_buffer = false, .owns_memory = false}, size_bytes,
              host);
}

hcq::MemoryBlock Blocks::bind_over(VkDeviceMemory memory, uint32_t type, size_t offset,
                                   size_t size_bytes, void* host) {
  const Backing backing{
      .memory = memory, .memory_offset = offset, .type = type, .owns_memory = false};
  return make(size_bytes, 0, backing, [&](VkBuffer buffer, Backing&) {
    const VkMemoryRequirements needs = needs_of(buffer);
    if (offset % needs.alignment != 0)
      fail<InvalidArgument>("{}: memory at {}: buffers begin at multiples of {} bytes",
                            context_->name, offset, needs.alignment);
    if (!(needs.memoryTypeBits & (1u << type)))
      fail<InvalidArgument>(
          "{}: buffers cannot lie in memory of type {}: allocate it from one of the types {:#x} "
          "(bits)",
          context_->name, type, needs.memoryTypeBits);
    return host ? static_cast<std::byte*>(host) + offset : nullptr;
  });
}

void Blocks::import_memory(VkBuffer buffer, void* data, size_t size_bytes, Backing& out) {
  Context& c = *context_;
  constexpr auto kHostAllocation = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  c.check(c.api.vkGetMemoryHostPointerPropertiesEXT(c.device, kHostAllocation, data, &pointer),
          "vkGetMemoryHostPointerPropertiesEXT", fmt::format("memory at {}", data));
  const uint32_t type_bits = needs_of(buffer).memoryTypeBits & pointer.memoryTypeBits;
  const int type = first_of(c.facts.memory, type_bits, {{kHost, 0}});
  if (type < 0)
    fail<Unsupported>("{}: the driver has no coherent type for memory at {}: copy it", c.name,
                      data);
  VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  import.handleType = kHostAllocation;
  import.pHostPointer = data;
  c.check(allocate_memory(&import, size_bytes, type, out), "vkAllocateMemory",
          fmt::format("{} bytes of host memory at {}", size_bytes, data));
}

hcq::MemoryBlock Blocks::import_host(void* data, size_t size_bytes) {
  Context& c = *context_;
  if (!c.facts.caps.hostMemory || !c.api.vkGetMemoryHostPointerPropertiesEXT)
    fail<Unsupported>(
        "{}: its kernels cannot work on memory of the process, for want of "
        "VK_EXT_external_memory_host: copy it",
        c.name);
  const size_t unit = c.facts.host_import_alignment, page = os::page_size();
  // The rest of the last page is there for the taking; other pages may not be mapped.
  const size_t whole = align_up(size_bytes, unit);
  if (reinterpret_cast<uintptr_t>(data) % unit != 0 || (unit > page && whole != size_bytes))
    fail<InvalidArgument>(
        "{}: {} bytes of host memory at {}: the driver takes memory that begins at a multiple of "
        "{} bytes{}: allocate it so (std::aligned_alloc), or copy it",
        c.name, size_bytes, data, unit, unit > page ? " and is as long" : "");
  return make(whole, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, {},
              [&](VkBuffer buffer, Backing& backing) {
                import_memory(buffer, data, whole, backing);
                return data;
              });
}

int Blocks::export_fd(const hcq::MemoryBlock& block) const {
  const Context& c = *context_;
  const Backing b = backing(block);
  if (!b.exportable)
    fail<Unsupported>(
        "{}: the memory was not made for export: open the device with exportable_memory, and take "
        "a tensor of tuff's own",
        c.name);
  VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
  info.memory = b.memory;
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  context_->check(c.api.vkGetMemoryFdKHR(c.device, &info, &fd), "vkGetMemoryFdKHR");
  return fd;
}

}  // namespace tuff::devices::vulkan
