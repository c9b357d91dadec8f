#include "devices/vulkan/queue/signal.h"

#include "base/check.h"

namespace tuff::devices::vulkan {

TimelineSignal::TimelineSignal(std::shared_ptr<Context> context, uint64_t initial)
    : context_(std::move(context)) {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = initial;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  info.pNext = &type;
  context_->check(context_->api.vkCreateSemaphore(context_->device, &info, nullptr, &semaphore_),
                  "vkCreateSemaphore");
}

TimelineSignal::~TimelineSignal() {
  if (owned_) context_->api.vkDestroySemaphore(context_->device, semaphore_, nullptr);
}

uint64_t TimelineSignal::value() const {
  context_->require_alive();
  uint64_t value = 0;
  context_->check(context_->api.vkGetSemaphoreCounterValue(context_->device, semaphore_, &value),
                  "vkGetSemaphoreCounterValue");
  return value;
}

bool TimelineSignal::wait(uint64_t value, uint64_t timeout_ns) {
  context_->require_alive();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  VkResult result = context_->api.vkWaitSemaphores(context_->device, &info, timeout_ns);
  if (result == VK_TIMEOUT) return false;
  context_->check(result, "vkWaitSemaphores");
  return true;
}

void TimelineSignal::set(uint64_t value) {
  VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
  info.semaphore = semaphore_;
  info.value = value;
  uint64_t now = 0;
  try {
    now = this->value();
  } catch (const DeviceLost&) {
    // What the driver still holds of a device that is given up may wait for this all the same.
    context_->api.vkSignalSemaphore(context_->device, &info);
    throw;
  }
  if (value <= now) {
    fail<InvalidArgument>("{}: a signal only rises: set({}) while it stands at {}", context_->name,
                          value, now);
  }
  context_->check(context_->api.vkSignalSemaphore(context_->device, &info), "vkSignalSemaphore");
}

}  // namespace tuff::devices::vulkan
