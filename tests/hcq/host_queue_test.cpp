// The host's queue between fake devices, and graphs that wait and signal.
#include "hcq/host_queue.h"

#include <gtest/gtest.h>

#include "base/env.h"
#include "fake_device.h"
#include "hcq/graph.h"
#include "hcq/hazard_guard.h"

namespace tuff::hcq {
namespace {

constexpr uint64_t kSoonNs = 30'000'000;

class Bridge : public testing::Test {
 protected:
  Span bytes(FakeDevice& d, int value) {
    const Span s = d.allocator().allocate(64, MemoryKind::Device);
    std::memset(s.host(), value, 64);
    return s;
  }
  static CommandList copy_list(Span dst, Span src) {
    CommandList list;
    list.commands.push_back({CopyCmd{dst, src}, {{src, false}, {dst, true}}, "copy"});
    return list;
  }
  // Waits for `a`, copies from it to `b` and raises `raised`.
  CommandList across(Span dst, Span src) {
    CommandList list = copy_list(dst, src);
    list.slot_count = 2;
    list.commands.insert(list.commands.begin(),
                         {WaitCmd{&a.compute_queue().timeline(), 0}, {}, {}});
    list.commands.push_back({SignalCmd{raised.get(), 1}, {}, {}});
    return list;
  }
  uint64_t submit(FakeDevice& d, const CommandList& list) {
    return d.compute_queue().submit_once(d.compute_queue().encode(list, EncodeUse::Once));
  }
  FakeDevice a{{.manual = true}}, b{};
  std::unique_ptr<Signal> raised = b.create_signal(0);
  std::vector<std::pair<uint64_t, std::string>> failures;
  HostQueue queue{b, {&a.compute_queue()}, [this](uint64_t value, const std::string& reason) {
                    failures.emplace_back(value, reason);
                  }};
};

TEST_F(Bridge, CopiesWhenTheOtherDeviceHasPassedAndNotBefore) {
  const Span made = bytes(a, 1), source = bytes(a, 7), arrived = bytes(b, 0);
  const uint64_t value = submit(a, copy_list(made, source));
  const auto list = queue.encode(across(arrived, made), EncodeUse::Replay);
  const uint64_t slots[] = {value, 5};
  EXPECT_EQ(queue.submit(*list, slots), 1u);  // returns though `a` stands still
  EXPECT_FALSE(raised->wait(5, kSoonNs));
  EXPECT_EQ(queue.timeline().value(), 0u);
  EXPECT_EQ(arrived.host()[0], std::byte{0});
  a.compute_queue().step();
  queue.wait(1);
  EXPECT_EQ(raised->value(), 5u);
  EXPECT_EQ(arrived.host()[63], std::byte{7});
  EXPECT_TRUE(failures.empty());
}

TEST_F(Bridge, AListIsInFlightSeveralTimesWithOtherMemoryEachTime) {
  std::vector<Span> from, to;
  CommandList list = across({}, {});
  MemoryBlock unknown;
  std::get<CopyCmd>(list.commands[1].body) = {{&unknown, 0, 64}, {&unknown, 0, 64}};
  const auto encoded = queue.encode(list, EncodeUse::Replay);
  const Span source = bytes(a, 3);
  for (int i = 0; i < 4; i++) {
    from.push_back(bytes(a, 0));
    to.push_back(bytes(b, 0));
    submit(a, copy_list(from.back(), source));
    static_cast<HostList&>(*encoded).bind_copy(0, to.back(), from.back());
    const uint64_t slots[] = {uint64_t(i + 1), uint64_t(10 + i)};
    queue.submit(*encoded, slots);
  }
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(to[size_t(i)].host()[5], std::byte{0});
    a.compute_queue().step();
    queue.wait(uint64_t(i + 1));
    EXPECT_EQ(to[size_t(i)].host()[5], std::byte{3});
    EXPECT_EQ(raised->value(), uint64_t(10 + i));
  }
}

TEST_F(Bridge, ALostDeviceIsToldOfAndHoldsNobodyUp) {
  const Span made = bytes(a, 1), arrived = bytes(b, 9);
  const uint64_t value = submit(a, copy_list(made, bytes(a, 2)));
  const auto list = queue.encode(across(arrived, made), EncodeUse::Replay);
  const uint64_t slots[] = {value, 1}, later[] = {0, 2};
  queue.submit(*list, slots);
  queue.submit(*list, later);
  a.declare_lost("FAKE was lost in a test");
  queue.wait(2);
  ASSERT_GE(failures.size(), 1u);
  EXPECT_EQ(failures[0].first, 1u);
  EXPECT_EQ(failures[0].second, "FAKE was lost in a test");
  EXPECT_EQ(raised->value(), 2u);
  EXPECT_FALSE(b.lost());
}

// Devices that wait for each other by themselves: the failure is told first, and then whoever waits
// is let go, of each of the list's timelines.
TEST_F(Bridge, AWatchingListLetsGoWhoWaitsForALostDevice) {
  FakeDevice c;
  std::vector<uint64_t> reached;  // when the failure is told
  HostQueue watch(c, {&a.compute_queue(), &b.compute_queue()},
                  [&](uint64_t value, const std::string& reason) {
                    EXPECT_EQ(value, 2u);
                    EXPECT_EQ(reason, "FAKE was lost in a test");
                    reached.push_back(a.compute_queue().timeline().value());
                  });
  CommandList list;
  list.slot_count = 3;
  for (uint32_t slot = 0; slot < 3; slot++) {
    Queue& of = slot == 1 ? static_cast<Queue&>(b.compute_queue()) : a.compute_queue();
    list.commands.push_back({WaitCmd{&of.timeline(), slot}, {}, {}});
  }
  const auto encoded = watch.encode(list, EncodeUse::Replay);
  for (int i = 0; i < 4; i++) submit(a, {});
  submit(b, {});
  const uint64_t first[] = {1, 1, 2}, second[] = {3, 1, 4};
  watch.submit(*encoded, first);
  a.compute_queue().step();
  a.compute_queue().step();
  watch.wait(1);
  EXPECT_TRUE(reached.empty());
  watch.submit(*encoded, second);
  a.declare_lost("FAKE was lost in a test");
  watch.wait(2);
  EXPECT_EQ(reached, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(a.compute_queue().timeline().value(), 4u);
  EXPECT_TRUE(a.compute_queue().passed(2));
  EXPECT_FALSE(a.compute_queue().passed(3)) << "its results are missing";
  EXPECT_THROW(a.compute_queue().wait(3), DeviceLost);
  EXPECT_FALSE(b.lost());
}

// What an emulated machine finds is told once, to whoever asks first: not to be dropped here.
TEST_F(Bridge, WhatAMachineFindsMeanwhileIsTold) {
  struct Emulated : FakeDevice {
    using FakeDevice::FakeDevice;
    void check_status() override {
      if (found.exchange(false)) fail<HazardFound>("a race");
    }
    std::atomic<bool> found{false};
  } emulated{{.manual = true}};
  HostQueue watch(b, {&emulated.compute_queue()}, [this](uint64_t value, const std::string& why) {
    failures.emplace_back(value, why);
  });
  CommandList list;
  list.slot_count = 1;
  list.commands.push_back({WaitCmd{&emulated.compute_queue().timeline(), 0}, {}, {}});
  const uint64_t slots[] = {submit(emulated, {})};
  emulated.found = true;
  watch.submit_once(watch.encode(list, EncodeUse::Once), slots);
  while (emulated.found) std::this_thread::yield();  // it looks when it has waited for a while
  EXPECT_FALSE(watch.timeline().wait(1, kSoonNs)) << "it goes on waiting";
  emulated.compute_queue().step();
  watch.wait(1);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].second, "a race");
}

