// The fault walk of a training that is split over the CPU and a Vulkan device: the k-th call of
// each Vulkan function that a replay makes fails. Each training ends in the right result or in an
// error that names the Vulkan device; the CPU device computes on, and nobody waits for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "devices/vulkan/api/api.h"
#include "devices/vulkan/vulkan.h"
#include "engine/device.h"
#include "engine/split_step.h"
#include "engine/vulkan_faults.h"
#include "tensor/devices.h"

namespace tuff {
namespace {

using devices::VkApi;

using test::injection;
using test::real;

void make_failing(VkApi& api) {
  real = api;
  injection.lost_stays = true;  // whoever asks
  TUFF_MAY_FAIL(vkCreateSemaphore)
  TUFF_MAY_FAIL(vkQueueSubmit)
  TUFF_MAY_FAIL(vkQueueSubmit2)
  TUFF_MAY_FAIL(vkWaitSemaphores)
  // The driver goes on, so that what waits in it has to be let go when the device is closed.
  api.vkSignalSemaphore = [](auto... arguments) -> VkResult {
    if (!injection.hits("vkSignalSemaphore")) return real.vkSignalSemaphore(arguments...);
    if (injection.code == VK_ERROR_DEVICE_LOST) real.vkSignalSemaphore(arguments...);
    return injection.code;
  };
  TUFF_MAY_FAIL(vkGetSemaphoreCounterValue)
}

std::string vulkan_device() {
  const std::vector<std::string> all = test::vulkan_devices();
  return all.empty() ? std::string() : all[0];
}

struct Ending {
  std::string kind, message;
};
Ending train(bool vulkan_first, const std::vector<float>& wanted) {
  const std::string vulkan = vulkan_device();
  try {
    const std::vector<float> got = vulkan_first ? test::train_split(vulkan, "CPU", 6, 4)
                                                : test::train_split("CPU", vulkan, 6, 4);
    EXPECT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(got[i], wanted[i], 1e-4);
    return {};
  } catch (const Error& e) {
    return {e.kind(), e.what()};
  }
}

class SplitFaultWalk : public testing::TestWithParam<bool> {};

TEST_P(SplitFaultWalk, EveryCallMayFail) {
  if (vulkan_device().empty()) GTEST_SKIP() << "no Vulkan device";
  const std::vector<float> wanted = test::train_split("CPU", "CPU", 6, 4);
  const auto open = [&] {
    injection.arm("", 0, VK_SUCCESS);
    make_failing(devices::vulkan_api(engine::Device::get(vulkan_device())->hcq()));
  };
  open();
  ASSERT_EQ(train(GetParam(), wanted).kind, "");
  const std::map<std::string, uint64_t> counted = injection.calls;
  engine::close_devices();
  int lost = 0, refused = 0, survived = 0;
  for (const auto& [entry, count] : counted) {
    for (uint64_t call = 1; call <= std::min<uint64_t>(count, 12); call++) {
      for (const VkResult code : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST}) {
        SCOPED_TRACE(testing::Message() << "call " << call << " of " << entry << " code " << code);
        open();
        injection.arm(entry, call, code);
        const Ending e = train(GetParam(), wanted);
        if (code == VK_ERROR_DEVICE_LOST && !e.kind.empty()) {
          EXPECT_EQ(e.kind, "DeviceLost");
          EXPECT_NE(e.message.find("VULKAN"), std::string::npos) << e.message;
          lost++;
        } else if (!e.kind.empty()) {
          EXPECT_EQ(e.kind, "OutOfMemory") << e.message;
          refused++;
        } else {
          survived++;
        }
        EXPECT_FALSE(engine::Device::get("CPU")->hcq().lost());
        EXPECT_EQ(test::train_split("CPU", "CPU", 6, 4), wanted) << "the CPU goes on";
        injection.arm("", 0, VK_SUCCESS);
        engine::close_devices();
        if (HasFailure()) return;
      }
    }
  }
  std::printf(
      "%d faults injected: %d trainings lost the device, %d were refused memory, %d noticed "
      "nothing\n",
      lost + refused + survived, lost, refused, survived);
  EXPECT_GT(lost, 10);
}

INSTANTIATE_TEST_SUITE_P(First, SplitFaultWalk, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Vulkan" : "Cpu");
});

// ---- a graph that is let go while it runs

// To one thread beside the test's own the device seems to stand still and to have no memory.
struct OneRefused {
  static constexpr int kTimes = 15;  // fewer than the attempts that a host's queue makes
  std::mutex mutex;
  std::thread::id test;
  size_t chosen = SIZE_MAX;  // by the order in which the threads came
  std::vector<std::thread::id> threads;
  int refused = 0;
  // Of the test's own heap, one freed at each refusal: what a queue writes into another that has
  // been freed is then met by malloc.
  std::vector<std::unique_ptr<std::array<char, 2000>>> blocks;

  void choose(size_t index) {
    std::lock_guard lock(mutex);
    while (blocks.size() < kTimes + 1) blocks.push_back(std::make_unique<std::array<char, 2000>>());
    test = std::this_thread::get_id();
    chosen = index;
    threads.clear();
    refused = 0;
  }
  bool hits() {
    const std::thread::id self = std::this_thread::get_id();
    std::lock_guard lock(mutex);
    if (self == test || chosen == SIZE_MAX) return false;
    auto found = std::find(threads.begin(), threads.end(), self);
    if (found == threads.end()) found = threads.insert(threads.end(), self);
    return size_t(found - threads.begin()) == chosen && refused < kTimes;
  }
};
OneRefused one_refused;

TEST(SplitEnd, WhileOneOfTheHostsQueuesWaitsTheOthersAreStillThere) {
  if (vulkan_device().empty()) GTEST_SKIP() << "no Vulkan device";
  int refused = 0;
  for (size_t round = 0; round < 8; round++) {
    one_refused.choose(SIZE_MAX);
    VkApi& api = devices::vulkan_api(engine::Device::get(vulkan_device())->hcq());
    real = api;
    api.vkGetSemaphoreCounterValue = [](VkDevice d, VkSemaphore s, uint64_t* value) -> VkResult {
      if (!one_refused.hits()) return real.vkGetSemaphoreCounterValue(d, s, value);
      *value = 0;
      return VK_SUCCESS;
    };
    api.vkWaitSemaphores = [](auto... arguments) -> VkResult {
      if (!one_refused.hits()) return real.vkWaitSemaphores(arguments...);
      std::lock_guard lock(one_refused.mutex);
      one_refused.refused++;
      one_refused.blocks.pop_back();
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    };
    {
      test::SplitStep step(round & 2 ? vulkan_device() : "CPU", round & 2 ? "CPU" : vulkan_device(),
                           4);
      Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
      for (int i = 0; i < 3; i++) jit(step.inputs());
      jit(step.inputs())[0].item();
      const std::vector<Tensor> last = step.inputs();
      one_refused.choose(round & 1);
      jit(last);
    }
    refused += one_refused.refused;
    one_refused.choose(SIZE_MAX);
    EXPECT_FALSE(engine::Device::get("CPU")->hcq().lost());
    engine::close_devices();
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tuff
