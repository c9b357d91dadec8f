// What goes wrong on the emulated machine: faults of memory, and those that were asked for.
#include <thread>

#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

// Two GPUs with a queue each, whose packets do what `act` says.
struct FaultScene {
  using Act = std::function<bool(const ScriptedPacket&)>;
  explicit FaultScene(
      MockOptions options, Act act = [](const ScriptedPacket&) { return true; },
      const char* blocked = "") {
    take_gpu_history();
    set_gpu_script({std::move(act), blocked});
    scene = std::make_unique<MockScene>(options);
    set_gpu_script({});
    scene->acquire(0);
    scene->acquire(1);
    scene->make_event_page();
    memory = scene->event(EventType::Memory);
    hardware = scene->event(EventType::HwException);
    for (uint32_t gpu : {0u, 1u}) {
      queues.push_back(scene->queue(QueueType::Compute, gpu));
      bells.push_back(scene->doorbell(queues.back()));
    }
  }
  // Lets all engines run out of work.
  std::vector<EventData> step() {
    std::vector<EventData> events(2);
    events[0].event_id = memory;
    events[1].event_id = hardware;
    result = scene->wait(events, 1);
    return events;
  }
  uint64_t packets() const { return scene->machine->stats().packets; }
  std::unique_ptr<MockScene> scene;
  uint32_t memory = 0, hardware = 0;
  std::vector<CreateQueue> queues;
  std::vector<uint64_t*> bells;
  int result = 0;
};

MockOptions stepped(std::vector<Fault> faults = {}) {
  MockOptions options;
  options.seed = 5;
  options.faults = std::move(faults);
  return options;
}

bool has(const std::vector<std::string>& history, const std::string& what) {
  return std::find(history.begin(), history.end(), what) != history.end();
}

TEST(MockFault, AMemoryFaultEndsTheQueuesOfItsGpu) {
  FaultScene s(stepped(), [](const ScriptedPacket& packet) {
    if (packet.gpu == 0) packet.events.memory_fault(0, {0x1234567, true, false, false});
    return true;
  });
  s.scene->ring(s.bells[0], 5);
  s.scene->ring(s.bells[1], 3);
  const auto events = s.step();
  EXPECT_EQ(s.result, kComplete);
  const MemoryException& what = events[0].memory_exception;
  EXPECT_EQ(what.address, 0x1234000u);  // of the page
  EXPECT_EQ(what.gpu_id, s.scene->gpu_id(0));
  EXPECT_EQ(what.not_present, 0u);
  EXPECT_EQ(what.read_only, 1u);
  EXPECT_EQ(what.no_execute, 0u);
  EXPECT_EQ(what.error_type, 0u);
  s.step();
  EXPECT_EQ(s.packets(), 4u);  // one of the first GPU, all of the second
  EXPECT_TRUE(has(take_gpu_history(), "reset 0"));
}

TEST(MockFault, WhatIsNotPresentIsNothingElse) {
  FaultScene s(stepped(), [](const ScriptedPacket& packet) {
    packet.events.memory_fault(0, {0x5000, true, false, true});
    return true;
  });
  s.scene->ring(s.bells[0], 1);
  const MemoryException what = s.step()[0].memory_exception;
  EXPECT_EQ(what.not_present, 1u);
  EXPECT_EQ(what.read_only, 0u);
}

TEST(MockFault, StopQueueStopsAllAfterItsCount) {
  FaultScene s(stepped({{Fault::Kind::StopQueue, 4}}));
  s.scene->ring(s.bells[0], 10);
  s.scene->ring(s.bells[1], 10);
  s.step();
  EXPECT_EQ(s.result, kTimeout);
  s.step();
  EXPECT_EQ(s.packets(), 4u);
}

TEST(MockFault, EccIsAnExceptionOfHardwareAndMemory) {
  FaultScene s(stepped({{Fault::Kind::Ecc, 2}}));
  s.scene->ring(s.bells[1], 10);
  const auto events = s.step();
  EXPECT_EQ(s.result, kComplete);
  EXPECT_EQ(events[1].hw_exception.reset_cause, 1u);
  EXPECT_EQ(events[1].hw_exception.memory_lost, 1u);
  EXPECT_EQ(events[1].hw_exception.gpu_id, s.scene->gpu_id(1));
  EXPECT_EQ(events[0].memory_exception.error_type, 1u);
  EXPECT_EQ(s.packets(), 1u);
}

