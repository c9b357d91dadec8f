// Memory of one GPU that queues of another reach: which do, what has to be shared first, signals
// between the two, and what is left when one is closed.
#include <algorithm>

#include "devices/nv/fixture.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

// Two GPUs of one machine, over PCIe or NVLink.
class NvPeers : public testing::TestWithParam<const char*> {
 protected:
  Machine machine_{GetParam()};
  Opened a_{machine_, "0"}, b_{machine_, "1"};
};

TEST_P(NvPeers, ReachEachOther) {
  EXPECT_TRUE(hcq::reaches(*a_.device, *b_.device));
  EXPECT_TRUE(hcq::reaches(*b_.device, *a_.device));
  EXPECT_FALSE(hcq::reaches(*a_.device, *a_.device));
  Machine another(GetParam());
  const Opened elsewhere(another, "1");
  EXPECT_FALSE(hcq::reaches(*a_.device, *elsewhere.device)) << "a GPU of another process";
}

TEST_P(NvPeers, CopyInBothDirectionsByBothQueues) {
  uint32_t first = 1;
  for (Opened* by : {&a_, &b_}) {
    Opened& other = by == &a_ ? b_ : a_;
    for (Queue* queue : {&by->queue(), by->device->copy_queue()}) {
      for (const bool out : {true, false}) {
        const Words values = counting(70000, first += 100000);
        const Span src = (out ? *by : other).upload(values),
                   dst = (out ? other : *by).upload(Words(values.size(), 7));
        hcq::share(*other.device, *(out ? dst : src).block, *by->device);
        queue->wait(Opened::submit(*queue, {Opened::copy(dst, src)}));
        EXPECT_EQ((out ? other : *by).read(dst), values);
      }
    }
  }
}

TEST_P(NvPeers, KernelsReadAndWriteTheOthersMemory) {
  const Span in = b_.upload(counting(128, 50)), out = b_.upload(Words(128, 0));
  hcq::share(*b_.device, *in.block, *a_.device);
  hcq::share(*b_.device, *out.block, *a_.device);
  a_.run({a_.dispatch(kAdd, {in, out}, 7, 4)});
  EXPECT_EQ(b_.read(out), counting(128, 57));
}

// Waits for the other's timeline at both ends, and nothing else, order a round trip.
TEST_P(NvPeers, QueuesWaitForEachOthersTimelines) {
  const Span x = a_.upload(counting(5000, 0)), y = b_.upload(Words(5000, 1));
  hcq::share(*b_.device, *y.block, *a_.device);
  hcq::share(*a_.device, *x.block, *b_.device);
  Queue &there = *a_.device->copy_queue(), &back = b_.queue();
  const auto outs = there.encode(
      Opened::list_of({wait_for(back.timeline()), Opened::copy(y, x)}, 1), EncodeUse::Replay);
  const auto backs = back.encode(
      Opened::list_of({wait_for(there.timeline()), Opened::copy(x, y)}, 1), EncodeUse::Replay);
  for (uint32_t i = 0; i < 5; ++i) {
    const Words values = counting(5000, 1000 * i);
    a_.device->upload(x, values.data());
    const uint64_t before = back.last_submitted(), arrived = there.submit(*outs, {&before, 1});
    back.wait(back.submit(*backs, {&arrived, 1}));
    there.wait_idle();
    EXPECT_EQ(a_.read(x), values);
    EXPECT_EQ(b_.read(y), values);
  }
}

// What was shared with a GPU that is closed is the owner's alone again, and may be shared anew.
TEST_P(NvPeers, OneIsClosedAndOpenedAgain) {
  const Span x = a_.upload(counting(100, 3));
  for (int round = 0; round < 2; ++round) {
    hcq::share(*a_.device, *x.block, *b_.device);
    const Span y = b_.words(100);
    b_.run({Opened::copy(y, x)});
    EXPECT_EQ(b_.read(y), counting(100, 3));
    b_.programs.clear();
    b_.device.reset();
    EXPECT_EQ(a_.read(x), counting(100, 3));
    b_ = Opened(machine_, "1");
  }
  EXPECT_TRUE(hcq::reaches(*a_.device, *b_.device));
}

