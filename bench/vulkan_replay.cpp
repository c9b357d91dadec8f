// What a replay costs the host: one list of 1000 tiny dispatches, submitted through hcq's Queue
// and, as the floor, as a raw pre-recorded command buffer by vkQueueSubmit2. Both in turns, in one
// run. LP_NUM_THREADS=0 makes lavapipe run kernels without worker threads, which takes out most
// noise; a software driver may do the work within either call, so compare the sums. Usage:
// vulkan_replay [replays]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/os.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "devices/vulkan/vulkan.h"
#include "shaders/fill.spv.h"

namespace tuff::devices {
namespace {

constexpr int kDispatches = 1000;

render::Binary fill_binary() {
  auto bytes = std::make_shared<std::vector<uint8_t>>(sizeof fill_spv);
  std::memcpy(bytes->data(), fill_spv, sizeof fill_spv);
  return {"fill", "main", render::BinaryFormat::SpirV, bytes, {1, 3}, {64, 1, 1}, 0};
}

// The same commands recorded by hand: bind once, then push and dispatch, nothing else.
class RawReplay {
 public:
  RawReplay(vulkan::VulkanDevice& device, const vulkan::VulkanProgram& program, uint64_t args)
      : c_(*device.context()),
        done_(device.context(), 0),
        recorders_(device.context()),
        recorder_(recorders_.acquire(0, 0)) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBuffer b = recorder_.buffer;
    c_.check(c_.api.vkBeginCommandBuffer(b, &begin), "vkBeginCommandBuffer");
    c_.api.vkCmdBindPipeline(b, VK_PIPELINE_BIND_POINT_COMPUTE, program.pipeline());
    for (int i = 0; i < kDispatches; ++i) {
      c_.api.vkCmdPushConstants(b, program.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, &args);
      c_.api.vkCmdDispatch(b, 1, 1, 1);
    }
    c_.check(c_.api.vkEndCommandBuffer(b), "vkEndCommandBuffer");
    buffer_.commandBuffer = b;
    signal_.semaphore = done_.semaphore();
    signal_.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    info_.commandBufferInfoCount = info_.signalSemaphoreInfoCount = 1;
    info_.pCommandBufferInfos = &buffer_;
    info_.pSignalSemaphoreInfos = &signal_;
  }
  ~RawReplay() { recorders_.recycle(recorder_); }
  void submit() {
    ++signal_.value;
    c_.check(c_.api.vkQueueSubmit2(c_.queue, 1, &info_, VK_NULL_HANDLE), "vkQueueSubmit2");
  }
  void wait() { done_.wait(signal_.value, UINT64_MAX); }

 private:
  vulkan::Context& c_;
  vulkan::TimelineSignal done_;
  vulkan::RecorderPool recorders_;
  vulkan::Recorder recorder_;
  VkCommandBufferSubmitInfo buffer_{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  VkSemaphoreSubmitInfo signal_{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  VkSubmitInfo2 info_{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
};

struct Times {
  std::vector<uint64_t> submit_ns, whole_ns;
  template <class Submit, class Wait>
  void measure(Submit&& submit, Wait&& wait) {
    uint64_t start = os::monotonic_ns();
    submit();
    uint64_t submitted = os::monotonic_ns();
    wait();
    submit_ns.push_back(submitted - start);
    whole_ns.push_back(os::monotonic_ns() - start);
  }
  void print(const char* name) {
    auto at = [](std::vector<uint64_t>& v, size_t percent) {
      std::sort(v.begin(), v.end());
      return static_cast<double>(v[(v.size() - 1) * percent / 100]) / 1000;
    };
    fmt::print(
        "{:<14} submit median {:8.2f} us, p90 {:8.2f} us   submit+wait median {:9.2f} us, p10 "
        "{:9.2f} us\n",
        name, at(submit_ns, 50), at(submit_ns, 90), at(whole_ns, 50), at(whole_ns, 10));
  }
};

int run(int replays) {
  auto opened = vulkan_open("");
  auto& device = dynamic_cast<vulkan::VulkanDevice&>(*opened);
  if (!device.context()->facts.caps.synchronization2)
    fail<Unsupported>("this benchmark needs synchronization2");
  render::Binary binary = fill_binary();
  auto programs = device.load({&binary, 1});
  hcq::Span dst = device.allocator().allocate(256, hcq::MemoryKind::Device);
  hcq::Span args = device.allocator().allocate(32, hcq::MemoryKind::Args);
  struct {
    uint64_t dst;
    int32_t count, value, step;
  } block{dst.address(), 64, 1, 0};
  device.upload(args.sub(0, 20), &block);

  hcq::CommandList list;
  for (int i = 0; i < kDispatches; ++i) {
    list.commands.push_back({hcq::DispatchCmd{programs[0].get(), args, {1, 1, 1}, {}}, {}, "fill"});
  }
  hcq::Queue& queue = device.compute_queue();
  auto encoded = queue.encode(list, hcq::EncodeUse::Replay);
  RawReplay raw(device, dynamic_cast<const vulkan::VulkanProgram&>(*programs[0]), args.address());
  Times through_queue, by_hand;
  for (int i = -10; i < replays; ++i) {
    uint64_t value = 0;
    if (i == 0) through_queue = by_hand = {};  // the first ten warm up
    through_queue.measure([&] { value = queue.submit(*encoded, {}); }, [&] { queue.wait(value); });
    by_hand.measure([&] { raw.submit(); }, [&] { raw.wait(); });
  }
  fmt::print("{}: {} dispatches per list, {} replays\n", device.info().description, kDispatches,
             replays);
  through_queue.print("hcq::Queue");
  by_hand.print("raw Vulkan");
  device.allocator().free(dst);
  device.allocator().free(args);
  return 0;
}

}  // namespace
}  // namespace tuff::devices

int main(int argc, char** argv) {
  try {
    return tuff::devices::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 300);
  } catch (const tuff::Error& e) {
    fmt::print(stderr, "{}: {}\n", e.kind(), e.what());
    return 1;
  }
}
