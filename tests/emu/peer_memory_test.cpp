// What several emulated GPUs do in one buffer: what nothing orders is found, what a semaphore, the
// host or an invalidation orders is not, and serial numbers that begin again change neither.
#include <gtest/gtest.h>

#include "emu/memory/peer_memory.h"

namespace tuff::emu {
namespace {

constexpr uint64_t kAddress = 0x10000, kPlace = 64;

class PeerMemoryTest : public testing::Test {
 protected:
  PeerMemoryTest() {
    buffer_ = std::make_shared<Buffer>();
    buffer_->size_bytes = kPageBytes;
    semaphore_ = std::make_shared<Buffer>();
    mapping_ = {.address = kAddress, .buffer = buffer_, .writable = true};
    memory_.share(buffer_);
  }
  struct Gpu {
    Peer peer;
    uint32_t serial = 0;
    Order order{};  // of its one queue
    Invalidation invalidated{};
  };
  // The next operation of a GPU's queue, in a slot of its own.
  Accessor begin(Gpu& gpu, const char* name) {
    Accessor who;
    who.op = op_id(++gpu.serial, 3);
    who.name = name;
    who.ended = gpu.order;
    who.vector = gpu.invalidated;
    return who;
  }
  std::optional<PeerConflict> use(Gpu& gpu, const Accessor& who, bool write, Path path = Path::L2,
                                  uint64_t at = kPlace, uint32_t bytes = 8) {
    return memory_.use(gpu.peer, who, mapping_, {kAddress + at, bytes, path, !write, write});
  }
  void release(Gpu& gpu, const Accessor& done, uint64_t value) {
    gpu.order.add(done.op);
    memory_.signalled(gpu.peer, gpu.order, semaphore_, 16, value);
  }
  void acquire(Gpu& gpu, uint64_t value) {
    memory_.learn(gpu.peer, gpu.order, *semaphore_, 16, value);
  }
  std::shared_ptr<Buffer> buffer_, semaphore_;
  Mapping mapping_;
  PeerMemory memory_{2};
  Gpu a_{{0, 0}}, b_{{1, 0}};
};

TEST_F(PeerMemoryTest, WhatNothingOrdersIsFoundInEitherOrder) {
  EXPECT_FALSE(use(a_, begin(a_, "a copy"), true));
  const auto read = use(b_, begin(b_, "a kernel"), false);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->conflict.kind, Conflict::Kind::Concurrent);
  EXPECT_TRUE(read->conflict.other_writes);
  EXPECT_EQ(read->other, "a copy of GPU 0");
  EXPECT_FALSE(use(b_, begin(b_, "b"), false, Path::L2, kPlace + 8)) << "the word beside it";
  EXPECT_FALSE(use(b_, begin(b_, "b"), false, Path::L2, 200, 4));
  const auto write = use(a_, begin(a_, "a copy"), true, Path::L2, 200, 4);
  ASSERT_TRUE(write);
  EXPECT_FALSE(write->conflict.other_writes);
  EXPECT_TRUE(use(b_, begin(b_, "b"), true, Path::L2, 202, 2)) << "a part of what was written";
}

TEST_F(PeerMemoryTest, ReadsOfBothAndOfTheSameGpuAreNoMatter) {
  EXPECT_FALSE(use(a_, begin(a_, "a"), false));
  EXPECT_FALSE(use(b_, begin(b_, "b"), false));
  EXPECT_FALSE(use(a_, begin(a_, "a"), true, Path::L2, 300));
  EXPECT_FALSE(use(a_, begin(a_, "a"), true, Path::L2, 300)) << "its own caches judge that";
}

TEST_F(PeerMemoryTest, ASemaphoreTellsWhatHadEndedThen) {
  const Accessor first = begin(a_, "first");
  EXPECT_FALSE(use(a_, first, true));
  release(a_, first, 1);
  const Accessor second = begin(a_, "second");
  EXPECT_FALSE(use(a_, second, true, Path::L2, 200));
  acquire(b_, 1);
  EXPECT_FALSE(use(b_, begin(b_, "b"), false));
  EXPECT_TRUE(use(b_, begin(b_, "b"), false, Path::L2, 200)) << "it goes on behind the semaphore";
  release(a_, second, 2);
  acquire(b_, 7);  // the host's: it may have seen all
  EXPECT_FALSE(use(b_, begin(b_, "b"), false, Path::L2, 200));
}

// Through a third semaphore: what b has learned of a it tells on.
TEST_F(PeerMemoryTest, WhatIsLearnedIsToldOn) {
  PeerMemory memory(3);
  memory.share(buffer_);
  Gpu c{{2, 0}};
  const Accessor done = begin(a_, "a");
  EXPECT_FALSE(memory.use(a_.peer, done, mapping_, {kAddress, 4, Path::L2, false, true}));
  a_.order.add(done.op);
  memory.signalled(a_.peer, a_.order, semaphore_, 0, 1);
  memory.learn(b_.peer, b_.order, *semaphore_, 0, 1);
  memory.signalled(b_.peer, b_.order, semaphore_, 8, 1);
  memory.learn(c.peer, c.order, *semaphore_, 8, 1);
  EXPECT_FALSE(memory.use(c.peer, begin(c, "c"), mapping_, {kAddress, 4, Path::L2, true, false}));
  Order back;
  memory.learn(a_.peer, back, *semaphore_, 8, 1);
  EXPECT_TRUE(back.knows(done.op));
}

TEST_F(PeerMemoryTest, ACacheThatWasNotInvalidatedSinceIsFound) {
  const Accessor first = begin(a_, "a");
  EXPECT_FALSE(use(a_, first, true));
  release(a_, first, 1);
  acquire(b_, 1);
  const auto stale = use(b_, begin(b_, "b"), false, Path::Vector);
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->conflict.kind, Conflict::Kind::Unseen);
  b_.invalidated = {b_.order, 5};
  EXPECT_FALSE(use(b_, begin(b_, "b"), false, Path::Vector));
}

TEST_F(PeerMemoryTest, SerialNumbersThatBeginAgainChangeNothing) {
  a_.serial = 1000;
  const Accessor old = begin(a_, "old");
  EXPECT_FALSE(use(a_, old, true));
  release(a_, old, 1);
  acquire(b_, 1);
  a_.peer.restarts = 1, a_.serial = 0;
  a_.order.restart();
  b_.peer.restarts = 3;
  b_.order.restart();
  EXPECT_FALSE(use(b_, begin(b_, "b"), false)) << "b still knows of it";
  EXPECT_FALSE(use(a_, begin(a_, "a"), true, Path::L2, 200));
  EXPECT_TRUE(use(b_, begin(b_, "b"), false, Path::L2, 200)) << "1 comes after 1,001 now";
}

TEST_F(PeerMemoryTest, BuffersThatOneGpuMapsOrThatAreGoneAreNotLookedAt) {
  const auto alone = std::make_shared<Buffer>();
  const Mapping mapping{.address = kAddress, .buffer = alone, .writable = true};
  const Request write{kAddress, 4, Path::L2, false, true};
  EXPECT_FALSE(memory_.use(a_.peer, begin(a_, "a"), mapping, write));
  EXPECT_FALSE(memory_.use(b_.peer, begin(b_, "b"), mapping, write));
  memory_.share(alone);
  EXPECT_FALSE(memory_.use(a_.peer, begin(a_, "a"), mapping, write)) << "from here on";
  EXPECT_TRUE(memory_.use(b_.peer, begin(b_, "b"), mapping, write));
}

}  // namespace
}  // namespace tuff::emu
