// Lists on the compute queue: dispatches, barriers, replays, timestamps, signals, refusals; once as
// the device is, once without synchronization2 and calibrated timestamps, and both with fences in
// place of timeline semaphores.
#include <algorithm>
#include <thread>

#include "base/os.h"
#include "devices/vulkan/device/vulkan_device.h"
#include "fixture.h"
#include "tuff/error.h"

namespace tuff::devices {
namespace {

using hcq::EncodeUse;
using hcq::MemoryKind;

class VulkanQueueTest : public VulkanTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { open(true, GetParam()); }
  void expect_signals_are_refused();
  bool has_fences() const { return std::string(GetParam()).find("timeline") != std::string::npos; }
};

std::string tier_name(const ::testing::TestParamInfo<const char*>& tier) {
  const char* names[] = {"Full", "Legacy", "Fences", "FencesLegacy"};
  return names[tier.index];
}

INSTANTIATE_TEST_SUITE_P(Tiers, VulkanQueueTest,
                         ::testing::Values("", "synchronization2,calibratedTimestamps,debugUtils",
                                           "timeline", "timeline,sync2,calibrated,debug"),
                         tier_name);

std::vector<uint32_t> ramp(uint32_t count, uint32_t start, uint32_t step) {
  std::vector<uint32_t> out(count);
  for (uint32_t i = 0; i < count; ++i) out[i] = start + i * step;
  return out;
}

TEST_P(VulkanQueueTest, DispatchWritesThroughTheArgumentBlock) {
  hcq::Span dst = allocate(4 * 1000);
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Fill), arguments({dst}, {1000, 5, 3}), 16));
  run(list);
  EXPECT_EQ(words(dst), ramp(1000, 5, 3));
}

TEST_P(VulkanQueueTest, IndirectDispatchReadsItsGroupCounts) {
  hcq::Span dst = allocate(4 * 256), groups = allocate(16, MemoryKind::Args);
  uint32_t counts[3] = {2, 1, 1};
  device_->upload(groups.sub(4, 12), counts);
  auto zero = std::vector<uint32_t>(256);
  device_->upload(dst, zero.data());
  hcq::CommandList list;
  auto command = dispatch(load(Kernel::Fill), arguments({dst}, {256, 7, 0}), 4);
  std::get<hcq::DispatchCmd>(command.body).indirect = groups.sub(4, 12);
  list.commands.push_back(command);
  run(list);
  auto expected = zero;
  std::fill_n(expected.begin(), 128, 7u);
  EXPECT_EQ(words(dst), expected);
}

TEST_P(VulkanQueueTest, GroupCountsWrittenByAKernelLaunchTheNext) {
  hcq::Span dst = allocate(4 * 256), groups = allocate(16);
  const auto* fill = load(Kernel::Fill);
  std::vector<uint32_t> zero(256);
  device_->upload(dst, zero.data());
  hcq::CommandList list;
  list.commands.push_back(dispatch(fill, arguments({groups}, {3, 1, 0}), 1));
  list.commands.push_back(barrier());
  auto command = dispatch(fill, arguments({dst}, {256, 9, 0}), 4);
  std::get<hcq::DispatchCmd>(command.body).indirect = groups.sub(0, 12);
  list.commands.push_back(command);
  run(list);
  auto expected = zero;
  std::fill_n(expected.begin(), 64, 9u);
  EXPECT_EQ(words(dst), expected);
}

TEST_P(VulkanQueueTest, ChainOfKernelsAndCopiesWithBarriers) {
  hcq::Span a = allocate(4 * 512), b = allocate(4 * 512),
            c = allocate(4 * 512, MemoryKind::Readback);
  const auto* copy = load(Kernel::Copy);
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Fill), arguments({a}, {512, 100, 1}), 8));
  hcq::Span forward = arguments({b, a}, {512, 1}), back = arguments({a, b}, {512, 1});
  for (int i = 0; i < 50; ++i) {
    list.commands.push_back(barrier());
    list.commands.push_back(dispatch(copy, i % 2 ? back : forward, 8));
  }
  list.commands.push_back(barrier());
  list.commands.push_back({hcq::CopyCmd{c, a}, {}, {}});
  run(list);
  EXPECT_EQ(words(c), ramp(512, 150, 1));
}

