#include "devices/vulkan/memory/blocks.h"

#include "base/check.h"
#include "base/log.h"
#include "base/os.h"

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

struct Wish {
  VkMemoryPropertyFlags with, without;
};

constexpr const char* kind_name(hcq::MemoryKind kind) {
  constexpr const char* names[] = {"Device", "Args", "Upload", "Readback"};
  return names[static_cast<int>(kind)];
}

uint64_t largest_local_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && heap.size > largest) largest = heap.size;
  }
  return largest;
}

int find_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits, Wish wish,
              uint64_t least_heap_bytes) {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(type_bits & (1u << i)) || (flags & kForbidden)) continue;
    if ((flags & wish.with) != wish.with || (flags & wish.without)) continue;
    if (memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size < least_heap_bytes) continue;
    return static_cast<int>(i);
  }
  return -1;
}

int first_of(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits,
             std::initializer_list<Wish> wishes, uint64_t least_heap_bytes = 0) {
  for (const Wish& wish : wishes) {
    int type = find_type(memory, type_bits, wish, least_heap_bytes);
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
  for (auto [buffer, memory] : live_) release(buffer, memory);
}

VkBuffer Blocks::create_buffer(size_t size_bytes) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size_bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  if (context_->facts.caps.bufferDeviceAddress)
    info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (context_->facts.caps.texelViews) info.usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  context_->check(context_->api.vkCreateBuffer(context_->device, &info, nullptr, &buffer),
                  "vkCreateBuffer", fmt::format("{} bytes", size_bytes));
  return buffer;
}

VkDeviceMemory Blocks::allocate(VkBuffer buffer, size_t size_bytes, hcq::MemoryKind kind,
                                uint32_t* type_out) {
  Context& c = *context_;
  VkMemoryRequirements needs{};
  c.api.vkGetBufferMemoryRequirements(c.device, buffer, &needs);
  int type = choose_memory_type(c.facts.memory, needs.memoryTypeBits, kind);
  if (type < 0)
    fail<Unsupported>("{}: no coherent memory type for {} memory", c.name, kind_name(kind));
  uint32_t heap = c.facts.memory.memoryTypes[type].heapIndex;
  uint64_t heap_bytes = c.facts.memory.memoryHeaps[heap].size;
  if (needs.size > heap_bytes) {
    fail<OutOfMemory>("{}: a block of {} bytes of {} memory is larger than its heap of {} bytes",
                      c.name, size_bytes, kind_name(kind), heap_bytes);
  }
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  if (c.facts.caps.bufferDeviceAddress) info.pNext = &flags;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkResult result = c.api.vkAllocateMemory(c.device, &info, nullptr, &memory);
  // The host-visible window of a discrete card is small; argument blocks also work outside it.
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && kind == hcq::MemoryKind::Args) {
    return allocate(buffer, size_bytes, hcq::MemoryKind::Upload, type_out);
  }
  c.check(result, "vkAllocateMemory",
          fmt::format("{} bytes of {} memory (heap {} has {} bytes in all)", size_bytes,
                      kind_name(kind), heap, heap_bytes));
  *type_out = static_cast<uint32_t>(type);
  return memory;
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

hcq::MemoryBlock Blocks::map(size_t size_bytes, hcq::MemoryKind kind) {
  Context& c = *context_;
  c.require_alive();
  if (size_bytes == 0) fail<InvalidArgument>("{}: a memory block of 0 bytes", c.name);
  if (size_bytes > c.facts.max_allocation_bytes) {
    fail<OutOfMemory>("{}: a block of {} bytes exceeds the driver's largest allocation of {} bytes",
                      c.name, size_bytes, c.facts.max_allocation_bytes);
  }
  VkBuffer buffer = create_buffer(size_bytes);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  hcq::MemoryBlock block{.size_bytes = size_bytes, .kind = kind};
  try {
    uint32_t type = 0;
    memory = allocate(buffer, size_bytes, kind, &type);
    c.check(c.api.vkBindBufferMemory(c.device, buffer, memory, 0), "vkBindBufferMemory");
    VkMemoryPropertyFlags flags = c.facts.memory.memoryTypes[type].propertyFlags;
    bool host = (flags & kHost) == kHost && (kind != hcq::MemoryKind::Device || (flags & kCached));
    if (host) {
      void* data = nullptr;
      c.check(c.api.vkMapMemory(c.device, memory, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
      block.host = static_cast<std::byte*>(data);
      if (c.facts.software()) os::prefer_huge_pages(data, size_bytes);
    }
    std::lock_guard lock(mutex_);
    live_.emplace(buffer, memory);
  } catch (...) {
    release(buffer, memory);
    throw;
  }
  block.address = address_of(buffer, size_bytes);
  block.native = reinterpret_cast<uint64_t>(buffer);
  TUFF_DEBUG_LINE(7, "{}: block of {} bytes of {} memory at {:#x}{}", c.name, size_bytes,
                  kind_name(kind), block.address, block.host ? ", mapped" : "");
  return block;
}

void Blocks::unmap(const hcq::MemoryBlock& block) noexcept {
  VkBuffer buffer = buffer_of(block);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  {
    std::lock_guard lock(mutex_);
    auto it = live_.find(buffer);
    if (it == live_.end()) return;
    memory = it->second;
    live_.erase(it);
  }
  release(buffer, memory);
}

void Blocks::release(VkBuffer buffer, VkDeviceMemory memory) noexcept {
  context_->api.vkDestroyBuffer(context_->device, buffer, nullptr);
  if (memory) context_->api.vkFreeMemory(context_->device, memory, nullptr);  // also unmaps
}

}  // namespace tuff::devices::vulkan
