// Queue and Device: waits, Once lists, staged transfers, lost devices; ArgRing; the text form.
#include <gtest/gtest.h>

#include <numeric>

#include "base/env.h"
#include "fake_device.h"
#include "hcq/args.h"

namespace tuff::hcq {
namespace {

TEST(Queue, NoProgressBecomesDeviceLostAndStays) {
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "30");
  FakeDevice device({.manual = true});
  auto& queue = device.compute_queue();
  uint64_t value = queue.submit_once(queue.encode({}, EncodeUse::Once));
  try {
    queue.wait(value);
    FAIL() << "must throw";
  } catch (const DeviceLost& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("FAKE"), std::string::npos) << text;
    EXPECT_NE(text.find("timeline at 0, waiting for 1"), std::string::npos) << text;
  }
  EXPECT_TRUE(device.lost());
  EXPECT_THROW(queue.submit_once(queue.encode({}, EncodeUse::Once)), DeviceLost);
  EXPECT_THROW(queue.wait(value), DeviceLost);
}

TEST(Queue, ProgressRestartsTheTimeout) {
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "100");
  FakeDevice device({.manual = true});
  auto& queue = device.compute_queue();
  uint64_t value = 0;
  for (int i = 0; i < 6; ++i) value = queue.submit_once(queue.encode({}, EncodeUse::Once));
  std::thread stepper([&] {
    for (int i = 0; i < 6; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      queue.step();
    }
  });
  EXPECT_NO_THROW(queue.wait(value));  // 240 ms in all, never 100 ms without progress
  stepper.join();
}

TEST(Queue, OnceListsLiveUntilTheyHavePassed) {
  FakeDevice device({.manual = true});
  auto& queue = device.compute_queue();
  queue.submit_once(queue.encode({}, EncodeUse::Once));
  queue.submit_once(queue.encode({}, EncodeUse::Once));
  EXPECT_EQ(queue.lists_alive, 2);
  queue.step();
  queue.submit_once(queue.encode({}, EncodeUse::Once));
  EXPECT_EQ(queue.lists_alive, 2);  // the first one went
}

class Transfers : public testing::TestWithParam<bool> {};
TEST_P(Transfers, RoundTripOfManyPieces) {
  FakeDevice device({.hidden = GetParam(), .manual = true, .run_on_wait = true});
  std::vector<uint32_t> data(5'000'000), back(data.size());  // 20 MB: five pieces
  std::iota(data.begin(), data.end(), 1u);
  Span span = device.allocator().allocate(data.size() * 4, MemoryKind::Device);
  device.upload(span, data.data());
  device.download(span, back.data());
  EXPECT_EQ(data, back);
  device.allocator().free(span);
}
INSTANTIATE_TEST_SUITE_P(HostPointer, Transfers, testing::Bool());

TEST(ArgRing, BlocksAreNotReusedBeforeTheyRetire) {
  FakeDevice device({.manual = true, .run_on_wait = true});
  auto& queue = device.compute_queue();
  ArgRing ring(device, 16384);
  struct Use {
    uint64_t begin, end, value;
  };
  std::vector<Use> uses;
  for (int batch = 0; batch < 300; ++batch) {
    std::vector<Span> blocks;
    for (int i = 0; i < 1 + batch % 9; ++i) blocks.push_back(ring.allocate(48 + 16 * (batch % 7)));
    for (const Span& b : blocks) {
      uint64_t begin = b.address(), end = begin + b.size_bytes;
      for (const Use& u : uses)
        if (begin < u.end && u.begin < end) {
          ASSERT_TRUE(queue.passed(u.value)) << "batch " << batch;
        }
    }
    std::erase_if(uses, [&](const Use& u) { return queue.passed(u.value); });
    uint64_t value = queue.submit_once(queue.encode({}, EncodeUse::Once));
    ring.retire(value);
    for (const Span& b : blocks) uses.push_back({b.address(), b.address() + b.size_bytes, value});
  }
  EXPECT_GT(queue.timeline().value(), 0u);  // it did wait: the ring wrapped
  EXPECT_LT(device.mapped, 64u << 20);
}

TEST(ArgRing, OneBatchMayOutgrowTheRing) {
  FakeDevice device({.manual = true, .run_on_wait = true});
  ArgRing ring(device, 16384);
  std::map<uint64_t, int> seen;
  for (int i = 0; i < 2000; ++i) ++seen[ring.allocate(64).address()];
  EXPECT_EQ(seen.size(), 2000u);
  EXPECT_THROW(ring.allocate(1 << 20), InvalidArgument);
}

TEST(ArgRing, StagedBlocksReachTheDevice) {
  FakeDevice device({.hidden = true});
  auto& queue = device.compute_queue();
  ArgRing ring(device, 16384);
  int ran = 0;
  FakeProgram program("p", 0, 1, [&](const std::byte* args, auto) {
    int32_t scalar;
    std::memcpy(&scalar, args, 4);
    EXPECT_EQ(scalar, 1000 + ran++);
  });
  for (int i = 0; i < 500; ++i) {
    Span block = ring.allocate(program.args().size_bytes());
    ASSERT_EQ(block.host(), nullptr);
    int32_t scalar = 1000 + i;
    std::memcpy(ring.host(block), &scalar, 4);
    CommandList list;
    ring.flush(list);
    list.commands.push_back({DispatchCmd{&program, block}, {{block, false}}, "p"});
    ring.retire(queue.submit_once(queue.encode(list, EncodeUse::Once)));
  }
  EXPECT_EQ(ran, 500);
}

TEST(CommandList, TextIsStable) {
  MemoryBlock a{0x1000, 256}, b{0x2000, 256};
  FakeSignal signal;
  FakeProgram program("add", 2, 0);
  CommandList list;
  list.slot_count = 2;
  list.commands.push_back({WaitCmd{&signal, 0}, {}, {}});
  list.commands.push_back({DispatchCmd{&program, {&b, 0, 16}, {4, 2, 1}},
                           {{{&b, 0, 16}, false}, {{&a, 64, 64}, true}},
                           "add"});
  list.commands.push_back({BarrierCmd{}, {}, {}});
  list.commands.push_back({DispatchCmd{&program, {&b, 16, 16}, {1, 1, 1}, {&b, 32, 12}}, {}, {}});
  list.commands.push_back({CopyCmd{{&a, 0, 32}, {&a, 64, 32}}, {}, "copy"});
  list.commands.push_back({TimestampCmd{1}, {}, {}});
  list.commands.push_back({HostCallCmd{}, {}, {}});
  list.commands.push_back({SignalCmd{&signal, 1}, {}, {}});
  EXPECT_EQ(to_text(list),
            "wait s0 >= slot0\n"
            "dispatch add args=b0[0..16) groups=4x2x1 \"add\" r:b0[0..16) w:b1[64..128)\n"
            "barrier\n"
            "dispatch add args=b0[16..32) groups=b0[32..44)\n"
            "copy b1[0..32) <- b1[64..96) \"copy\"\n"
            "timestamp 1\n"
            "host_call\n"
            "signal s0 = slot1\n");
}

}  // namespace
}  // namespace tuff::hcq