TEST_P(VulkanQueueTest, ReplayListsAreOrderedAfterEachOther) {
  hcq::Span a = allocate(4 * 64);
  std::vector<uint32_t> zero(64);
  device_->upload(a, zero.data());
  hcq::Queue& queue = device_->compute_queue();
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Copy), arguments({a, a}, {64, 1}), 1));
  // Two instances, so that one is submitted while the other runs.
  std::unique_ptr<hcq::EncodedList> instances[2];
  uint64_t values[2] = {};
  for (auto& e : instances) e = queue.encode(list, EncodeUse::Replay);
  for (int i = 0; i < 500; ++i) {
    if (values[i & 1]) queue.wait(values[i & 1]);
    values[i & 1] = queue.submit(*instances[i & 1], {});
  }
  queue.wait_idle();
  EXPECT_EQ(words(a), ramp(64, 500, 0));
}

TEST_P(VulkanQueueTest, RebindingRewritesTheBlockAlone) {
  hcq::Span a = allocate(4 * 64), b = allocate(4 * 64);
  hcq::Span args = arguments({a}, {64, 1, 0});
  hcq::Queue& queue = device_->compute_queue();
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Fill), args, 1));
  auto encoded = queue.encode(list, EncodeUse::Replay);
  queue.wait(queue.submit(*encoded, {}));
  uint64_t address = b.address();
  int32_t value = 2;
  std::memcpy(args.host(), &address, 8);
  std::memcpy(args.host() + 12, &value, 4);
  queue.wait(queue.submit(*encoded, {}));
  EXPECT_EQ(words(a), ramp(64, 1, 0));
  EXPECT_EQ(words(b), ramp(64, 2, 0));
}

TEST_P(VulkanQueueTest, TimestampsRiseAndLieBetweenHostTimes) {
  hcq::Span a = allocate(4 << 16);
  hcq::Span args = arguments({a}, {1 << 16, 0, 1});
  const auto* fill = load(Kernel::Fill);
  hcq::CommandList list;
  list.timestamp_count = 5;
  for (uint32_t i = 0; i < 5; ++i) {
    if (i) {
      list.commands.push_back(dispatch(fill, args, 1024));
      list.commands.push_back(barrier());
    }
    list.commands.push_back({hcq::TimestampCmd{i}, {}, {}});
  }
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(list, EncodeUse::Replay);
  constexpr uint64_t kSlackNs = 20'000'000;  // the uncalibrated offset is good to a round trip
  for (int replay = 0; replay < 3; ++replay) {
    uint64_t before = os::monotonic_ns();
    queue.wait(queue.submit(*encoded, {}));
    uint64_t after = os::monotonic_ns();
    auto times = queue.timestamps(*encoded);
    ASSERT_EQ(times.size(), 5u);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_LT(times.front(), times.back());
    EXPECT_GE(times.front() + kSlackNs, before);
    EXPECT_LE(times.back(), after + kSlackNs);
  }
}