// A device that waits for one that is slow, but not hung, is not taken for hung itself.
TEST_F(Bridge, ADeviceThatWaitsForAnotherIsHeldNotLost) {
  constexpr int kLists = 8;
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "400");
  FakeDevice waiting{{.manual = true}};
  const Span made = bytes(a, 1), arrived = bytes(b, 0);
  HostQueue host(b, {&a.compute_queue(), &waiting.compute_queue()}, {});
  for (int i = 0; i < kLists; i++) submit(a, copy_list(made, arrived));
  const uint64_t of_waiting = submit(waiting, {});
  const uint64_t slots[] = {kLists, 1};
  host.submit_once(host.encode(across(arrived, made), EncodeUse::Once), slots);
  std::thread slowly([&] {
    for (int i = 0; i < kLists; i++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      a.compute_queue().step();
    }
    waiting.compute_queue().step();
  });
  EXPECT_NO_THROW(waiting.compute_queue().wait(of_waiting));
  slowly.join();
  host.wait(1);
  EXPECT_FALSE(waiting.lost());
  EXPECT_FALSE(waiting.liveness().held());
}

TEST_F(Bridge, WhatTheHostCannotDoIsRefused) {
  CommandList list;
  list.slot_count = 1;
  list.commands.push_back({WaitCmd{raised.get(), 0}, {}, {}});
  EXPECT_THROW(queue.encode(list, EncodeUse::Once), Unsupported);
  list.commands = {{DispatchCmd{}, {}, {}}};
  EXPECT_THROW(queue.encode(list, EncodeUse::Once), Unsupported);
  list = across(bytes(b, 0), bytes(a, 0));
  std::swap(list.commands[0], list.commands[1]);
  EXPECT_THROW(queue.encode(list, EncodeUse::Once), Unsupported);
}

