// The promise of replay, counted at the function table and at operator new; and faults, made by
// exchanging entries of that table.
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/env.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "fixture.h"
#include "hcq/graph.h"
#include "tuff/error.h"

namespace {
thread_local uint64_t t_allocations = 0;
}
void* operator new(std::size_t size) {
  ++t_allocations;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace tuff::devices {
namespace {

using hcq::EncodeUse;

// Counts calls of every function that replays must not, or must once, call.
struct Calls {
  std::atomic<uint64_t> submits{0}, allocates{0}, begins{0}, records{0}, creates{0};
};
Calls g_calls;
VkApi g_real;
std::atomic<VkResult> g_submit_result{VK_SUCCESS}, g_allocate_result{VK_SUCCESS},
    g_wait_result{VK_SUCCESS};

VKAPI_ATTR VkResult VKAPI_CALL count_submit(VkQueue q, uint32_t n, const VkSubmitInfo* s,
                                            VkFence f) {
  ++g_calls.submits;
  return g_submit_result != VK_SUCCESS ? g_submit_result.load() : g_real.vkQueueSubmit(q, n, s, f);
}
VKAPI_ATTR VkResult VKAPI_CALL count_submit2(VkQueue q, uint32_t n, const VkSubmitInfo2* s,
                                             VkFence f) {
  ++g_calls.submits;
  return g_submit_result != VK_SUCCESS ? g_submit_result.load() : g_real.vkQueueSubmit2(q, n, s, f);
}
VKAPI_ATTR VkResult VKAPI_CALL count_allocate(VkDevice d, const VkMemoryAllocateInfo* i,
                                              const VkAllocationCallbacks* a, VkDeviceMemory* m) {
  ++g_calls.allocates;
  return g_allocate_result != VK_SUCCESS ? g_allocate_result.load()
                                         : g_real.vkAllocateMemory(d, i, a, m);
}
VKAPI_ATTR VkResult VKAPI_CALL count_begin(VkCommandBuffer b, const VkCommandBufferBeginInfo* i) {
  ++g_calls.begins;
  return g_real.vkBeginCommandBuffer(b, i);
}
VKAPI_ATTR void VKAPI_CALL count_dispatch(VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z) {
  ++g_calls.records;
  g_real.vkCmdDispatch(b, x, y, z);
}
VKAPI_ATTR VkResult VKAPI_CALL count_buffer(VkDevice d, const VkBufferCreateInfo* i,
                                            const VkAllocationCallbacks* a, VkBuffer* b) {
  ++g_calls.creates;
  return g_real.vkCreateBuffer(d, i, a, b);
}
VKAPI_ATTR VkResult VKAPI_CALL fail_wait(VkDevice d, const VkSemaphoreWaitInfo* i, uint64_t t) {
  return g_wait_result != VK_SUCCESS ? g_wait_result.load() : g_real.vkWaitSemaphores(d, i, t);
}

VKAPI_ATTR VkResult VKAPI_CALL count_fence(VkDevice d, const VkFenceCreateInfo* i,
                                           const VkAllocationCallbacks* a, VkFence* f) {
  ++g_calls.creates;
  return g_real.vkCreateFence(d, i, a, f);
}
VKAPI_ATTR VkResult VKAPI_CALL fail_fence_wait(VkDevice d, uint32_t n, const VkFence* f,
                                               VkBool32 all, uint64_t t) {
  const VkResult result = g_real.vkWaitForFences(d, n, f, all, t);
  return g_wait_result != VK_SUCCESS ? g_wait_result.load() : result;
}

class VulkanReplay : public VulkanTest {
 protected:
  void SetUp() override {
    open(false);
    if (device_) interpose();
  }
  void TearDown() override {
    g_submit_result = g_allocate_result = g_wait_result = VK_SUCCESS;
    VulkanTest::TearDown();
  }
  void interpose() {
    VkApi& api = vulkan_api(*device_);
    g_real = api;
    api.vkQueueSubmit = count_submit;
    api.vkQueueSubmit2 = count_submit2;
    api.vkAllocateMemory = count_allocate;
    api.vkBeginCommandBuffer = count_begin;
    api.vkCmdDispatch = count_dispatch;
    api.vkCreateBuffer = count_buffer;
    api.vkWaitSemaphores = fail_wait;
    api.vkCreateFence = count_fence;
    api.vkWaitForFences = fail_fence_wait;
    reset();
  }
  static void reset() {
    g_calls.submits = g_calls.allocates = g_calls.begins = g_calls.records = g_calls.creates = 0;
  }

  hcq::CommandList increments(hcq::Span a, int kernels) {
    hcq::CommandList list;
    const auto* copy = load(Kernel::Copy);
    hcq::Span args = arguments({a, a}, {64, 1});
    for (int i = 0; i < kernels; ++i) {
      if (i) list.commands.push_back(barrier());
      list.commands.push_back(dispatch(copy, args, 1));
    }
    return list;
  }
};

TEST_F(VulkanReplay, OneNativeCallPerSubmitAndNothingElse) {
  hcq::Span a = allocate(256);
  std::vector<uint32_t> zero(64);
  device_->upload(a, zero.data());
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(increments(a, 10), EncodeUse::Replay);
  queue.wait(queue.submit(*encoded, {}));
  reset();
  uint64_t allocations = t_allocations;
  for (int i = 0; i < 100; ++i) queue.wait(queue.submit(*encoded, {}));
  EXPECT_EQ(t_allocations, allocations);
  EXPECT_EQ(g_calls.submits, 100u);
  EXPECT_EQ(g_calls.allocates, 0u);
  EXPECT_EQ(g_calls.begins, 0u);
  EXPECT_EQ(g_calls.records, 0u);
  EXPECT_EQ(g_calls.creates, 0u);
  EXPECT_EQ(words(a), std::vector<uint32_t>(64, 1010));
}

TEST_F(VulkanReplay, FencesAreRecycled) {
  open(false, "timeline");
  interpose();
  hcq::Span a = allocate(256);
  std::vector<uint32_t> zero(64);
  device_->upload(a, zero.data());
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(increments(a, 10), EncodeUse::Replay);
  queue.wait(queue.submit(*encoded, {}));
  reset();
  const uint64_t allocations = t_allocations;
  for (int i = 0; i < 100; ++i) queue.wait(queue.submit(*encoded, {}));
  EXPECT_EQ(t_allocations, allocations);
  EXPECT_EQ(g_calls.submits, 100u);
  EXPECT_EQ(g_calls.allocates + g_calls.begins + g_calls.records + g_calls.creates, 0u);
  EXPECT_EQ(words(a), std::vector<uint32_t>(64, 1010));
  g_wait_result = VK_ERROR_DEVICE_LOST;
  EXPECT_THROW(queue.wait(queue.submit(*encoded, {})), DeviceLost);
  EXPECT_THROW(device_->check_status(), DeviceLost);
  g_wait_result = VK_SUCCESS;
}

TEST_F(VulkanReplay, CommandGraphReplaysWithOneNativeCall) {
  hcq::Span a = allocate(256), b = allocate(256);
  const auto* copy = load(Kernel::Copy);
  auto fixed = [](hcq::Span s, bool write) {
    return hcq::LaunchOperand{.span = s, .size_bytes = s.size_bytes, .read = !write, .write = write};
  };
  hcq::LaunchOperand input{.input = 0, .size_bytes = 256, .read = true};
  auto kernel = [&](hcq::LaunchOperand dst, hcq::LaunchOperand src, int32_t slot) {
    hcq::Launch k;
    k.program = copy;
    k.operands = {dst, src};
    k.scalars = {{64, -1}, {1, slot}};
    return k;
  };
  std::vector<hcq::GraphNode> nodes{kernel(fixed(a, true), input, 0),
                                    kernel(fixed(b, true), fixed(a, false), -1)};
  hcq::CommandGraph graph(*device_, std::move(nodes), 1, 1, 2);
  hcq::Span sources[2] = {allocate(256), allocate(256)};
  for (uint32_t s = 0; s < 2; ++s) {
    std::vector<uint32_t> data(64, 1000 * (s + 1));
    device_->upload(sources[s], data.data());
  }
  hcq::Queue& queue = device_->compute_queue();
  auto replay = [&](int i) {
    const uint64_t inputs[] = {sources[i & 1].address()};
    const int64_t scalars[] = {i};
    return graph.replay(inputs, scalars);
  };
  for (int i = 0; i < 4; ++i) queue.wait(replay(i));
  reset();
  uint64_t allocations = t_allocations;
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) last = replay(i);
  EXPECT_EQ(t_allocations, allocations);
  EXPECT_EQ(g_calls.submits, 100u);
  EXPECT_EQ(g_calls.allocates + g_calls.begins + g_calls.records + g_calls.creates, 0u);
  queue.wait(last);
  EXPECT_EQ(words(b), std::vector<uint32_t>(64, 2000 + 99 + 1));
}

TEST_F(VulkanReplay, DeviceLostIsStickyAndNamesCallAndDevice) {
  hcq::Span a = allocate(256);
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(increments(a, 1), EncodeUse::Replay);
  queue.wait(queue.submit(*encoded, {}));
  g_submit_result = VK_ERROR_DEVICE_LOST;
  try {
    queue.submit(*encoded, {});
    FAIL() << "no error";
  } catch (const DeviceLost& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("VULKAN:0"), std::string::npos) << text;
    EXPECT_NE(text.find("vkQueueSubmit"), std::string::npos) << text;
    EXPECT_NE(text.find("VK_ERROR_DEVICE_LOST"), std::string::npos) << text;
  }
  g_submit_result = VK_SUCCESS;
  reset();
  EXPECT_THROW(queue.submit(*encoded, {}), DeviceLost);
  EXPECT_THROW(device_->check_status(), DeviceLost);
  EXPECT_THROW(device_->map_block(4096, hcq::MemoryKind::Device), DeviceLost);
  render::Binary binary = kernel_binary(Kernel::Fill);
  EXPECT_THROW(device_->load({&binary, 1}), DeviceLost);
  EXPECT_EQ(g_calls.submits, 0u);
}

TEST_F(VulkanReplay, DeviceLostWhileWaiting) {
  hcq::Span a = allocate(256);
  hcq::Queue& queue = device_->compute_queue();
  auto gate = device_->create_signal();
  hcq::CommandList list = increments(a, 1);
  list.slot_count = 1;
  list.commands.insert(list.commands.begin(), {hcq::WaitCmd{gate.get(), 0}, {}, {}});
  auto encoded = queue.encode(list, EncodeUse::Replay);
  const uint64_t slots[] = {1};
  uint64_t value = queue.submit(*encoded, slots);
  g_wait_result = VK_ERROR_DEVICE_LOST;
  EXPECT_THROW(queue.wait(value), DeviceLost);
  EXPECT_THROW(device_->check_status(), DeviceLost);
  g_wait_result = VK_SUCCESS;
  // The driver itself is well: the signal is raised all the same, and the work ends before its
  // objects go.
  EXPECT_THROW(gate->set(1), DeviceLost);
  VkDevice device = dynamic_cast<vulkan::VulkanDevice&>(*device_).context()->device;
  auto& timeline = dynamic_cast<vulkan::TimelineSignal&>(queue.timeline());
  VkSemaphore line = timeline.semaphore();
  VkSemaphoreWaitInfo end{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  end.semaphoreCount = 1;
  end.pSemaphores = &line;
  end.pValues = &value;
  ASSERT_EQ(g_real.vkWaitSemaphores(device, &end, UINT64_MAX), VK_SUCCESS);
}

// Its threads are still in the driver: unloading that pulls the code from under them.
TEST_F(VulkanReplay, AnAbandonedDeviceKeepsItsDriverLoaded) {
  const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "200");
  hcq::Span a = allocate(256);
  auto gate = device_->create_signal();
  hcq::CommandList list = increments(a, 1);
  list.slot_count = 1;
  list.commands.insert(list.commands.begin(), {hcq::WaitCmd{gate.get(), 0}, {}, {}});
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(list, EncodeUse::Replay);
  const uint64_t slots[] = {1};
  const uint64_t value = queue.submit(*encoded, slots);
  g_wait_result = VK_ERROR_DEVICE_LOST;
  EXPECT_THROW(queue.wait(value), DeviceLost);
  auto& native = dynamic_cast<vulkan::VulkanDevice&>(*device_);
  const std::weak_ptr<vulkan::Instance> instance = native.context()->instance;
  native.settle();
  encoded.reset();
  // The device was not really lost: what its driver holds would keep this process from ending.
  EXPECT_THROW(gate->set(1), DeviceLost);
  gate.reset();
  programs_.clear();
  device_.reset();
  EXPECT_FALSE(instance.expired());
}

TEST_F(VulkanReplay, FailedSubmitConsumesNoValue) {
  hcq::Span a = allocate(256);
  std::vector<uint32_t> zero(64);
  device_->upload(a, zero.data());
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(increments(a, 1), EncodeUse::Replay);
  uint64_t before = queue.last_submitted();
  g_submit_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  EXPECT_THROW(queue.submit(*encoded, {}), OutOfMemory);
  g_submit_result = VK_SUCCESS;
  EXPECT_EQ(queue.last_submitted(), before);
  queue.wait(queue.submit(*encoded, {}));
  EXPECT_EQ(words(a), std::vector<uint32_t>(64, 1));
}

TEST_F(VulkanReplay, ExhaustedDeviceMemoryIsOutOfMemory) {
  g_allocate_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (auto kind : {hcq::MemoryKind::Device, hcq::MemoryKind::Args, hcq::MemoryKind::Upload}) {
    try {
      device_->map_block(1 << 20, kind);
      FAIL() << "no error";
    } catch (const OutOfMemory& e) {
      EXPECT_NE(std::string(e.what()).find("1048576 bytes"), std::string::npos) << e.what();
    }
  }
  g_allocate_result = VK_SUCCESS;
  hcq::MemoryBlock block = device_->map_block(1 << 20, hcq::MemoryKind::Device);
  device_->unmap_block(block);
}

}  // namespace
}  // namespace tuff::devices