TEST(MockFault, AResetGpuTakesNoMoreQueues) {
  FaultScene s(stepped({{Fault::Kind::Reset, 1}}));
  s.scene->ring(s.bells[0], 1);
  const auto events = s.step();
  EXPECT_EQ(s.result, kComplete);
  EXPECT_EQ(events[1].hw_exception.reset_type, 0u);
  EXPECT_EQ(events[1].hw_exception.reset_cause, 0u);
  EXPECT_EQ(s.packets(), 0u);
  CreateQueue again = s.queues[0];
  EXPECT_EQ(s.scene->call(kCreateQueue, again), -EIO);
  again = s.queues[1];
  EXPECT_EQ(s.scene->call(kCreateQueue, again), 0);
  // What it had can be given back, and a new process has a GPU again.
  EXPECT_EQ(s.scene->destroy_queue(s.queues[0].queue_id), 0);
  EXPECT_TRUE(s.scene->take_findings().empty());
}

TEST(MockFault, EveryCallCanFail) {
  MockOptions options;
  options.faults = {{Fault::Kind::FailCall, 2}, {Fault::Kind::FailCall, 3}};
  MockScene scene(options);
  GetVersion a{};
  EXPECT_EQ(scene.call(kGetVersion, a), 0);
  EXPECT_EQ(scene.call(kGetVersion, a), -ENOMEM);
  EXPECT_EQ(scene.call(kGetVersion, a), -ENOMEM);
  EXPECT_EQ(scene.call(kGetVersion, a), 0);
  EXPECT_EQ(scene.machine->stats().calls, 4u);
  EXPECT_TRUE(scene.take_findings().empty());  // it was asked for
}

constexpr const char* kBlocked = "GPU 0, queue 0 waits for 7\nGPU 0, queue 1 waits for 8\n";

TEST(MockFault, AQueueThatIsGivenUpTellsWhatItWaitsFor) {
  FaultScene s(stepped(), [](const ScriptedPacket&) { return false; }, kBlocked);
  s.scene->ring(s.bells[0], 1);
  s.step();
  EXPECT_TRUE(s.scene->take_findings().empty());  // somebody could still signal
  EXPECT_EQ(s.scene->destroy_queue(s.queues[0].queue_id), 0);
  const auto findings = s.scene->take_findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, FindingKind::Hang);
  EXPECT_EQ(findings[0].what, "GPU 0, queue 0 waits for 7");  // the other may go on yet
}

TEST(MockFault, FindingsAreToldOnce) {
  FaultScene s(stepped(), [](const ScriptedPacket& packet) {
    packet.events.report({FindingKind::StaleData, 0, 0, 64 + packet.number / 3, "stale"});
    return true;
  });
  s.scene->ring(s.bells[0], 5);
  s.step();
  EXPECT_EQ(s.scene->take_findings().size(), 2u);
  EXPECT_EQ(s.scene->machine->stats().findings, 2u);
}

// The same seed gives the same order of the GPUs' packets, another one another.
std::string order_of(uint64_t seed) {
  std::string order;
  MockOptions options = stepped();
  options.seed = seed;
  FaultScene s(options, [&](const ScriptedPacket& packet) {
    order += char('0' + packet.gpu);
    return true;
  });
  s.scene->ring(s.bells[0], 30);
  s.scene->ring(s.bells[1], 30);
  s.step();
  return order;
}

TEST(MockFault, TheSeedIsTheOrder) {
  EXPECT_EQ(order_of(11).size(), 60u);
  EXPECT_EQ(order_of(11), order_of(11));
  EXPECT_NE(order_of(11), order_of(12));
}

// Nothing runs by itself when steps are drawn from a seed.
TEST(MockFault, SteppedEnginesRunInsideOfWaitsAlone) {
  FaultScene s(stepped());
  s.scene->ring(s.bells[0], 3);
  GetVersion a{};
  s.scene->call(kGetVersion, a);
  EXPECT_EQ(s.packets(), 0u);
  s.scene->wait(s.memory, 0);  // a look
  EXPECT_EQ(s.packets(), 1u);
  s.step();
  EXPECT_EQ(s.packets(), 3u);
}

TEST(MockFault, APausedMachineTakesNoPacket) {
  for (const bool is_stepped : {true, false}) {
    MockOptions options;
    if (is_stepped) options.seed = 1;
    FaultScene s(options);
    s.scene->machine->pause();
    s.scene->ring(s.bells[0], 100);
    s.step();
    EXPECT_EQ(s.packets(), 0u);
    s.scene->machine->resume();
    while (s.packets() < 100) s.step();
    s.scene->machine->pause();
    s.scene->ring(s.bells[0], 200);
    s.scene->machine->resume();
    while (s.packets() < 200) s.step();
  }
}

// Doorbells are plain stores: engines find them without any call.
TEST(MockFault, EnginesFindDoorbellsByThemselves) {
  FaultScene s({});
  for (uint64_t i = 1; i <= 20; ++i) {
    s.scene->ring(s.bells[i % 2], (i + 1) / 2);
    while (s.packets() < i) std::this_thread::yield();
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace tuff::emu::amd
