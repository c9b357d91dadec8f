// FenceTimeline: a queue's timeline as hcq::Signal where there are no timeline semaphores: a fence
// of a recycled pool per submission, which pass in the order of the submissions. Used by the queue.
// It cannot be waited on or signalled by a command list, nor set by the host.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/vulkan/facts/context.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

class FenceTimeline final : public hcq::Signal {
 public:
  explicit FenceTimeline(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~FenceTimeline() override;
  // Around a submission, under the queue's lock: an unsignalled fence, then the value that it
  // stands for, which is above all before. One that was not submitted is given back.
  VkFence acquire();
  void submitted(VkFence fence, uint64_t value);
  void give_back(VkFence fence) noexcept;

  uint64_t value() const override;  // asks about the oldest submissions until one still runs
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;  // Unsupported

 private:
  struct Flight {
    uint64_t value = 0;
    VkFence fence = VK_NULL_HANDLE;
    uint32_t waiters = 0;  // threads inside vkWaitForFences: it may not be reset meanwhile
  };
  void poll() const;  // with mutex_ held
  void retire(size_t count) const;
  void leave(VkFence fence);

  std::shared_ptr<Context> context_;
  mutable std::mutex mutex_;
  std::condition_variable submission_;
  // Mutable: asking for the value finds out what has passed.
  mutable uint64_t reached_ = 0;
  // Oldest first; `retired_` have passed and are still waited on. Each has room for every fence.
  mutable std::vector<Flight> flights_, retired_;
  mutable std::vector<VkFence> free_;
  size_t made_ = 0;
};

}  // namespace tuff::devices::vulkan
