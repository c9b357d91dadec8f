// No two live buffers overlap, over thousands of random lifetimes, and packing is worth it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sched/memory_plan.h"

namespace tuff::sched {
namespace {

TEST(MemoryPlan, LiveBuffersNeverOverlap) {
  std::mt19937 rng(7);
  uint64_t packed = 0, sum = 0, floor = 0;
  for (int round = 0; round < 2000; round++) {
    std::vector<Lifetime> l(1 + rng() % 40);
    const uint32_t length = 1 + rng() % 60;
    std::vector<uint64_t> live(length, 0);
    for (Lifetime& x : l) {
      x.first = rng() % length;
      x.last = std::min<uint32_t>(length - 1, x.first + rng() % 8);
      x.size_bytes = 1 + rng() % (rng() % 4 ? 5000 : 100);
      const uint64_t size = (x.size_bytes + 255) / 256 * 256;
      for (uint32_t p = x.first; p <= x.last; p++) live[p] += size;
      sum += size;
    }
    const Packing p = pack(l);
    for (size_t i = 0; i < l.size(); i++) {
      ASSERT_EQ(p.offsets[i] % kArenaAlignment, 0u);
      ASSERT_LE(p.offsets[i] + l[i].size_bytes, p.size_bytes);
      for (size_t k = 0; k < i; k++) {
        if (l[i].last < l[k].first || l[k].last < l[i].first) continue;
        ASSERT_TRUE(p.offsets[i] + l[i].size_bytes <= p.offsets[k] ||
                    p.offsets[k] + l[k].size_bytes <= p.offsets[i]);
      }
    }
    packed += p.size_bytes;
    floor += *std::max_element(live.begin(), live.end());
  }
  EXPECT_LT(packed, sum);
  EXPECT_LT(double(packed), 1.15 * double(floor));  // of what any packing needs
  RecordProperty("arena_bytes_per_mille_of_sum", int(1000 * packed / sum));
}

TEST(MemoryPlan, DisjointLifetimesShareOnePlace) {
  const Lifetime l[] = {{0, 1, 1000}, {2, 3, 1000}, {4, 5, 900}};
  const Packing p = pack(l);
  EXPECT_EQ(p.size_bytes, 1024u);
}

}  // namespace
}  // namespace tuff::sched
