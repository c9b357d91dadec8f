// TimelineSignal: hcq::Signal as a timeline semaphore.
// Used by the queue (its own timeline) and for signals between queues. Knows nothing of submission.
#pragma once

#include <memory>

#include "devices/vulkan/facts/context.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

class TimelineSignal final : public hcq::Signal {
 public:
  TimelineSignal(std::shared_ptr<Context> context, uint64_t initial);
  // Over an application's timeline semaphore.
  TimelineSignal(VkSemaphore semaphore, std::shared_ptr<Context> context)
      : context_(std::move(context)), semaphore_(semaphore), owned_(false) {}
  ~TimelineSignal() override;
  uint64_t value() const override;
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;
  VkSemaphore semaphore() const { return semaphore_; }
  const Context* context() const { return context_.get(); }

 private:
  std::shared_ptr<Context> context_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool owned_ = true;
};

}  // namespace tuff::devices::vulkan
