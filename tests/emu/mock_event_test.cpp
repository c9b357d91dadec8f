// Events of the emulated kernel driver: what is refused, when a wait ends, and that no wake-up is
// lost among waiters, setters and destroyers.
#include <atomic>
#include <cstring>
#include <thread>

#include "emu/amd/kfd/events.h"
#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

constexpr uint32_t kForever = ~0u;

std::vector<EventData> data(std::initializer_list<uint32_t> ids) {
  std::vector<EventData> events(ids.size());
  size_t i = 0;
  for (uint32_t id : ids) events[i++].event_id = id;
  return events;
}

struct EventScene : MockScene {
  explicit EventScene(MockOptions options = {}) : MockScene(options) {
    acquire(0);
    slots = make_event_page();
  }
  int set(uint32_t id) {
    SetEvent a{id, 0};
    return call(kSetEvent, a);
  }
  int destroy(uint32_t id) {
    DestroyEvent a{id, 0};
    return call(kDestroyEvent, a);
  }
  uint64_t* slots;
};

TEST(MockEvent, ThePageIsChecked) {
  MockScene scene;
  scene.acquire();
  const auto create = [&](uint64_t handle) {
    CreateEvent a{};
    a.event_page_offset = handle;
    return scene.call(kCreateEvent, a);
  };
  EXPECT_EQ(create(0), -EINVAL);  // a signal event without a page
  EXPECT_EQ(create(1), -EINVAL);
  const auto good = scene.mapped(0x8000, kSystemFlags);
  EXPECT_EQ(create(good.handle + 1), -EINVAL);
  EXPECT_EQ(create(scene.mapped(0x7000, kSystemFlags).handle), -EINVAL);
  EXPECT_EQ(create(scene.mapped(0x8000, kVramFlags).handle), -EINVAL);
  EXPECT_EQ(create(good.handle), 0);
  EXPECT_EQ(create(good.handle), -EINVAL);  // set already
  EXPECT_EQ(create(0), 0);
  EXPECT_EQ(scene.unmap(good), 0);
  EXPECT_EQ(scene.free(good), -EPERM);
  const auto* slots = reinterpret_cast<uint64_t*>(scene.map_on_host(good));
  for (uint32_t i = 0; i < kSignalEventLimit; ++i) ASSERT_EQ(slots[i], ~uint64_t(0));
}

TEST(MockEvent, EventsAreChecked) {
  EventScene scene;
  CreateEvent a{};
  a.event_type = 99;
  EXPECT_EQ(scene.call(kCreateEvent, a), -EINVAL);
  const uint32_t signal = scene.event(EventType::Signal);
  const uint32_t memory = scene.event(EventType::Memory);
  EXPECT_NE(signal, 0u);
  EXPECT_LT(signal, kSignalEventLimit);
  EXPECT_GE(memory, kSignalEventLimit);
  EXPECT_EQ(scene.set(signal), 0);
  EXPECT_EQ(scene.set(memory), -EINVAL);  // the GPU's alone
  EXPECT_EQ(scene.set(signal + 1), -EINVAL);
  EXPECT_EQ(scene.wait(signal + 1, 0), -EINVAL);
  EXPECT_EQ(scene.destroy(signal), 0);
  EXPECT_EQ(scene.destroy(signal), -EINVAL);
  WaitEvents w{8, 1, 0, 0, 0};
  EXPECT_EQ(scene.call(kWaitEvents, w), -EFAULT);
}

TEST(MockEvent, SlotsAreLimited) {
  EventScene scene;
  for (uint32_t i = 1; i < kSignalEventLimit; ++i) scene.event(EventType::Signal);
  CreateEvent a{};
  EXPECT_EQ(scene.call(kCreateEvent, a), -ENOSPC);
  EXPECT_EQ(scene.destroy(77), 0);
  EXPECT_EQ(scene.event(EventType::Signal), 77u);
}

TEST(MockEvent, AWaitEndsAsTheKernelSays) {
  EventScene scene;
  const uint32_t automatic = scene.event(EventType::Signal, true);
  const uint32_t manual = scene.event(EventType::Signal, false);
  EXPECT_EQ(scene.wait(automatic, 0), kTimeout);
  EXPECT_EQ(scene.wait(automatic, 3), kTimeout);
  scene.set(automatic);
  EXPECT_EQ(scene.wait(automatic, kForever), kComplete);
  EXPECT_EQ(scene.wait(automatic, 0), kTimeout);  // it has reset itself
  scene.set(manual);
  EXPECT_EQ(scene.wait(manual, 0), kComplete);
  EXPECT_EQ(scene.wait(manual, 0), kComplete);
  auto both = data({automatic, manual});
  EXPECT_EQ(scene.wait(both, 0), kComplete);
  both = data({automatic, manual});
  EXPECT_EQ(scene.wait(both, 0, true), kTimeout);
  scene.set(automatic);
  both = data({automatic, manual});
  EXPECT_EQ(scene.wait(both, 0, true), kComplete);
  std::vector<EventData> none;
  EXPECT_EQ(scene.wait(none, 0), kComplete);  // all of none have happened
}

