// EncodedVulkanList: a recorded command buffer with everything that its submission needs, allocated
// beforehand, so that submitting it again writes a few values and calls the driver once.
// Made by encode_list, submitted by VulkanQueue.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "devices/driver_list.h"
#include "devices/vulkan/queue/recorder.h"
#include "devices/vulkan/queue/signal.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

// Arguments of one vkQueueSubmit2 (or, without synchronization2, one vkQueueSubmit).
class Submission {
 public:
  void add_wait(VkSemaphore semaphore, uint32_t slot);
  void add_signal(VkSemaphore semaphore, uint32_t slot);
  // After the last add: fixes the arrays. The queue's own timeline is signalled last; without one
  // (VK_NULL_HANDLE) a fence is given at submission.
  void seal(VkSemaphore timeline, VkCommandBuffer buffer);
  void fill(std::span<const uint64_t> slots, uint64_t timeline_value);
  const VkSubmitInfo2& info2() const { return info2_; }
  const VkSubmitInfo& legacy() const { return legacy_; }

 private:
  struct Legacy {  // parallel arrays, as vkQueueSubmit wants them
    std::vector<VkSemaphore> semaphores;
    std::vector<uint64_t> values;
  };
  void seal_legacy();

  bool has_timeline_ = false;
  std::vector<VkSemaphoreSubmitInfo> waits_, signals_;
  std::vector<uint32_t> wait_slots_, signal_slots_;
  VkCommandBufferSubmitInfo buffer_{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  VkSubmitInfo2 info2_{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  Legacy legacy_waits_, legacy_signals_;
  std::vector<VkPipelineStageFlags> legacy_stages_;
  VkTimelineSemaphoreSubmitInfo legacy_values_{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  VkSubmitInfo legacy_{VK_STRUCTURE_TYPE_SUBMIT_INFO};
};

class EncodedVulkanList final : public DriverList {
 public:
  EncodedVulkanList(hcq::Queue& queue, hcq::EncodeUse use, const hcq::CommandList& list,
                    std::shared_ptr<RecorderPool> pool, Recorder recorder)
      : DriverList(queue, use, list), recorder(std::move(recorder)), pool_(std::move(pool)) {}
  ~EncodedVulkanList() override {
    recorder.busy_until = last_value;
    pool_->recycle(std::move(recorder));
  }

  Recorder recorder;
  Submission submission;

 private:
  std::shared_ptr<RecorderPool> pool_;
};

// What a recorder has to hold for the list's dispatches.
BindingCount bindings_of(const Context& context, const hcq::CommandList& list);
// Records `list` into `out`. Throws Unsupported for what Vulkan cannot do in mid-list.
void encode_list(Context& context, const hcq::CommandList& list, VkSemaphore timeline,
                 EncodedVulkanList& out);

}  // namespace tuff::devices::vulkan
