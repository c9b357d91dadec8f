// Blocks: raw memory of a Vulkan device, one VkDeviceMemory with one VkBuffer over it each.
// Called by the device for hcq's Allocator, which sub-allocates. Knows memory types and heaps,
// nothing of spans or retirement.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "devices/vulkan/device/context.h"
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

 private:
  VkBuffer create_buffer(size_t size_bytes);
  VkDeviceMemory allocate(VkBuffer buffer, size_t size_bytes, hcq::MemoryKind kind, uint32_t* type);
  void release(VkBuffer buffer, VkDeviceMemory memory) noexcept;
  uint64_t address_of(VkBuffer buffer, size_t size_bytes);

  // Without device addresses a block's address is an identity: its own, and a multiple of
  // render::kBindingAlignment, whose low bits kernels read.
  static constexpr uint64_t kFirstFakeAddress = 1 << 20, kFakeAddressGap = 1 << 16;

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::unordered_map<VkBuffer, VkDeviceMemory> live_;
  uint64_t next_address_ = kFirstFakeAddress;
};

inline VkBuffer buffer_of(const hcq::MemoryBlock& block) {
  return reinterpret_cast<VkBuffer>(block.native);
}

}  // namespace tuff::devices::vulkan