TEST_P(VulkanQueueTest, WaitsAndSignalsOfOtherTimelines) {
  if (has_fences()) return expect_signals_are_refused();
  hcq::Span a = allocate(4 * 64);
  auto gate = device_->create_signal(), done = device_->create_signal(10);
  hcq::CommandList list;
  list.slot_count = 2;
  list.commands.push_back({hcq::WaitCmd{gate.get(), 0}, {}, {}});
  list.commands.push_back(dispatch(load(Kernel::Fill), arguments({a}, {64, 4, 0}), 1));
  list.commands.push_back({hcq::SignalCmd{done.get(), 1}, {}, {}});
  hcq::Queue& queue = device_->compute_queue();
  auto encoded = queue.encode(list, EncodeUse::Replay);
  const uint64_t slots[] = {3, 20};
  uint64_t value = queue.submit(*encoded, slots);
  EXPECT_FALSE(queue.timeline().wait(value, 2'000'000));
  EXPECT_EQ(done->value(), 10u);
  gate->set(3);
  queue.wait(value);
  EXPECT_TRUE(done->wait(20, 1'000'000'000));
  EXPECT_EQ(words(a), ramp(64, 4, 0));
  EXPECT_THROW(gate->set(3), InvalidArgument);
  EXPECT_THROW(queue.submit(*encoded, std::span(slots, 1)), InvalidArgument);
}

void VulkanQueueTest::expect_signals_are_refused() {
  hcq::Queue& queue = device_->compute_queue();
  EXPECT_THROW(device_->create_signal(), Unsupported);
  EXPECT_THROW(queue.timeline().set(1), Unsupported);
  for (const hcq::CommandBody& body : {hcq::CommandBody(hcq::WaitCmd{&queue.timeline(), 0}),
                                       hcq::CommandBody(hcq::SignalCmd{&queue.timeline(), 0})}) {
    hcq::CommandList list;
    list.slot_count = 1;
    list.commands.push_back({body, {}, {}});
    try {
      queue.encode(list, EncodeUse::Once);
      ADD_FAILURE() << "no error";
    } catch (const Unsupported& e) {
      EXPECT_NE(std::string(e.what()).find("timelineSemaphore"), std::string::npos) << e.what();
    }
  }
}

TEST_P(VulkanQueueTest, ValuesRiseInOrderAndAWaitTimesOut) {
  hcq::Span a = allocate(4 << 20);
  const auto* fill = load(Kernel::Fill);
  hcq::Queue& queue = device_->compute_queue();
  hcq::CommandList list;
  list.commands.push_back(dispatch(fill, arguments({a}, {1 << 20, 1, 1}), 16384));
  EXPECT_FALSE(queue.timeline().wait(queue.last_submitted() + 1, 1'000'000));
  std::vector<uint64_t> values;
  for (int i = 0; i < 20; ++i)
    values.push_back(queue.submit_once(queue.encode(list, EncodeUse::Once)));
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  uint64_t seen = 0;
  {
    // Several threads wait for the same and for different submissions.
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        for (size_t i = t % 3; i < values.size(); i += 3) {
          EXPECT_TRUE(queue.timeline().wait(values[i], 10'000'000'000));
          EXPECT_GE(queue.timeline().value(), values[i]);
        }
      });
    for (uint64_t now = 0; now < values.back();) {
      now = queue.timeline().value();
      EXPECT_GE(now, seen);
      seen = now;
    }
  }
  EXPECT_EQ(queue.timeline().value(), queue.last_submitted());
}

TEST_P(VulkanQueueTest, RefusesWhatVulkanCannotDoInMidList) {
  std::unique_ptr<hcq::Signal> gate;
  if (!has_fences()) gate = device_->create_signal();
  const auto* fill = load(Kernel::Fill);
  hcq::Span args = arguments({allocate(256)}, {64, 0, 0});
  hcq::Queue& queue = device_->compute_queue();
  auto encode = [&](std::vector<hcq::Command> commands) {
    hcq::CommandList list;
    list.slot_count = 1;
    list.commands = std::move(commands);
    return queue.encode(list, EncodeUse::Once);
  };
  hcq::Command wait{hcq::WaitCmd{gate.get(), 0}, {}, {}},
      signal{hcq::SignalCmd{gate.get(), 0}, {}, {}};
  hcq::Command work = dispatch(fill, args, 1);
  EXPECT_THROW(encode({work, wait}), Unsupported);
  if (gate) {
    EXPECT_THROW(encode({signal, work}), Unsupported);
    EXPECT_THROW(encode({{hcq::WaitCmd{gate.get(), 1}, {}, {}}}), InvalidArgument);
  }
  EXPECT_THROW(encode({{hcq::HostCallCmd{[](void*) {}, nullptr}, {}, {}}}), Unsupported);
  EXPECT_THROW(encode({{hcq::TimestampCmd{0}, {}, {}}}), InvalidArgument);
  EXPECT_THROW(encode({dispatch(fill, args, UINT32_MAX)}), InvalidArgument);
  // Abandoned recordings leave the queue whole; an unused slot costs nothing.
  const uint64_t slots[] = {0};
  queue.wait(queue.submit_once(encode({work}), slots));
}

TEST_P(VulkanQueueTest, OnceListsAreRecycled) {
  hcq::Span a = allocate(256);
  const auto* fill = load(Kernel::Fill);
  hcq::Span args = arguments({a}, {64, 1, 0});
  hcq::Queue& queue = device_->compute_queue();
  hcq::CommandList list;
  list.commands.push_back(dispatch(fill, args, 1));
  for (int i = 0; i < 200; ++i) queue.submit_once(queue.encode(list, EncodeUse::Once));
  queue.wait_idle();
  auto once = queue.encode(list, EncodeUse::Once);
  queue.wait(queue.submit(*once, {}));
  EXPECT_THROW(queue.submit(*once, {}), InvalidArgument);
  EXPECT_EQ(queue.last_submitted(), queue.timeline().value());
}

TEST_P(VulkanQueueTest, ThreadsSubmitToOneQueue) {
  constexpr int kThreads = 4, kEach = 50;
  const auto* copy = load(Kernel::Copy);
  hcq::Queue& queue = device_->compute_queue();
  std::vector<hcq::Span> results;
  std::vector<hcq::CommandList> lists(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    results.push_back(allocate(256));
    std::vector<uint32_t> zero(64);
    device_->upload(results[t], zero.data());
    lists[t].commands.push_back(dispatch(copy, arguments({results[t], results[t]}, {64, 1}), 1));
  }
  uint64_t before = queue.last_submitted();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) queue.submit_once(queue.encode(lists[t], EncodeUse::Once));
      });
    }
  }
  queue.wait_idle();
  EXPECT_EQ(queue.last_submitted(), before + kThreads * kEach);
  for (const auto& r : results) EXPECT_EQ(words(r), ramp(64, kEach, 0));
}

