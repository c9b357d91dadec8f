#include "devices/vulkan/queue/queue.h"

#include "base/check.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::devices::vulkan {

VulkanQueue::VulkanQueue(hcq::Device& device, std::shared_ptr<Context> context)
    : Queue(device),
      context_(std::move(context)),
      recorders_(std::make_shared<RecorderPool>(context_)),
      clock_(context_) {
  if (context_->facts.caps.timelineSemaphore) {
    auto timeline = std::make_unique<TimelineSignal>(context_, 0);
    semaphore_ = timeline.get();
    timeline_ = std::move(timeline);
  } else {
    auto timeline = std::make_unique<FenceTimeline>(context_);
    fences_ = timeline.get();
    timeline_ = std::move(timeline);
  }
}

VulkanQueue::~VulkanQueue() {
  try {
    if (!device().lost() && !context_->lost()) wait_idle();
  } catch (const std::exception& e) {
    log_warn("{}: while closing the queue: {}", context_->name, e.what());
  }
  collect(true);  // while the recorders' owner is still whole
}

std::unique_ptr<hcq::EncodedList> VulkanQueue::encode(const hcq::CommandList& list,
                                                      hcq::EncodeUse use) {
  context_->require_alive();
  if (list.timestamp_count) {
    if (!context_->facts.timestamp_bits)
      fail<Unsupported>("{}: the queue has no timestamps", context_->name);
    std::lock_guard lock(clock_mutex_);
    if (!clock_.ready()) measure_clock();
  }
  return encode_native(list, use);
}

std::unique_ptr<EncodedVulkanList> VulkanQueue::encode_native(const hcq::CommandList& list,
                                                              hcq::EncodeUse use) {
  Recorder recorder = recorders_->acquire(list.timestamp_count, bindings_of(*context_, list),
                                          timeline_->value());
  auto out =
      std::make_unique<EncodedVulkanList>(*this, use, list, recorders_, std::move(recorder));
  encode_list(*context_, list, semaphore(), *out);
  return out;
}

[[gnu::hot]]
uint64_t VulkanQueue::submit(hcq::EncodedList& encoded, std::span<const uint64_t> slots) {
  device().fail_if_lost();
  auto& list = own_list<EncodedVulkanList>(*this, encoded);
  require_submittable(list, slots);
#ifndef NDEBUG
  TUFF_CHECK(timeline_->value() >= list.last_value, "list resubmitted while in flight");
#endif
  collect();
  std::lock_guard lock(mutex_);
  uint64_t value = last_.load(std::memory_order_relaxed) + 1;
  submit_native(list, slots, value);
  last_.store(value, std::memory_order_release);
  return value;
}

[[gnu::hot]]
void VulkanQueue::submit_native(EncodedVulkanList& list, std::span<const uint64_t> slots,
                                uint64_t value) {
  list.submission.fill(slots, value);
  if (semaphore_) {
    submit_with(list, VK_NULL_HANDLE);
  } else {
    const VkFence fence = fences_->acquire();
    try {
      submit_with(list, fence);
    } catch (...) {
      fences_->give_back(fence);
      throw;
    }
    fences_->submitted(fence, value);
  }
  list.last_value = value;
}

[[gnu::hot]]
void VulkanQueue::submit_with(const EncodedVulkanList& list, VkFence fence) {
  const VkApi& api = context_->api;
  const QueueGuard guard(*context_);
  if (context_->facts.caps.synchronization2) {
    context_->check(api.vkQueueSubmit2(context_->queue, 1, &list.submission.info2(), fence),
                    "vkQueueSubmit2");
  } else {
    context_->check(api.vkQueueSubmit(context_->queue, 1, &list.submission.legacy(), fence),
                    "vkQueueSubmit");
  }
}

std::vector<uint64_t> VulkanQueue::read_ticks(const EncodedVulkanList& list) {
  std::vector<uint64_t> ticks(list.timestamp_count);
  if (ticks.empty()) return ticks;
  VkResult result = context_->api.vkGetQueryPoolResults(
      context_->device, list.recorder.queries, 0, list.timestamp_count,
      ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  if (result == VK_NOT_READY) {
    fail<InvalidArgument>("{}: not every timestamp of the list was written by a command",
                          context_->name);
  }
  context_->check(result, "vkGetQueryPoolResults");
  return ticks;
}

std::vector<uint64_t> VulkanQueue::timestamps(hcq::EncodedList& encoded) {
  auto& list = own_list<EncodedVulkanList>(*this, encoded);
  require_submitted(list);
  wait(list.last_value);
  std::vector<uint64_t> times = read_ticks(list);
  std::lock_guard lock(clock_mutex_);
  TickScale scale = clock_.scale();
  for (uint64_t& t : times) t = scale.to_ns(t);
  return times;
}

// Without calibrated timestamps: the one of three timestamps that was bracketed most closely.
void VulkanQueue::measure_clock() {
  hcq::CommandList list;
  list.timestamp_count = 1;
  list.commands.push_back({.body = hcq::TimestampCmd{0}});
  auto encoded = encode_native(list, hcq::EncodeUse::Replay);
  uint64_t best_ns = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    uint64_t before = os::monotonic_ns();
    wait(submit(*encoded, {}));
    uint64_t width = os::monotonic_ns() - before;
    uint64_t ticks = read_ticks(*encoded)[0];
    if (width >= best_ns) continue;
    best_ns = width;
    clock_.set_reference(ticks, before + width / 2);
  }
}

}  // namespace tuff::devices::vulkan
