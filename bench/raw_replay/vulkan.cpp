// A replay's floor on Vulkan: one command buffer recorded by hand, one vkQueueSubmit2 and one
// vkWaitSemaphores per run.
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/os.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "devices/vulkan/vulkan.h"
#include "raw_replay.h"

namespace tuff::devices {
namespace vulkan {
namespace {

// The driver's submit calls, timed. They stand in the device's function table, whose entries take
// no context: hence one per process.
struct TimedSubmit {
  PFN_vkQueueSubmit2 submit2 = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  std::atomic<uint64_t> total_ns{0};
};
TimedSubmit timed;

template <auto kCall, class Info>
VKAPI_ATTR VkResult VKAPI_CALL timed_call(VkQueue queue, uint32_t count, const Info* infos,
                                          VkFence fence) {
  const uint64_t begin_ns = os::monotonic_ns();
  const VkResult result = (timed.*kCall)(queue, count, infos, fence);
  timed.total_ns += os::monotonic_ns() - begin_ns;
  return result;
}

class SubmitTimer {
 public:
  explicit SubmitTimer(VkApi& api) : api_(api) {
    TUFF_CHECK(!timed.submit, "one raw replay at a time");
    timed.submit2 =
        std::exchange(api.vkQueueSubmit2, timed_call<&TimedSubmit::submit2, VkSubmitInfo2>);
    timed.submit =
        std::exchange(api.vkQueueSubmit, timed_call<&TimedSubmit::submit, VkSubmitInfo>);
    timed.total_ns = 0;
  }
  ~SubmitTimer() {
    api_.vkQueueSubmit2 = std::exchange(timed.submit2, nullptr);
    api_.vkQueueSubmit = std::exchange(timed.submit, nullptr);
  }
  SubmitTimer(const SubmitTimer&) = delete;

 private:
  VkApi& api_;
};

class VulkanRawReplay final : public RawReplay {
 public:
  VulkanRawReplay(VulkanDevice& device, const hcq::CommandList& list)
      : context_(device.context()),
        submit_(context_->api.vkQueueSubmit2),
        done_(context_, 0),
        recorders_(context_),
        recorder_(recorders_.acquire(0, {}, 0)),
        timer_(context_->api) {
    record(list);
    submission_.seal(done_.semaphore(), recorder_.buffer);
  }
  ~VulkanRawReplay() override { recorders_.recycle(std::move(recorder_)); }

  void run() override {
    submission_.fill({}, ++value_);
    const QueueGuard guard(*context_);
    context_->check(submit_(context_->queue, 1, &submission_.info2(), VK_NULL_HANDLE),
                    "vkQueueSubmit2");
    done_.wait(value_, UINT64_MAX);
  }

  uint64_t driver_submit_ns() const override { return timed.total_ns; }

 private:
  void record(const hcq::CommandList& list) {
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    context_->check(context_->api.vkBeginCommandBuffer(recorder_.buffer, &begin),
                    "vkBeginCommandBuffer");
    barrier(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, kReadWrite);  // against the run before
    for (const hcq::Command& command : list.commands) {
      if (std::holds_alternative<hcq::BarrierCmd>(command.body)) {
        barrier(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, kReadWrite);
      } else if (const auto* dispatch = std::get_if<hcq::DispatchCmd>(&command.body)) {
        record(*dispatch);
      } else {
        // What brings patched arguments to the device; here they never change.
        TUFF_CHECK(std::holds_alternative<hcq::CopyCmd>(command.body),
                   "a raw replay is of dispatches");
      }
    }
    barrier(VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    context_->check(context_->api.vkEndCommandBuffer(recorder_.buffer), "vkEndCommandBuffer");
  }

  void record(const hcq::DispatchCmd& dispatch) {
    TUFF_CHECK(!dispatch.indirect, "a raw replay is of direct dispatches alone");
    const auto& program = dynamic_cast<const VulkanProgram&>(*dispatch.program);
    if (bound_ != program.pipeline()) {
      bound_ = program.pipeline();
      context_->api.vkCmdBindPipeline(recorder_.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
    }
    const VkDeviceAddress address = dispatch.args.address();
    context_->api.vkCmdPushConstants(recorder_.buffer, program.layout(),
                                     VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof address, &address);
    context_->api.vkCmdDispatch(recorder_.buffer, dispatch.groups[0], dispatch.groups[1],
                                dispatch.groups[2]);
  }

  // From what kernels wrote. As narrow as these kernels allow, which a program for them alone would
  // choose; hcq's barriers also order copies and indirect launches.
  void barrier(VkPipelineStageFlags2 stages, VkAccessFlags2 accesses) {
    VkMemoryBarrier2 memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
    memory.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    memory.srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT;
    memory.dstStageMask = stages;
    memory.dstAccessMask = accesses;
    VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &memory;
    context_->api.vkCmdPipelineBarrier2(recorder_.buffer, &info);
  }

  static constexpr VkAccessFlags2 kReadWrite =
      VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT;

  std::shared_ptr<Context> context_;
  const PFN_vkQueueSubmit2 submit_;  // the driver's own, not the timed one
  TimelineSignal done_;
  RecorderPool recorders_;
  Recorder recorder_;
  VkPipeline bound_ = VK_NULL_HANDLE;
  Submission submission_;
  uint64_t value_ = 0;
  SubmitTimer timer_;
};

}  // namespace
}  // namespace vulkan

std::unique_ptr<RawReplay> vulkan_raw_replay(hcq::Device& device, const hcq::CommandList& list) {
  auto& native = dynamic_cast<vulkan::VulkanDevice&>(device);
  const vulkan::Caps& caps = native.context()->facts.caps;
  if (!caps.synchronization2 || !caps.timelineSemaphore || !caps.bufferDeviceAddress)
    fail<Unsupported>(
        "{}: the raw replay is written with synchronization2, timelineSemaphore and "
        "bufferDeviceAddress, of which one is missing here",
        device.name());
  return std::make_unique<vulkan::VulkanRawReplay>(native, list);
}

}  // namespace tuff::devices
