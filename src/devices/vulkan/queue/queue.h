// VulkanQueue: the one compute queue of a device; each submission is one vkQueueSubmit2 that
// signals the next value of the queue's timeline semaphore, or a fence of its own where there is
// none. Made by the device, used through hcq::Queue.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "devices/vulkan/queue/clock.h"
#include "devices/vulkan/queue/encoded.h"
#include "devices/vulkan/queue/fences.h"
#include "devices/vulkan/queue/signal.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

class VulkanQueue final : public hcq::Queue {
 public:
  VulkanQueue(hcq::Device& device, std::shared_ptr<Context> context);
  ~VulkanQueue() override;
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return *timeline_; }
  VkSemaphore semaphore() const { return semaphore_ ? semaphore_->semaphore() : VK_NULL_HANDLE; }
  uint64_t last_submitted() const override { return last_.load(std::memory_order_acquire); }

 private:
  std::unique_ptr<EncodedVulkanList> encode_native(const hcq::CommandList& list,
                                                   hcq::EncodeUse use);
  void submit_native(EncodedVulkanList& list, std::span<const uint64_t> slots, uint64_t value);
  void submit_with(const EncodedVulkanList& list, VkFence fence);
  std::vector<uint64_t> read_ticks(const EncodedVulkanList& list);
  void measure_clock();

  std::shared_ptr<Context> context_;
  std::unique_ptr<hcq::Signal> timeline_;
  TimelineSignal* semaphore_ = nullptr;  // `timeline_` as what it is: one of these two
  FenceTimeline* fences_ = nullptr;
  std::shared_ptr<RecorderPool> recorders_;  // shared with lists, which may outlive the queue
  std::mutex mutex_;                         // guards the VkQueue and the order of values
  std::atomic<uint64_t> last_{0};
  std::mutex clock_mutex_;
  Clock clock_;
};

}  // namespace tuff::devices::vulkan
