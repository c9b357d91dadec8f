#include "devices/vulkan/queue/encoded.h"

namespace tuff::devices::vulkan {
namespace {

VkSemaphoreSubmitInfo semaphore_info(VkSemaphore semaphore) {
  VkSemaphoreSubmitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  info.semaphore = semaphore;
  info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return info;
}

}  // namespace

void Submission::add_wait(VkSemaphore semaphore, uint32_t slot) {
  waits_.push_back(semaphore_info(semaphore));
  wait_slots_.push_back(slot);
}

void Submission::add_signal(VkSemaphore semaphore, uint32_t slot) {
  signals_.push_back(semaphore_info(semaphore));
  signal_slots_.push_back(slot);
}

void Submission::seal(VkSemaphore timeline, VkCommandBuffer buffer) {
  has_timeline_ = timeline != VK_NULL_HANDLE;
  if (has_timeline_) signals_.push_back(semaphore_info(timeline));
  buffer_.commandBuffer = buffer;
  info2_.waitSemaphoreInfoCount = static_cast<uint32_t>(waits_.size());
  info2_.pWaitSemaphoreInfos = waits_.data();
  info2_.commandBufferInfoCount = 1;
  info2_.pCommandBufferInfos = &buffer_;
  info2_.signalSemaphoreInfoCount = static_cast<uint32_t>(signals_.size());
  info2_.pSignalSemaphoreInfos = signals_.data();
  seal_legacy();
}

void Submission::seal_legacy() {
  for (const auto& w : waits_) legacy_waits_.semaphores.push_back(w.semaphore);
  for (const auto& s : signals_) legacy_signals_.semaphores.push_back(s.semaphore);
  legacy_waits_.values.resize(waits_.size());
  legacy_signals_.values.resize(signals_.size());
  legacy_stages_.assign(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  legacy_values_.waitSemaphoreValueCount = static_cast<uint32_t>(waits_.size());
  legacy_values_.pWaitSemaphoreValues = legacy_waits_.values.data();
  legacy_values_.signalSemaphoreValueCount = static_cast<uint32_t>(signals_.size());
  legacy_values_.pSignalSemaphoreValues = legacy_signals_.values.data();
  if (has_timeline_) legacy_.pNext = &legacy_values_;
  legacy_.waitSemaphoreCount = static_cast<uint32_t>(waits_.size());
  legacy_.pWaitSemaphores = legacy_waits_.semaphores.data();
  legacy_.pWaitDstStageMask = legacy_stages_.data();
  legacy_.commandBufferCount = 1;
  legacy_.pCommandBuffers = &buffer_.commandBuffer;
  legacy_.signalSemaphoreCount = static_cast<uint32_t>(signals_.size());
  legacy_.pSignalSemaphores = legacy_signals_.semaphores.data();
}

[[gnu::hot]]
void Submission::fill(std::span<const uint64_t> slots, uint64_t timeline_value) {
  for (size_t i = 0; i < waits_.size(); ++i) {
    waits_[i].value = legacy_waits_.values[i] = slots[wait_slots_[i]];
  }
  for (size_t i = 0; i < signal_slots_.size(); ++i) {
    signals_[i].value = legacy_signals_.values[i] = slots[signal_slots_[i]];
  }
  if (has_timeline_) signals_.back().value = legacy_signals_.values.back() = timeline_value;
}

}  // namespace tuff::devices::vulkan
