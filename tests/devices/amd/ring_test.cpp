#include "devices/amd/encode/ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/check.h"
#include "base/split_mix.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kMark = 0x5a000000;  // dwords that the GPU has read

// A queue with its memory, and a GPU that reads it only when told.
class FakeQueue {
 public:
  FakeQueue(QueueType type, uint32_t dwords, bool wrapped_pointer = false)
      : type_(type), wrapped_(wrapped_pointer), memory_(dwords), ring_(type, memory()) {}
  Ring& ring() { return ring_; }

  // Reads up to `limit` units of those that were announced.
  void read(size_t limit) {
    const uint64_t announced = pointer(doorbell_ + (type_ == QueueType::Aql && rung()));
    EXPECT_EQ(announced, pointer(write_));
    while (limit-- && read_at_ < announced) read_unit();
    const uint64_t at = wrapped_ ? read_at_ % memory_.size() : read_at_;
    read_ = type_ == QueueType::Sdma ? at * 4 : type_ == QueueType::Aql ? at / 16 : at;
  }
  std::deque<std::vector<uint32_t>> seen;

 private:
  bool rung() const { return write_ != 0; }
  uint64_t pointer(uint64_t value) const {
    return type_ == QueueType::Sdma ? value / 4 : type_ == QueueType::Aql ? value * 16 : value;
  }
  RingMemory memory() {
    return {memory_.data(), uint32_t(memory_.size()), &read_, &write_, &doorbell_};
  }
  uint32_t take() {
    uint32_t& dword = memory_[read_at_++ % memory_.size()];
    const uint32_t value = dword;
    EXPECT_NE(value >> 24, kMark >> 24) << "read twice, or before it was written";
    dword = kMark;
    return value;
  }
  // Units of this test say their size in their second byte; fillers are the queue's own.
  void read_unit() {
    const uint64_t begin = read_at_ % memory_.size();
    const uint32_t head = take();
    if (type_ == QueueType::Sdma && head == 0) return;
    if (type_ == QueueType::Pm4 && head >> 30 == 3) {
      EXPECT_EQ(head & 0xff00, 0x1000u);
      const uint32_t count = head >> 16 & 0x3fff;
      for (uint32_t i = 0; count != 0x3fff && i <= count; ++i) EXPECT_EQ(take(), 0u);
      return;
    }
    std::vector<uint32_t> unit{head};
    const uint32_t size = head >> 8 & 0xff;
    EXPECT_LE(begin + size, memory_.size()) << "straddles the end";
    for (uint32_t i = 1; i < size; ++i) unit.push_back(take());
    seen.push_back(unit);
  }

  QueueType type_;
  bool wrapped_;
  std::vector<uint32_t> memory_;
  uint64_t read_ = 0, write_ = 0, doorbell_ = 0, read_at_ = 0;
  Ring ring_;
};

PacketStream random_stream(SplitMix64& random, QueueType type, uint32_t max_unit,
                           uint32_t& serial) {
  PacketStream s;
  for (uint32_t n = 1 + random.below(6u); n > 0; --n) {
    const uint32_t size = type == QueueType::Aql ? 16 : 2 + random.below(max_unit - 1);
    s.units.push_back(uint32_t(s.dwords.size()));
    s.dwords.push_back(size << 8 | 2);
    for (uint32_t i = 1; i < size; ++i) s.dwords.push_back(serial++ & 0xffffff);
  }
  return s;
}

void expect_seen(FakeQueue& queue, std::deque<std::vector<uint32_t>>& sent) {
  for (; !queue.seen.empty(); queue.seen.pop_front(), sent.pop_front()) {
    ASSERT_FALSE(sent.empty());
    ASSERT_EQ(queue.seen.front(), sent.front());
  }
}