// Whoever passes the age that he saw last is not kept waiting for what happened since.
TEST(MockEvent, AgesTellWhatWasMissed) {
  EventScene scene;
  const uint32_t id = scene.event(EventType::Signal, true);
  scene.set(id);
  auto events = data({id});
  EXPECT_EQ(scene.wait(events, 0), kComplete);
  uint64_t age = 0;
  std::memcpy(&age, &events[0], sizeof age);
  EXPECT_GT(age, 1u);
  EXPECT_EQ(scene.wait(events, 0), kTimeout);
  scene.set(id);
  EXPECT_EQ(scene.wait(id, 0), kComplete);  // somebody else takes it
  EXPECT_EQ(scene.wait(events, 0), kComplete);
}

TEST(MockEvent, ADestroyedEventEndsItsWait) {
  EventScene scene;
  const uint32_t id = scene.event(EventType::Signal);
  std::atomic<int> result = 1;
  std::thread waiter([&] { result = scene.wait(id, kForever); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(scene.destroy(id), 0);
  waiter.join();
  EXPECT_TRUE(result == -EIO || result == -EINVAL) << result;  // before it has begun to wait
}

TEST(MockEvent, OneSettingWakesAllWhoWait) {
  EventScene scene;
  const uint32_t id = scene.event(EventType::Signal, false);
  std::atomic<int> woken = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] { woken += scene.wait(id, kForever) == kComplete; });
  }
  scene.set(id);
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 4);
}

// Each turn waits for the other's answer: a lost wake-up would never end.
TEST(MockEvent, NoWakeUpIsLost) {
  EventScene scene;
  const uint32_t there = scene.event(EventType::Signal), back = scene.event(EventType::Signal);
  constexpr int kTurns = 2000;
  std::thread other([&] {
    for (int i = 0; i < kTurns; ++i) {
      ASSERT_EQ(scene.wait(there, kForever), kComplete);
      ASSERT_EQ(scene.set(back), 0);
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_EQ(scene.set(there), 0);
    ASSERT_EQ(scene.wait(back, kForever), kComplete);
  }
  other.join();
}

// A GPU's interrupt sets the event whose slot its packet has written, whatever id it tells.
struct InterruptScene {
  explicit InterruptScene(std::vector<Fault> faults = {}, bool stepped = true) {
    GpuScript script;
    script.packet = [this](const ScriptedPacket& packet) {
      if (std::byte* slot = reach(packet.space, slot_address))
        std::atomic_ref(*reinterpret_cast<uint64_t*>(slot)).store(1);
      packet.events.interrupt(packet.gpu, told);
      return true;
    };
    set_gpu_script(script);
    MockOptions options;
    if (stepped) options.seed = 3;
    options.faults = std::move(faults);
    scene = std::make_unique<EventScene>(options);
    set_gpu_script({});
    id = scene->event(EventType::Signal);
    told = id;
    slot_address = reinterpret_cast<uint64_t>(scene->slots + id);
    bell = scene->doorbell(scene->queue(QueueType::Compute));
  }
  std::unique_ptr<EventScene> scene;
  uint32_t id = 0;
  std::atomic<uint32_t> told = 0;
  std::atomic<uint64_t> slot_address = 0;
  uint64_t* bell;
};

TEST(MockEvent, AnInterruptSetsTheEventOfItsSlot) {
  InterruptScene s;
  EXPECT_EQ(s.scene->wait(s.id, 1), kTimeout);
  s.scene->ring(s.bell, 1);
  EXPECT_EQ(s.scene->wait(s.id, 1), kComplete);
  EXPECT_EQ(s.scene->slots[s.id], ~uint64_t(0));  // acknowledged
  EXPECT_EQ(s.scene->wait(s.id, 1), kTimeout);
  // A wrong id is put right by the slots; an interrupt without a slot is nobody's.
  s.told = 1234;
  s.scene->ring(s.bell, 2);
  EXPECT_EQ(s.scene->wait(s.id, 1), kComplete);
  s.told = s.id;
  s.slot_address = 0;
  s.scene->ring(s.bell, 3);
  EXPECT_EQ(s.scene->wait(s.id, 1), kTimeout);
}

TEST(MockEvent, ThreadsAndInterruptsLoseNothing) {
  InterruptScene s({}, false);
  for (uint64_t i = 1; i <= 500; ++i) {
    s.scene->ring(s.bell, i);
    ASSERT_EQ(s.scene->wait(s.id, kForever), kComplete);
  }
  EXPECT_EQ(s.scene->machine->stats().packets, 500u);
}

TEST(MockEvent, ALostInterruptIsLostOnce) {
  InterruptScene s({{Fault::Kind::LoseInterrupt, 2}});
  for (uint64_t i = 1; i <= 3; ++i) {
    s.scene->ring(s.bell, i);
    EXPECT_EQ(s.scene->wait(s.id, 1), i == 2 ? kTimeout : kComplete) << i;
  }
}

// What happens in the last moment of a wait, by another thread's step, is not for nobody to see: an
// event that resets itself has woken somebody by then.
TEST(MockEvent, AWaitThatIsOverLooksOnceMore) {
  Events events;
  CreateEvent made{};
  made.event_type = uint32_t(EventType::HwException);
  made.auto_reset = 1;
  events.create(made);
  EventData data[1]{};
  data[0].event_id = made.event_id;
  const auto step = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    HwException what{};
    what.gpu_id = 77;
    events.hw_exception(what);
    return false;
  };
  EXPECT_EQ(events.wait(data, false, 1, step), WaitResult::Complete);
  EXPECT_EQ(data[0].hw_exception.gpu_id, 77u);
}

}  // namespace
}  // namespace tuff::emu::amd