TEST_F(Bridge, TheEndWaitsForWhatWasSubmitted) {
  const Span made = bytes(a, 1), arrived = bytes(b, 0);
  submit(a, copy_list(made, bytes(a, 6)));
  std::thread later;
  {
    HostQueue short_lived(b, {&a.compute_queue()}, {});
    const uint64_t slots[] = {1, 1};
    short_lived.submit_once(short_lived.encode(across(arrived, made), EncodeUse::Once), slots);
    later = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      a.compute_queue().step();
    });
  }
  EXPECT_EQ(arrived.host()[0], std::byte{6});
  later.join();
}

// ---- graphs with waits and signals

TEST(PlacedGraph, WaitsStandAtItsHeadAndSignalsAtItsEnd) {
  FakeDevice device{{.manual = true}};
  const auto first = device.create_signal(0), second = device.create_signal(0),
             done = device.create_signal(0);
  const Span x = device.allocator().allocate(64, MemoryKind::Device),
             y = device.allocator().allocate(64, MemoryKind::Device);
  CommandList seen;
  device.compute_queue().on_submit = [&](const CommandList& list, uint64_t) { seen = list; };
  CommandGraph graph(device, {Transfer{{x, -1, 0, 64}, {y, -1, 0, 64}}}, 0, 0, 2, {},
                     {.waits = {first.get(), second.get()}, .signals = {done.get()}});
  const uint64_t points[] = {3, 4, 9};
  const uint64_t value = graph.replay({}, {}, {}, points);
  EXPECT_EQ(to_text(seen),
            "wait s0 >= slot0\nwait s1 >= slot1\ncopy b0[0..64) <- b0[256..320) \"copy\" "
            "r:b0[256..320) w:b0[0..64)\nsignal s2 = slot2\n");
  EXPECT_EQ(done->value(), 0u);
  device.compute_queue().step();
  EXPECT_EQ(done->value(), 9u);
  EXPECT_TRUE(device.compute_queue().passed(value));
  EXPECT_THROW(graph.replay({}, {}), std::exception) << "without their values";
}

TEST(PlacedGraph, OfAQueueThatCannotWaitWaitsBeforeItSubmits) {
  FakeDevice device;
  const auto ready = device.create_signal(0);
  const Span x = device.allocator().allocate(64, MemoryKind::Device),
             y = device.allocator().allocate(64, MemoryKind::Device);
  std::atomic<uint64_t> reached_at_submit{0};
  device.compute_queue().on_submit = [&](const CommandList& list, uint64_t) {
    reached_at_submit = ready->value();
    EXPECT_EQ(list.commands.size(), 1u) << "no wait is left to the queue";
  };
  CommandGraph graph(device, {Transfer{{x, -1, 0, 64}, {y, -1, 0, 64}}}, 0, 0, 2, {},
                     {.waits = {ready.get()}, .host_waits = true});
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ready->set(6);
  });
  const uint64_t points[] = {6};
  graph.replay({}, {}, {}, points);
  later.join();
  EXPECT_EQ(reached_at_submit, 6u);
}

}  // namespace
}  // namespace tuff::hcq
