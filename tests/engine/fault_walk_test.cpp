// The fault walk: a training that is captured and replayed, with the k-th call of every Vulkan
// function that can fail made to fail, for every k and every code. Each ends in a documented error
// or in the right result; the device goes on, or says that it is lost until it is opened again;
// nothing leaks, and the CPU device works all the while.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>

#include "base/check.h"
#include "devices/vulkan/api/api.h"
#include "devices/vulkan/vulkan.h"
#include "engine/device.h"
#include "engine/fault_training.h"
#include "engine/vulkan_faults.h"
#include "tensor/devices.h"

namespace tuff {
namespace {

using devices::VkApi;
using test::train;

using test::injection;
using test::real;

void make_failing(VkApi& api) {
  real = api;
  TUFF_MAY_FAIL(vkAllocateMemory)
  TUFF_MAY_FAIL(vkMapMemory)
  TUFF_MAY_FAIL(vkCreateBuffer)
  TUFF_MAY_FAIL(vkBindBufferMemory)
  TUFF_MAY_FAIL(vkCreateShaderModule)
  TUFF_MAY_FAIL(vkCreatePipelineLayout)
  TUFF_MAY_FAIL(vkCreatePipelineCache)
  TUFF_MAY_FAIL(vkGetPipelineCacheData)
  TUFF_MAY_FAIL(vkCreateComputePipelines)
  TUFF_MAY_FAIL(vkCreateCommandPool)
  TUFF_MAY_FAIL(vkResetCommandPool)
  TUFF_MAY_FAIL(vkAllocateCommandBuffers)
  TUFF_MAY_FAIL(vkBeginCommandBuffer)
  TUFF_MAY_FAIL(vkEndCommandBuffer)
  TUFF_MAY_FAIL(vkCreateQueryPool)
  TUFF_MAY_FAIL(vkCreateSemaphore)
  TUFF_MAY_FAIL(vkQueueSubmit)
  TUFF_MAY_FAIL(vkQueueSubmit2)
  TUFF_MAY_FAIL(vkWaitSemaphores)
  TUFF_MAY_FAIL(vkGetSemaphoreCounterValue)
  TUFF_MAY_FAIL(vkCreateFence)
  TUFF_MAY_FAIL(vkResetFences)
  TUFF_MAY_FAIL(vkGetFenceStatus)
  TUFF_MAY_FAIL(vkWaitForFences)
  TUFF_MAY_FAIL(vkCreateDescriptorSetLayout)
  TUFF_MAY_FAIL(vkCreateDescriptorPool)
  TUFF_MAY_FAIL(vkResetDescriptorPool)
  TUFF_MAY_FAIL(vkAllocateDescriptorSets)
}

struct Fault {
  std::string entry;
  uint64_t call;
  VkResult code;
};
std::ostream& operator<<(std::ostream& out, const Fault& f) {
  return out << "call " << f.call << " of " << f.entry << " gives "
             << devices::vulkan::result_name(f.code);
}

constexpr VkResult kCodes[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                               VK_ERROR_DEVICE_LOST};

class FaultWalk : public testing::TestWithParam<std::string> {
 protected:
  const std::string& name() const { return GetParam(); }

  // What is walked, once without a fault, on a device that was opened for it.
  void expect(std::vector<float> (*work)(const std::string& device)) {
    work_ = work;
    open();
    expected_ = work_(name());
    counted_ = injection.calls;
    close();
  }

  void open() {
    device_ = engine::Device::get(name());
    injection.arm("", 0, VK_SUCCESS);
    make_failing(devices::vulkan_api(device_->hcq()));
  }

  // Nobody holds the device any more: neither a tensor, nor a graph, nor a cache.
  void close() {
    const std::weak_ptr<engine::Device> watched = device_;
    device_.reset();
    engine::close_devices();
    EXPECT_TRUE(watched.expired()) << "something keeps the device open";
  }

  // What became of the work: empty if it gave the right result.
  std::string outcome() {
    try {
      EXPECT_EQ(work_(name()), expected_);
      return {};
    } catch (const Error& e) {
      return e.kind();
    }
  }

  void walk(const Fault& f) {
    SCOPED_TRACE(testing::Message() << f);
    open();
    injection.arm(f.entry, f.call, f.code);
    const std::string kind = outcome();
    if (!injection.happened) {
      EXPECT_EQ(kind, "");
    } else if (f.code == VK_ERROR_DEVICE_LOST) {
      EXPECT_TRUE(kind.empty() || kind == "DeviceLost") << kind;
    } else {
      EXPECT_TRUE(kind.empty() || kind == "OutOfMemory" || kind == "CompileError") << kind;
    }
    injection.arm("", 0, VK_SUCCESS);
    if (kind == "DeviceLost") {
      EXPECT_EQ(outcome(), "DeviceLost") << "a lost device stays lost";
      lost_++;
    } else {
      EXPECT_EQ(outcome(), "") << "the device goes on";
      kind.empty() ? survived_++ : refused_++;
    }
    close();
  }

  std::shared_ptr<engine::Device> device_;
  std::vector<float> (*work_)(const std::string& device) = nullptr;
  std::vector<float> expected_;
  std::map<std::string, uint64_t> counted_;
  int lost_ = 0, refused_ = 0, survived_ = 0;
};

TEST_P(FaultWalk, EveryCallMayFail) {
  expect(train);
  const std::vector<float> on_cpu = train("CPU");
  for (size_t i = 0; i < on_cpu.size(); i++) EXPECT_NEAR(on_cpu[i], expected_[i], 1e-5);
  for (const auto& [entry, count] : counted_) {
    // How often the host asks for progress is a matter of time.
    const bool polls = entry == "vkGetSemaphoreCounterValue" || entry == "vkWaitSemaphores" ||
                       entry == "vkGetFenceStatus" || entry == "vkWaitForFences";
    for (uint64_t call = 1; call <= (polls ? std::min<uint64_t>(count, 12) : count); call++) {
      for (const VkResult code : kCodes) walk({entry, call, code});
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(train("CPU"), on_cpu);
  }
  std::printf(
      "%d faults injected on %s: %d trainings ended in an error and went on after it, %d "
      "lost the device, %d noticed nothing\n",
      refused_ + lost_ + survived_, name().c_str(), refused_, lost_, survived_);
  EXPECT_GT(refused_, 20);
  EXPECT_GT(lost_, 20);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FaultWalk);
INSTANTIATE_TEST_SUITE_P(Devices, FaultWalk, testing::ValuesIn(test::vulkan_devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff
