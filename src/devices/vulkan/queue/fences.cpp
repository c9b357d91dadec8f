#include "devices/vulkan/queue/fences.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/os.h"

namespace tuff::devices::vulkan {

FenceTimeline::~FenceTimeline() {
  const auto destroy = [&](VkFence f) {
    context_->api.vkDestroyFence(context_->device, f, nullptr);
  };
  for (VkFence f : free_) destroy(f);
  for (const Flight& f : flights_) destroy(f.fence);
  for (const Flight& f : retired_) destroy(f.fence);
}

VkFence FenceTimeline::acquire() {
  Context& c = *context_;
  std::lock_guard lock(mutex_);
  if (free_.empty()) poll();
  VkFence fence = VK_NULL_HANDLE;
  if (free_.empty()) {
    // Room first, so that nothing that happens to a fence later allocates or fails.
    flights_.reserve(made_ + 1);
    retired_.reserve(made_ + 1);
    free_.reserve(made_ + 1);
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    c.check(c.api.vkCreateFence(c.device, &info, nullptr, &fence), "vkCreateFence");
    ++made_;
    return fence;
  }
  fence = free_.back();
  c.check(c.api.vkResetFences(c.device, 1, &fence), "vkResetFences");
  free_.pop_back();
  return fence;
}

void FenceTimeline::submitted(VkFence fence, uint64_t value) {
  {
    std::lock_guard lock(mutex_);
    flights_.push_back({value, fence});
  }
  submission_.notify_all();
}

void FenceTimeline::give_back(VkFence fence) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(fence);
}

void FenceTimeline::retire(size_t count) const {
  if (!count) return;
  reached_ = flights_[count - 1].value;
  for (size_t i = 0; i < count; ++i) {
    if (flights_[i].waiters)
      retired_.push_back(flights_[i]);
    else
      free_.push_back(flights_[i].fence);
  }
  flights_.erase(flights_.begin(), flights_.begin() + static_cast<ptrdiff_t>(count));
}

void FenceTimeline::poll() const {
  Context& c = *context_;
  size_t passed = 0;
  for (; passed < flights_.size(); ++passed) {
    const VkResult result = c.api.vkGetFenceStatus(c.device, flights_[passed].fence);
    if (result == VK_NOT_READY) break;
    c.check(result, "vkGetFenceStatus");
  }
  retire(passed);
}

uint64_t FenceTimeline::value() const {
  context_->require_alive();
  std::lock_guard lock(mutex_);
  poll();
  return reached_;
}

void FenceTimeline::leave(VkFence fence) {
  const auto is_it = [&](const Flight& f) { return f.fence == fence; };
  if (auto it = std::find_if(flights_.begin(), flights_.end(), is_it); it != flights_.end()) {
    --it->waiters;
    return;
  }
  auto it = std::find_if(retired_.begin(), retired_.end(), is_it);
  TUFF_CHECK(it != retired_.end(), "a fence that was waited on is gone");
  if (--it->waiters) return;
  free_.push_back(fence);
  retired_.erase(it);
}

bool FenceTimeline::wait(uint64_t value, uint64_t timeout_ns) {
  Context& c = *context_;
  c.require_alive();
  const uint64_t begin_ns = os::monotonic_ns();
  const auto left_ns = [&] {
    const uint64_t gone = os::monotonic_ns() - begin_ns;
    return gone < timeout_ns ? timeout_ns - gone : 0;
  };
  std::unique_lock lock(mutex_);
  const auto flight = [&] {
    return std::find_if(flights_.begin(), flights_.end(),
                        [&](const Flight& f) { return f.value >= value; });
  };
  // A value that nothing submitted stands for yet.
  while (reached_ < value && flight() == flights_.end()) {
    constexpr uint64_t kLongestNap = 1'000'000'000;  // durations near 2^64 ns would overflow
    const uint64_t nap = std::min(left_ns(), kLongestNap);
    if (!nap) return false;
    submission_.wait_for(lock, std::chrono::nanoseconds(nap));
  }
  if (reached_ >= value) return true;
  const auto it = flight();
  const VkFence fence = it->fence;
  ++it->waiters;
  lock.unlock();
  const VkResult result = c.api.vkWaitForFences(c.device, 1, &fence, VK_TRUE, left_ns());
  lock.lock();
  leave(fence);
  if (result == VK_TIMEOUT) return false;
  c.check(result, "vkWaitForFences");
  poll();
  return true;
}

void FenceTimeline::set(uint64_t) {
  fail<Unsupported>("{}: without timelineSemaphore the host cannot raise a signal", context_->name);
}

}  // namespace tuff::devices::vulkan
