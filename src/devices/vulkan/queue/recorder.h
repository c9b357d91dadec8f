// Recorders: a command pool with its one command buffer, query pool and descriptor pool, recycled
// between lists.
// Used by encoded lists. Knows when a recorder is free again, nothing of what was recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/vulkan/facts/context.h"

namespace tuff::devices::vulkan {

// How many descriptor sets a list takes, and buffers in all of them.
struct BindingCount {
  uint32_t sets = 0, buffers = 0;
};

struct Recorder {
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t query_capacity = 0;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  BindingCount descriptor_capacity;
  uint64_t busy_until = 0;  // timeline value of its last submission
};

class RecorderPool {
 public:
  explicit RecorderPool(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~RecorderPool();
  // One that is not in flight at timeline value `passed`, reset and ready to begin.
  Recorder acquire(uint32_t queries, BindingCount bindings, uint64_t passed);
  void recycle(Recorder&& recorder) noexcept;

 private:
  Recorder create();
  void destroy(const Recorder& recorder) noexcept;
  void reserve_queries(Recorder& recorder, uint32_t count);
  void reserve_descriptors(Recorder& recorder, BindingCount count);

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<Recorder> free_;
  size_t made_ = 0;  // what free_ has room for
};

}  // namespace tuff::devices::vulkan
