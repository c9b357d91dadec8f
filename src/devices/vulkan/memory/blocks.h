// Blocks: raw memory of a Vulkan device, one VkDeviceMemory with one VkBuffer over it each.
// Called by the device for hcq's Allocator, which sub-allocates. Knows memory types and heaps,
// nothing of spans or retirement.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "devices/vulkan/facts/context.h"
#include "hcq/memory.h"

namespace tuff::devices::vulkan {

// Index of the memory type for `kind` among `type_bits`, or -1. Types without coherence are not
// used. Device memory has a host pointer only where the host reads it through its cache (software,
// UMA): reading write-combined memory is slower than a staged copy.
int choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type_bits,
                       hcq::MemoryKind kind);

class Blocks {
 public:
  explicit Blocks(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Blocks();
  hcq::MemoryBlock map(size_t size_bytes, hcq::MemoryKind kind);
  void unmap(const hcq::MemoryBlock& block) noexcept;

  // Blocks over memory of others; each ends with unmap(), which destroys what was made for it. An
  // application's buffer, which it keeps:
  hcq::MemoryBlock adopt(VkBuffer buffer, VkDeviceMemory memory, size_t size_bytes, void* host);
  // A buffer over size_bytes of an application's memory; InvalidArgument for an offset that is not
  // aligned as the driver wants, or a type of memory that buffers cannot lie in.
  hcq::MemoryBlock bind_over(VkDeviceMemory memory, uint32_t type, size_t offset, size_t size_bytes,
                             void* host);
  // Memory of the process: hcq::over_host().
  hcq::MemoryBlock import_host(void* data, size_t size_bytes);

  // The memory beneath a block.
  struct Backing {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    size_t memory_offset = 0;  // of the buffer's byte 0
    size_t allocation_bytes = 0;
    uint32_t type = 0;
    bool exportable = false;
    bool owns_buffer = true, owns_memory = true;
  };
  Backing backing(const hcq::MemoryBlock& block) const;
  // A new file descriptor; Unsupported for memory that is not exportable.
  int export_fd(const hcq::MemoryBlock& block) const;

 private:
  template <class Fill>
  hcq::MemoryBlock make(size_t size_bytes, VkExternalMemoryHandleTypeFlags external,
                        Backing backing, const Fill& fill);
  VkBuffer create_buffer(size_t size_bytes, VkExternalMemoryHandleTypeFlags external);
  VkMemoryRequirements needs_of(VkBuffer buffer) const;
  VkResult allocate_memory(const void* chain, size_t size_bytes, int type, Backing& out);
  void allocate(VkBuffer buffer, size_t size_bytes, hcq::MemoryKind kind, Backing& out);
  void import_memory(VkBuffer buffer, void* data, size_t size_bytes, Backing& out);
  hcq::MemoryBlock keep(VkBuffer buffer, const Backing& backing, size_t size_bytes, void* host);
  void release(VkBuffer buffer, const Backing& backing) noexcept;
  uint64_t address_of(VkBuffer buffer, size_t size_bytes);

  // Without device addresses a block's address is an identity: its own, and a multiple of
  // render::kBindingAlignment, whose low bits kernels read.
  static constexpr uint64_t kFirstFakeAddress = 1 << 20, kFakeAddressGap = 1 << 16;

  std::shared_ptr<Context> context_;
  mutable std::mutex mutex_;
  // An application may lend a buffer several times.
  std::unordered_multimap<VkBuffer, Backing> live_;
  uint64_t next_address_ = kFirstFakeAddress;
};

inline VkBuffer buffer_of(const hcq::MemoryBlock& block) {
  return reinterpret_cast<VkBuffer>(block.native);
}

}  // namespace tuff::devices::vulkan