TEST_P(VulkanQueueTest, ValidationSeesAMistake) {
  if (!vulkan_validation_active(*device_)) GTEST_SKIP() << "the validation layer is not installed";
  const auto& context = dynamic_cast<vulkan::VulkanDevice&>(*device_).context();
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};  // size 0 and no usage
  VkBuffer buffer = VK_NULL_HANDLE;
  if (context->api.vkCreateBuffer(context->device, &info, nullptr, &buffer) == VK_SUCCESS) {
    context->api.vkDestroyBuffer(context->device, buffer, nullptr);
  }
  EXPECT_GT(vulkan_validation_message_count(), messages_before_);
  messages_before_ = vulkan_validation_message_count();
}

// That tiers_test.py's silence means something: a missing barrier is seen with the layer switched
// on as it does.
TEST_P(VulkanQueueTest, SynchronizationValidationSeesAMissingBarrier) {
  close();
  ::setenv("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT", 1);
  open(true, GetParam());
  ::unsetenv("VK_LAYER_ENABLES");
  if (!vulkan_validation_active(*device_)) GTEST_SKIP() << "the validation layer is not installed";
  hcq::Span a = allocate(256), b = allocate(256), c = allocate(256);
  const auto copies = [&](bool ordered) {
    hcq::CommandList list;
    list.commands.push_back({hcq::CopyCmd{b, a}, {}, {}});
    if (ordered) list.commands.push_back(barrier());
    list.commands.push_back({hcq::CopyCmd{c, b}, {}, {}});
    return list;
  };
  run(copies(true));
  EXPECT_EQ(vulkan_validation_message_count(), messages_before_);
  run(copies(false));
  EXPECT_GT(vulkan_validation_message_count(), messages_before_);
  messages_before_ = vulkan_validation_message_count();
}

TEST_P(VulkanQueueTest, ClosesWithWorkInFlight) {
  hcq::Span a = allocate(4 << 20);
  hcq::Span args = arguments({a}, {1 << 20, 1, 0});
  hcq::CommandList list;
  list.commands.push_back(dispatch(load(Kernel::Fill), args, 16384));
  hcq::Queue& queue = device_->compute_queue();
  for (int i = 0; i < 4; ++i) queue.submit_once(queue.encode(list, EncodeUse::Once));
  // The programs outlive the device object; its memory and lists are its own care.
  auto programs = std::move(programs_);
  spans_.clear();
  device_.reset();
  EXPECT_EQ(vulkan_validation_message_count(), messages_before_);
}

}  // namespace
}  // namespace tuff::devices