INSTANTIATE_TEST_SUITE_P(Links, NvPeers,
                         testing::Values("gpus:2", "gpus:2,peers:2,sm:90,seed:5",
                                         "gpus:2,sm:120,seed:9"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == ':' || c == ','; });
                           return name;
                         });

TEST(NvPeer, ReachNothingWhereTheDriverDoesNotLetThem) {
  Machine machine("gpus:2,peers:0");
  const Opened a(machine, "0"), b(machine, "1");
  EXPECT_FALSE(hcq::reaches(*a.device, *b.device));
  const Span s = b.device->allocator().allocate(64, MemoryKind::Device);
  EXPECT_THROW(hcq::share(*b.device, *s.block, *a.device), Unsupported);
  EXPECT_THROW(a.device->compute_queue().encode(
                   Opened::list_of({wait_for(b.device->compute_queue().timeline())}, 1),
                   EncodeUse::Once),
               Unsupported);
}

TEST(NvPeer, MemoryThatIsNotSharedIsAFaultAndSharedMemoryIsNamed) {
  for (const bool shared : {false, true}) {
    Machine machine("gpus:2");
    Opened a(machine, "0"), b(machine, "1");
    const Span x = a.upload(Words(2048, 1));
    const MemoryBlock block = b.device->map_block(1 << 20, MemoryKind::Device);
    if (shared) hcq::share(*b.device, block, *a.device);
    if (shared) b.device->unmap_block(block);
    const Span there{&block, 4096, 8192};
    const std::string said =
        error_of<DeviceLost>([&] { a.run({Opened::copy(there, x)}); });
    EXPECT_NE(said.find("NV:0"), std::string::npos) << said;
    EXPECT_EQ(said.find("4096 bytes into a block of 1048576 bytes that NV:1 has shared") !=
                  std::string::npos,
              shared)
        << said;
    EXPECT_FALSE(b.device->lost());
    if (!shared) b.device->unmap_block(block);
    machine.iface.take_findings();
  }
}

// What waits for a lost device goes on once it is let go.
TEST(NvPeer, AQueueThatWaitsForALostDeviceIsLetGo) {
  Machine machine("gpus:2");
  Opened a(machine, "0"), b(machine, "1");
  const Span x = b.upload(Words(100, 1)), y = b.upload(Words(100, 2));
  const uint64_t reached = a.queue().last_submitted(), wanted = reached + 2;
  const uint64_t value = Opened::submit(
      b.queue(), {wait_for(a.queue().timeline()), Opened::copy(y, x)}, {&wanted, 1});
  EXPECT_FALSE(b.queue().timeline().wait(value, 20'000'000));
  a.device->declare_lost("NV:0: gone");
  a.queue().release_waiters(reached + 1);
  EXPECT_FALSE(b.queue().timeline().wait(value, 20'000'000)) << "not far enough";
  a.queue().release_waiters(wanted);
  b.queue().wait(value);
  EXPECT_EQ(b.read(y), Words(100, 1));
  EXPECT_THROW(a.queue().wait(wanted), DeviceLost);
}

// Each call of two GPUs fails once: an error, or no peers; then nothing is left.
TEST(NvPeer, EveryCallOfOpeningTwoFailsOnce) {
  for (uint64_t call = 1;; ++call) {
    ASSERT_LT(call, 500u);
    Machine machine(fmt::format("gpus:2,fail:{}", call));
    bool failed = false;
    try {
      Opened a(machine, "0"), b(machine, "1");
      const Span x = a.upload(counting(100, 3)), y = b.upload(Words(100, 2));
      const bool reach = hcq::reaches(*b.device, *a.device);
      if (reach) hcq::share(*a.device, *x.block, *b.device);
      if (reach) b.run({Opened::copy(y, x)});
      if (reach) {
        EXPECT_EQ(b.read(y), counting(100, 3));
      }
      failed = !reach;
    } catch (const Error&) {
      failed = true;
    }
    const emu::nv::MockStats left = machine.mock->stats();
    EXPECT_EQ(left.objects + left.ranges + left.files, 0u) << "call " << call;
    machine.iface.take_findings();
    if (!failed && left.calls < call) break;
  }
}

}  // namespace
}  // namespace tuff::devices::nv
