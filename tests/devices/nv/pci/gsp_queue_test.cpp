// The host's end of the GSP's queues against the emulated GSP's: records byte by byte, all sizes,
// rings that wrap, a GSP that does not answer, and records that are damaged.
#include "devices/nv/pci/gsp_queue.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <cstring>
#include <random>

#include "base/error_of.h"
#include "emu/nv/pci/gsp_end.h"

namespace tuff::devices::nv {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr uint64_t kAddress = 0x1230000;
constexpr size_t kPage = GspQueues::kPageBytes;

struct Pair {
  explicit Pair(uint64_t timeout_ms = 1000)
      : queues(memory, kAddress, [this] { ++rings; on_ring(); }, timeout_ms) {
    gsp.start();
    queues.link();
  }
  ~Pair() {
    if (!expect_mistakes) {
      EXPECT_EQ(mistakes, std::vector<std::string>());
    }
  }
  std::byte* page(uint64_t address) {
    const uint64_t offset = address - kAddress;
    return offset < memory.size() ? memory.data() + offset : nullptr;
  }
  uint32_t word(size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }
  void put(size_t offset, uint32_t value) {
    std::memcpy(memory.data() + offset, &value, sizeof value);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(GspQueues::kBytes);
  std::vector<std::string> mistakes;
  bool expect_mistakes = false;
  int rings = 0;
  std::function<void()> on_ring = [] {};
  emu::nv::GspEnd gsp{[this](uint64_t address) { return page(address); }, kAddress,
                      [this](const std::string& why) { mistakes.push_back(why); }};
  GspQueues queues;
};

Bytes counting(size_t size_bytes, uint32_t first = 1) {
  Bytes bytes(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = uint8_t(first + i + i / 251);
  return bytes;
}

TEST(NvGspQueue, ARecordByteByByte) {
  Pair p;
  EXPECT_EQ(p.word(0), kAddress);
  EXPECT_EQ(p.word(8 * 128), kAddress + 128 * kPage);
  EXPECT_EQ(p.word(GspQueues::kCommands + 12), 63u);
  p.queues.send(76, Bytes{1, 2, 3, 4, 5});
  const size_t at = GspQueues::kCommands + kPage;
  const std::vector<uint32_t> wanted = {0, 1, 0, 3u << 24, 0x43505256, 37, 76, ~0u, ~0u, 0, 0,
                                        0x04030201, 5, 0};
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; ++i) sum ^= p.word(at + 4 * i);
  EXPECT_EQ(sum ^ 0x04030201 ^ 5, 0u) << "words of a record, its checksum among them";
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(p.word(at + 4 * i), 0u);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(p.word(at + 36 + 4 * i), wanted[i]) << i;
  EXPECT_EQ(p.word(GspQueues::kCommands + 16), 1u);
  EXPECT_EQ(p.rings, 1);
}

TEST(NvGspQueue, AllSizesAndRingsThatWrap) {
  Pair p;
  std::mt19937 random(1);
  std::vector<size_t> sizes = {0, 1, 7, 8, kPage - 80, kPage - 79, GspQueues::kMostPayload - 1,
                               GspQueues::kMostPayload, GspQueues::kMostPayload + 1,
                               2 * GspQueues::kMostPayload, 2 * GspQueues::kMostPayload + 9};
  for (int i = 0; i < 60; ++i) sizes.push_back(random() % 20000);
  uint32_t function = 100;
  for (const size_t size : sizes) {
    const Bytes sent = counting(size, function);
    p.gsp.whole_bytes = [&](const auto&) { return size; };
    p.queues.send(function, sent);
    const auto got = p.gsp.take();
    ASSERT_TRUE(got) << size;
    EXPECT_EQ(got->function, function);
    EXPECT_EQ(got->payload, sent) << size;
    ASSERT_TRUE(p.gsp.answer(function, 0, counting(size, function + 1)));
    const GspMessage answer = p.queues.wait_for(function, size, [](const GspMessage& m) {
      ADD_FAILURE() << "an event of function " << m.function;
    });
    EXPECT_EQ(answer.payload, counting(size, function + 1)) << size;
    ++function;
  }
  EXPECT_FALSE(p.gsp.take());
  EXPECT_FALSE(p.queues.receive());
}

TEST(NvGspQueue, EventsComeBetween) {
  Pair p;
  p.queues.send(76, counting(100));
  p.gsp.take();
  p.gsp.answer(0x1002, 0, counting(40));
  p.gsp.answer(76, 0x56, {});  // a refusal is shorter
  p.gsp.answer(0x1001, 0, {});
  std::vector<uint32_t> events;
  const GspMessage answer =
      p.queues.wait_for(76, 100, [&](const GspMessage& m) { events.push_back(m.function); });
  EXPECT_EQ(answer.result, 0x56u);
  EXPECT_EQ(events, std::vector<uint32_t>{0x1002});
  EXPECT_EQ(p.queues.receive()->function, 0x1001u);
}

// A command of more pages than the ring has goes through as the GSP takes its records.
TEST(NvGspQueue, ALongCommandWaitsForRoom) {
  Pair p;
  const Bytes sent = counting(6 * GspQueues::kMostPayload);
  p.gsp.whole_bytes = [&](const auto&) { return sent.size(); };
  Bytes got;
  p.on_ring = [&] {
    if (const auto command = p.gsp.take()) got = command->payload;
  };
  p.queues.send(9, sent);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(p.rings, 6);
}

TEST(NvGspQueue, RecordsThatDoNotBelongTogetherAreFound) {
  Pair p;
  p.expect_mistakes = true;
  p.queues.send(kContinuationRecord, {});
  EXPECT_FALSE(p.gsp.take());
  p.gsp.whole_bytes = [](const auto& first) { return first.payload.size() + 1; };
  p.queues.send(5, counting(4));
  EXPECT_FALSE(p.gsp.take());
  p.queues.send(6, counting(4));
  p.queues.send(kContinuationRecord, counting(1));
  EXPECT_EQ(p.gsp.take()->function, 6u);
  EXPECT_EQ(p.mistakes,
            (std::vector<std::string>{"a record continues nothing",
                                      "a command begins where records of another are missing"}));
}

TEST(NvGspQueue, AGspThatDoesNotAnswerIsLost) {
  Pair p(20);
  const auto fill = [&] {
    for (int i = 0; i < 64; ++i) p.queues.send(1, {});
  };
  EXPECT_EQ(error_of<DeviceLost>(fill), "NV: the GSP did not make room for a command within 20 ms");
  EXPECT_EQ(p.rings, 62) << "one page of 63 stays free";
  EXPECT_EQ(error_of<DeviceLost>([&] { p.queues.wait_for(1, 0, {}); }),
            "NV: the GSP did not answer within 20 ms");
  std::vector<std::byte> memory(GspQueues::kBytes);
  GspQueues alone(memory, kAddress, [] {}, 20);
  EXPECT_EQ(error_of<DeviceLost>([&] { alone.link(); }),
            "NV: the GSP did not set up its queue within 20 ms");
}

// ---- damage

TEST(NvGspQueue, AQueueOfAnotherLayoutIsRefused) {
  for (const size_t field : {0u, 4u, 8u, 12u, 20u, 24u, 28u}) {
    Pair p;
    p.put(GspQueues::kStatus + field, p.word(GspQueues::kStatus + field) + 16);
    EXPECT_THROW(p.queues.link(), DeviceLost) << field;
  }
}

TEST(NvGspQueue, EveryBitOfAnAnswerIsChecked) {
  const size_t at = GspQueues::kStatus + kPage;
  for (size_t bit = 0; bit < 8 * (80 + 16); ++bit) {
    Pair p;
    p.gsp.answer(5, 0, counting(16));
    p.put(at + bit / 32 * 4, p.word(at + bit / 32 * 4) ^ 1u << bit % 32);
    EXPECT_THROW(p.queues.receive(), DeviceLost) << bit;
  }
}

TEST(NvGspQueue, PagesBeyondTheRingAreRefused) {
  Pair p;
  p.put(GspQueues::kStatus + 16, 63);
  EXPECT_THROW(p.queues.receive(), DeviceLost);
  p.put(GspQueues::kStatus + 32, 64);
  EXPECT_THROW(p.queues.send(1, {}), DeviceLost);
}

TEST(NvGspQueue, ARecordThatIsMissingIsFound) {
  Pair p;
  p.gsp.answer(5, 0, {});
  p.gsp.answer(6, 0, {});
  // The second in the first one's place.
  std::memcpy(p.page(kAddress + GspQueues::kStatus + kPage),
              p.page(kAddress + GspQueues::kStatus + 2 * kPage), kPage);
  EXPECT_EQ(error_of<DeviceLost>([&] { p.queues.receive(); }),
            "NV: the GSP sent record 1 where 0 was to come");
}

// The emulated end refuses what the driver must not send.
TEST(NvGspQueue, EveryBitOfACommandIsChecked) {
  const size_t at = GspQueues::kCommands + kPage;
  for (size_t bit = 0; bit < 8 * (80 + 16); ++bit) {
    Pair p;
    p.expect_mistakes = true;
    p.queues.send(5, counting(16));
    p.put(at + bit / 32 * 4, p.word(at + bit / 32 * 4) ^ 1u << bit % 32);
    EXPECT_FALSE(p.gsp.take()) << bit;
    EXPECT_EQ(p.mistakes.size(), 1u) << bit;
  }
}

}  // namespace
}  // namespace tuff::devices::nv