void run(QueueType type, bool wrapped_pointer, uint64_t seed) {
  SplitMix64 random(seed);
  FakeQueue queue(type, 64, wrapped_pointer);
  std::deque<std::vector<uint32_t>> sent;
  uint32_t serial = 1;
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const PacketStream s = random_stream(random, type, 20, serial);
    for (size_t at = 0; at < s.units.size();) {
      const size_t next = queue.ring().push(s, s.dwords, at);
      for (; at < next; ++at) {
        const size_t end = at + 1 < s.units.size() ? s.units[at + 1] : s.dwords.size();
        sent.emplace_back(s.dwords.begin() + s.units[at], s.dwords.begin() + end);
      }
      queue.ring().commit();
      refused += at < s.units.size();
      queue.read(at < s.units.size() ? 1 + random.below(4u) : random.below(4u));
      expect_seen(queue, sent);
      if (testing::Test::HasFailure()) return;
    }
  }
  queue.read(1000);
  expect_seen(queue, sent);
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(queue.ring().drained());
  EXPECT_GT(refused, 100);  // the ring was full often enough to be a test
}

TEST(AmdRing, NothingUnreadIsOverwritten) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    run(QueueType::Pm4, false, seed);
    run(QueueType::Pm4, true, seed);
    run(QueueType::Sdma, false, seed);
    run(QueueType::Aql, false, seed);
  }
}

TEST(AmdRing, AqlRingsTheLastPacketsIndexAndStartsInvalid) {
  std::vector<uint32_t> memory(64);
  uint64_t read = 0, write = 0, doorbell = ~0ull;
  Ring ring(QueueType::Aql, {memory.data(), 64, &read, &write, &doorbell});
  for (int packet = 0; packet < 4; ++packet) EXPECT_EQ(memory[packet * 16], 1u);
  PacketStream s;
  s.dwords.assign(32, 7);
  s.units = {0, 16};
  EXPECT_EQ(ring.push(s, s.dwords), 2u);
  EXPECT_EQ(doorbell, ~0ull);  // nothing is announced yet
  ring.commit();
  EXPECT_EQ(write, 2u);
  EXPECT_EQ(doorbell, 1u);
}

// A launch of no workgroups is no packet of its own.
TEST(AmdRing, UnitsWithAZeroWhereItsGuardIsAreLeftOut) {
  FakeQueue queue(QueueType::Aql, 256);
  PacketStream stream;
  PacketWriter w(stream);
  for (uint32_t unit = 0; unit < 4; ++unit) {
    w.unit();
    w.dword(2 | 16 << 8);
    if (unit == 1) w.leave_unit_out_if_zero();
    w.dword(unit + 1);
    if (unit != 0) w.leave_unit_out_if_zero();
    w.dword(unit + 1);
    for (int i = 3; i < 16; ++i) w.dword(0);
  }
  EXPECT_EQ(stream.guards.size(), 4u);
  const auto pushed = [&](std::vector<uint32_t> dwords, size_t first) {
    EXPECT_EQ(queue.ring().push(stream, dwords, first), 4u);
    queue.ring().commit();
    queue.read(4);
    std::vector<uint32_t> units;
    for (const auto& unit : queue.seen) units.push_back(unit[1]);
    queue.seen.clear();
    return units;
  };
  std::vector<uint32_t> dwords = stream.dwords;
  EXPECT_EQ(pushed(dwords, 0), (std::vector<uint32_t>{1, 2, 3, 4}));
  dwords[2] = dwords[16 + 2] = 0;  // of unit 0 nothing is left out
  EXPECT_EQ(pushed(dwords, 0), (std::vector<uint32_t>{1, 3, 4}));
  dwords[3 * 16 + 2] = 0;
  EXPECT_EQ(pushed(dwords, 2), (std::vector<uint32_t>{3}));
  EXPECT_EQ(pushed(dwords, 3), (std::vector<uint32_t>{}));
}

TEST(AmdRing, CommitWithoutPushRingsNothing) {
  std::vector<uint32_t> memory(64);
  uint64_t read = 0, write = 0, doorbell = 77;
  Ring ring(QueueType::Sdma, {memory.data(), 64, &read, &write, &doorbell});
  ring.commit();
  EXPECT_EQ(doorbell, 77u);
}

TEST(AmdRing, RefusesAPacketThatNeverFits) {
  std::vector<uint32_t> memory(64);
  uint64_t read = 0, write = 0, doorbell = 0;
  Ring ring(QueueType::Pm4, {memory.data(), 64, &read, &write, &doorbell});
  PacketStream s;
  s.dwords.assign(33, 0);
  s.units = {0};
  EXPECT_THROW(ring.push(s, s.dwords), InvalidArgument);
}

}  // namespace
}  // namespace tuff::devices::amd
