// Allocator against a model: no overlap, alignment, deferred frees, statistics, exhaustion.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>

#include "fake_device.h"
#include "hcq/memory.h"
#include "hcq/tlsf.h"

namespace tuff::hcq {
namespace {

TEST(Tlsf, RandomRangesNeverOverlapAndJoinAgain) {
  std::mt19937 rng(7);
  constexpr size_t kSize = 4u << 20;
  Tlsf tlsf(kSize);
  std::map<size_t, size_t> live;  // offset -> size
  for (int step = 0; step < 40'000; ++step) {
    if (rng() % 5 < 3) {
      size_t size = size_t{1} << (rng() % 18);
      size = size + rng() % size;
      size_t alignment = size_t{256} << (rng() % 6);
      auto offset = tlsf.allocate(size, alignment);
      if (!offset) continue;
      ASSERT_EQ(*offset % alignment, 0u);
      ASSERT_LE(*offset + size, kSize);
      auto after = live.lower_bound(*offset);
      if (after != live.end()) {
        ASSERT_LE(*offset + size, after->first);
      }
      if (after != live.begin()) {
        ASSERT_LE(std::prev(after)->first + std::prev(after)->second, *offset);
      }
      live[*offset] = size;
    } else if (!live.empty()) {
      auto it = std::next(live.begin(), static_cast<long>(rng() % live.size()));
      tlsf.free(it->first);
      live.erase(it);
    }
  }
  for (auto& [offset, size] : live) tlsf.free(offset);
  EXPECT_EQ(tlsf.used_bytes(), 0u);
  EXPECT_EQ(tlsf.allocate(kSize, 256), std::optional<size_t>(0));  // one whole range again
}

TEST(Tlsf, DoubleFreeIsFound) {
  Tlsf tlsf(1 << 20);
  size_t a = *tlsf.allocate(1000, 256);
  tlsf.free(a);
  EXPECT_THROW(tlsf.free(a), InternalError);
}

// A model of what the device may still touch: a range freed with a timeline value must not be
// handed out before the queue has passed it.
TEST(Allocator, RandomWithDeferredFreesHasNoOverlap) {
  FakeDevice device({.manual = true});
  auto& queue = device.compute_queue();
  CommandList empty;
  std::mt19937 rng(11);
  struct Held {
    Span span;
    uint64_t until;
  };  // until: timeline value, UINT64_MAX while live
  std::vector<Held> held;
  for (int step = 0; step < 6'000; ++step) {
    std::erase_if(held, [&](const Held& h) { return h.until <= queue.timeline().value(); });
    uint32_t action = rng() % 8;
    if (action < 4) {
      size_t size = rng() % 40 == 0 ? (9u << 20) + rng() % (8u << 20) : 1 + rng() % 300'000;
      size_t alignment = size_t{256} << (rng() % 5);
      auto kind = static_cast<MemoryKind>(rng() % kMemoryKindCount);
      Span s = device.allocator().allocate(size, kind, alignment);
      ASSERT_EQ(s.address() % alignment, 0u);
      ASSERT_EQ(s.size_bytes, size);
      ASSERT_EQ(s.block->kind, kind);
      ASSERT_LE(s.offset + size, s.block->size_bytes);
      for (const Held& h : held)
        ASSERT_TRUE(s.address() >= h.span.address() + h.span.size_bytes ||
                    h.span.address() >= s.address() + size)
            << "step " << step;
      held.push_back({s, UINT64_MAX});
    } else if (action < 6) {
      std::vector<size_t> live;
      for (size_t i = 0; i < held.size(); ++i)
        if (held[i].until == UINT64_MAX) live.push_back(i);
      if (live.empty()) continue;
      size_t i = live[rng() % live.size()];
      if (rng() % 3 == 0) {
        device.allocator().free(held[i].span);
        held.erase(held.begin() + static_cast<long>(i));
      } else {
        held[i].until = queue.submit_once(queue.encode(empty, EncodeUse::Once));
        device.allocator().free(held[i].span, {&queue, held[i].until});
      }
    } else if (action == 6) {
      queue.step();
    } else if (rng() % 50 == 0) {
      device.allocator().trim();
    }
  }
}

TEST(Allocator, StatisticsFollowAllocateAndFree) {
  FakeDevice device;
  Span a = device.allocator().allocate(1000, MemoryKind::Device);
  Span b = device.allocator().allocate(20 << 20, MemoryKind::Device);
  MemoryStats s = device.allocator().stats();
  EXPECT_EQ(s.live_bytes, 1024u + (20u << 20));
  EXPECT_EQ(s.block_count, 2u);
  EXPECT_EQ(s.mapped_bytes, (16u << 20) + (20u << 20) + 0u);
  EXPECT_EQ(s.cached_bytes, s.mapped_bytes - s.live_bytes);
  device.allocator().free(a);
  device.allocator().free(b);
  s = device.allocator().stats();
  EXPECT_EQ(s.live_bytes, 0u);
  EXPECT_EQ(s.peak_live_bytes, 1024u + (20u << 20));
  device.allocator().trim();
  EXPECT_EQ(device.allocator().stats().mapped_bytes, 0u);
}

TEST(Allocator, LargeSpansAreReusedWithoutMapping) {
  FakeDevice device;
  Span a = device.allocator().allocate(20 << 20, MemoryKind::Device);
  device.allocator().free(a);
  Span b = device.allocator().allocate(19 << 20, MemoryKind::Device);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(device.map_calls, 1);
  device.allocator().free(b);
}

ForeignMemory over(void* data, size_t size_bytes, std::function<void()> release) {
  return {.block = host_block(data, size_bytes), .release = std::move(release)};
}

TEST(Allocator, AdoptedMemoryGoesBackOnceNothingTouchesIt) {
  FakeDevice device({.manual = true});
  Allocator& a = device.allocator();
  auto& queue = device.compute_queue();
  int returned = 0;
  auto memory = std::make_unique<std::array<std::byte, 100>>();
  const auto give_back = [&] {
    memory.reset();
    returned++;
  };
  const Span s = a.adopt(over(memory->data(), 100, give_back), 100);
  EXPECT_EQ(s.host(), memory->data());
  EXPECT_EQ(s.address(), reinterpret_cast<uint64_t>(memory->data()));
  EXPECT_EQ(a.stats().live_bytes, 0u) << "it is not the device's";
  const uint64_t value = queue.submit_once(queue.encode({}, EncodeUse::Once));
  a.free(s, {&queue, value});
  a.collect();
  EXPECT_EQ(a.stats().cached_bytes, 0u);
  EXPECT_EQ(returned, 0) << "in flight";
  queue.step();
  a.collect();
  a.collect();
  EXPECT_EQ(returned, 1);

  // Without work in flight at once; by the next allocation; with the device.
  a.free(a.adopt(over(&returned, 4, [&] { returned++; }), 4));
  EXPECT_EQ(returned, 2);
  const uint64_t later = queue.submit_once(queue.encode({}, EncodeUse::Once));
  a.free(a.adopt(over(&returned, 4, [&] { returned++; }), 4), {&queue, later});
  queue.step();
  EXPECT_EQ(returned, 2);
  a.free(a.allocate(10, MemoryKind::Device));
  EXPECT_EQ(returned, 3);
}

// A part of a foreign block: what the device made of it ends before its owner hears of it, and the
// owner may destroy the memory then.
TEST(Allocator, AdoptedBlocksEndBeforeTheirOwnersHear) {
  FakeDevice device({.manual = true});
  Queue& queue = device.compute_queue();
  Allocator& a = device.allocator();
  auto memory = std::make_unique<std::vector<std::byte>>(1024);
  const MemoryBlock block{.address = reinterpret_cast<uint64_t>(memory->data()),
                          .size_bytes = 1024,
                          .host = memory->data(),
                          .native = 77};
  int ended = 0, told = 0;
  const auto release = [&] {
    EXPECT_EQ(ended++, told);
    told++;
    memory.reset();
  };
  Span s = a.adopt({block, 256, release}, 100);
  EXPECT_EQ(s.address(), block.address + 256);
  EXPECT_EQ(s.host(), block.host + 256);
  EXPECT_EQ(s.size_bytes, 100u);
  ASSERT_TRUE(a.block_with(77));
  EXPECT_EQ(a.block_with(77)->address, block.address);
  EXPECT_FALSE(a.block_with(78));
  EXPECT_EQ(a.stats().live_bytes, 0u);  // it is not the device's
  std::memset(s.host(), 1, s.size_bytes);
  const uint64_t last = queue.submit_once(queue.encode({}, EncodeUse::Once));
  a.free(s, {&queue, last});
  a.collect();
  EXPECT_EQ(told, 0);
  std::memset(block.host + 256, 2, 100);  // the device's last use
  static_cast<FakeQueue&>(queue).step();
  a.collect();
  a.collect();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(a.block_with(77));
  EXPECT_THROW(a.adopt({block, 1000}, 100), InternalError);
}

TEST(Allocator, OwnersMayLetGoOfMoreAndMayFail) {
  int returned = 0;
  {
    FakeDevice device({.manual = true});
    Allocator& a = device.allocator();
    auto& queue = device.compute_queue();
    const Span inner = a.adopt(over(&returned, 4, [&] { returned++; }), 4);
    const auto refuse = [&] {
      a.free(inner);
      throw InvalidArgument("refused");
    };
    a.free(a.adopt(over(&returned, 4, refuse), 4));
    EXPECT_EQ(returned, 1);
    const uint64_t value = queue.submit_once(queue.encode({}, EncodeUse::Once));
    a.free(a.adopt(over(&returned, 4, [&] { returned++; }), 4), {&queue, value});
    EXPECT_EQ(returned, 1);
  }
  EXPECT_EQ(returned, 2) << "what is in flight goes back with the device";
}

TEST(Allocator, ExhaustionDropsTheCacheAndRetries) {
  FakeDevice device({.limit_bytes = 64u << 20});
  Span a = device.allocator().allocate(40 << 20, MemoryKind::Device);
  device.allocator().free(a);  // cached: 40 MiB
  Span b = device.allocator().allocate(60 << 20, MemoryKind::Device);
  EXPECT_EQ(device.mapped, 60u << 20);
  device.allocator().free(b);
}

TEST(Allocator, ExhaustionWaitsForDeferredFrees) {
  FakeDevice device({.manual = true, .run_on_wait = true, .limit_bytes = 64u << 20});
  auto& queue = device.compute_queue();
  Span a = device.allocator().allocate(60 << 20, MemoryKind::Device);
  uint64_t value = queue.submit_once(queue.encode({}, EncodeUse::Once));
  device.allocator().free(a, {&queue, value});
  Span b = device.allocator().allocate(60 << 20, MemoryKind::Device);
  EXPECT_TRUE(queue.passed(value));
  device.allocator().free(b);
}

TEST(Allocator, ExhaustionNamesTheNumbers) {
  FakeDevice device({.limit_bytes = 64u << 20});
  Span a = device.allocator().allocate(40 << 20, MemoryKind::Device);
  try {
    device.allocator().allocate(50 << 20, MemoryKind::Device);
    FAIL() << "must throw";
  } catch (const OutOfMemory& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("request 52428800 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("live 41943040"), std::string::npos) << text;
    EXPECT_NE(text.find("mapped 41943040"), std::string::npos) << text;
    EXPECT_NE(text.find("held by 1 x 41943040 bytes (Device)"), std::string::npos) << text;
  }
  device.allocator().free(a);
  device.allocator().free(
      device.allocator().allocate(50 << 20, MemoryKind::Device));  // still usable
}

}  // namespace
}  // namespace tuff::hcq
