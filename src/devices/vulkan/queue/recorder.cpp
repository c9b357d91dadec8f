#include "devices/vulkan/queue/recorder.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tuff::devices::vulkan {

RecorderPool::~RecorderPool() {
  for (const Recorder& r : free_) destroy(r);
}

Recorder RecorderPool::acquire(uint32_t queries, BindingCount bindings, uint64_t passed) {
  Recorder r;
  {
    std::lock_guard lock(mutex_);
    const auto it =
        std::ranges::find_if(free_, [&](const Recorder& f) { return f.busy_until <= passed; });
    if (it != free_.end()) {
      std::swap(*it, free_.back());
      r = std::move(free_.back());
      free_.pop_back();
    }
  }
  try {
    if (r.pool) {
      context_->check(context_->api.vkResetCommandPool(context_->device, r.pool, 0),
                      "vkResetCommandPool");
    } else {
      r = create();
      // Room for every recorder there is, so that recycle(), which runs in replays too, never
      // allocates.
      std::lock_guard lock(mutex_);
      free_.reserve(++made_);
    }
    reserve_queries(r, queries);
    reserve_descriptors(r, bindings);
  } catch (...) {
    destroy(r);
    throw;
  }
  return r;
}

void RecorderPool::recycle(Recorder&& recorder) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(recorder));
}

Recorder RecorderPool::create() {
  Context& c = *context_;
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = c.facts.queue_family;
  Recorder r;
  c.check(c.api.vkCreateCommandPool(c.device, &pool_info, nullptr, &r.pool), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = r.pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkResult result = c.api.vkAllocateCommandBuffers(c.device, &info, &r.buffer);
  if (result != VK_SUCCESS) destroy(r);
  c.check(result, "vkAllocateCommandBuffers");
  return r;
}

void RecorderPool::reserve_queries(Recorder& r, uint32_t count) {
  if (count <= r.query_capacity) return;
  Context& c = *context_;
  if (r.queries) c.api.vkDestroyQueryPool(c.device, r.queries, nullptr);
  r.queries = VK_NULL_HANDLE;
  r.query_capacity = 0;
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = std::bit_ceil(count);
  c.check(c.api.vkCreateQueryPool(c.device, &info, nullptr, &r.queries), "vkCreateQueryPool");
  r.query_capacity = info.queryCount;
}

void RecorderPool::reserve_descriptors(Recorder& r, BindingCount count) {
  if (!count.sets) return;
  Context& c = *context_;
  if (count.sets <= r.descriptor_capacity.sets && count.buffers <= r.descriptor_capacity.buffers) {
    c.check(c.api.vkResetDescriptorPool(c.device, r.descriptors, 0), "vkResetDescriptorPool");
    return;
  }
  if (r.descriptors) c.api.vkDestroyDescriptorPool(c.device, r.descriptors, nullptr);
  r.descriptors = VK_NULL_HANDLE;
  const BindingCount capacity{std::bit_ceil(count.sets), std::bit_ceil(count.buffers)};
  r.descriptor_capacity = {};
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, capacity.buffers};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = capacity.sets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  c.check(c.api.vkCreateDescriptorPool(c.device, &info, nullptr, &r.descriptors),
          "vkCreateDescriptorPool");
  r.descriptor_capacity = capacity;
}

void RecorderPool::destroy(const Recorder& r) noexcept {
  Context& c = *context_;
  if (r.queries) c.api.vkDestroyQueryPool(c.device, r.queries, nullptr);
  if (r.descriptors) c.api.vkDestroyDescriptorPool(c.device, r.descriptors, nullptr);
  if (r.pool) c.api.vkDestroyCommandPool(c.device, r.pool, nullptr);
}

}  // namespace tuff::devices::vulkan
