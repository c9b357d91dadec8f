// Runs of lanes, and the checks that take them: what they say of a run is what they say of its
// bytes, one by one.
#include "emu/memory/lane_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/split_mix.h"
#include "emu/memory/caches.h"
#include "emu/memory/global_races.h"

namespace tuff::emu {
namespace {

constexpr uint64_t kBase = 0x300000000;

std::vector<LaneRun> runs_of(const Addresses& at, uint32_t lanes, uint32_t bytes) {
  std::vector<LaneRun> out;
  for (LaneRuns runs(at, lanes, bytes); !runs.done();) out.push_back(runs.next());
  return out;
}

template <class F>
Addresses addresses(F f) {
  Addresses out;
  for (uint32_t k = 0; k < kMostLanes; ++k) out[k] = uint64_t(f(k));
  return out;
}

void expect_one_run(const Addresses& at, uint32_t bytes, uint64_t begin, uint32_t run_bytes) {
  const auto runs = runs_of(at, ~0u, bytes);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].begin, begin);
  EXPECT_EQ(runs[0].bytes, run_bytes);
  EXPECT_EQ(runs[0].lanes, ~0u);
}

TEST(LaneRuns, NeighboursBroadcastsAndDescendingLanesAreOneRun) {
  expect_one_run(addresses([](uint32_t k) { return kBase + 4 * k; }), 4, kBase, 128);
  expect_one_run(addresses([](uint32_t k) { return kBase + 16 * k; }), 16, kBase, 512);
  expect_one_run(addresses([](uint32_t) { return kBase; }), 8, kBase, 8);
  expect_one_run(addresses([](uint32_t k) { return kBase + 4 * (31 - k); }), 4, kBase, 128);
  expect_one_run(addresses([](uint32_t k) { return kBase + k; }), 4, kBase, 35);
  expect_one_run(addresses([](uint32_t k) { return kBase + 4 * (k ^ 1); }), 8, kBase, 132);
}

TEST(LaneRuns, AGapOrALaneThatIsOffEndsARun) {
  const Addresses at = addresses([](uint32_t k) { return kBase + 4 * k; });
  const auto runs = runs_of(at, ~(1u << 5), 4);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].bytes, 20u);
  EXPECT_EQ(runs[1].begin, kBase + 24);
  EXPECT_EQ(runs[1].lanes, ~0u << 6);
  EXPECT_EQ(runs_of(addresses([](uint32_t k) { return kBase + 8 * k; }), ~0u, 4).size(), 32u);
  EXPECT_TRUE(runs_of(at, 0, 4).empty());
}

// Every lane is in one run; a run's bytes are those of its lanes, and none is missing between.
TEST(LaneRuns, RunsHoldTheBytesOfTheirLanes) {
  SplitMix64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t bytes = 1u << random.below(5u), spread = 1u << random.below(7u);
    const uint64_t base = round % 10 == 0 ? ~uint64_t(40) : kBase;  // addresses that wrap
    const Addresses at = addresses([&](uint32_t) { return base + random.below(spread); });
    const uint32_t lanes = uint32_t(random.next() | random.next());
    uint32_t seen = 0;
    for (const LaneRun& run : runs_of(at, lanes, bytes)) {
      EXPECT_EQ(seen & run.lanes, 0u);
      EXPECT_TRUE(seen == 0 || int(std::bit_width(seen)) <= std::countr_zero(run.lanes));
      seen |= run.lanes;
      std::set<uint64_t> touched;
      for_each_lane(run.lanes, [&](uint32_t lane) {
        for (uint32_t k = 0; k < bytes; ++k) touched.insert(at[lane] + k - run.begin);
      });
      ASSERT_EQ(touched.size(), run.bytes);
      EXPECT_EQ(*touched.rbegin(), run.bytes - 1);
    }
    ASSERT_EQ(seen, lanes);
  }
}

// ---- races between workgroups: by runs as by single bytes

Access random_access(SplitMix64& random) {
  Access a;
  a.workgroup = random.below(4u);
  a.kind = AccessKind(random.below(3u));
  if (a.kind == AccessKind::Atomic) {
    a.bytes = 4;
    a.address = kBase + 4 * random.below(64u);
    return a;
  }
  a.device_scope = a.kind == AccessKind::Load && random.below(8u) == 0;
  const uint32_t grain = random.below(5u) ? 4 : 1;
  a.address =
      kBase + (random.below(3u) ? 64 * random.below(4u) : grain * random.below(256u / grain));
  a.bytes = random.below(3u) ? 64 * (1 + random.below(3u)) : grain * (1 + random.below(40u));
  return a;
}

bool touch_bytes(GlobalRaces& races, const Access& access, bool acquires, uint32_t since) {
  if (access.kind == AccessKind::Atomic) return races.touch(access, acquires, since).has_value();
  bool found = false;
  for (uint32_t k = 0; k < access.bytes; ++k) {
    Access one = access;
    one.address += k;
    one.bytes = 1;
    found |= races.touch(one, false, 0).has_value();
  }
  return found;
}

TEST(GlobalRaces, SayOfARunWhatTheySayOfItsBytes) {
  int found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    GlobalRaces by_runs, by_bytes;
    for (int step = 0; step < 60; ++step) {
      if (random.below(4u) == 0) {
        const uint32_t workgroup = random.below(4u);
        by_runs.advance(workgroup);
        by_bytes.advance(workgroup);
      }
      const Access access = random_access(random);
      const bool acquires = random.below(2u) == 0;
      const uint32_t since = random.below(3u) ? 0 : by_runs.time(access.workgroup);
      const bool expected = touch_bytes(by_bytes, access, acquires, since);
      if (access.kind != AccessKind::Atomic) {
        const bool noted = by_runs.note(access);
        ASSERT_EQ(noted, !expected) << "seed " << seed << " step " << step;
        if (noted) continue;
      }
      ASSERT_EQ(by_runs.touch(access, acquires, since).has_value(), expected)
          << "seed " << seed << " step " << step;
      found += expected;
    }
  }
  EXPECT_GT(found, 1000);
}

// ---- caches: by runs, and lane by lane where those are refused

struct CachesUnderTest {
  explicit CachesUnderTest(bool cached) : memory(2 * kPageBytes), caches(0, space) {
    auto buffer = std::make_shared<Buffer>();
    buffer->size_bytes = memory.size();
    buffer->memory = memory.data();
    space.map({kBase, buffer, true, false, cached});
  }
  std::vector<std::byte> memory;
  AddressSpace space;
  Caches caches;
};

// Operations of two queues of which one has seen some of the other's. Where all lanes take whole
// words the other caches are asked by bytes, which they do not remember as done with. A word knows
// one writer alone, so partial words are asked by lanes there too.
class CachesByRuns {
 public:
  CachesByRuns(uint64_t seed, bool cached)
      : random_(seed), words_(seed % 2 == 0), by_runs_(cached), by_bytes_(cached) {
    new_operation(0);
    new_operation(1);
  }

  int run(int steps) {
    for (int k = 0; k < steps && !::testing::Test::HasFatalFailure(); ++k) step();
    return found_;
  }

 private:
  void new_operation(uint32_t queue) {
    Accessor& who = who_[queue];
    who.op = op_id(++now_, 1 + queue);
    if (random_.below(2u)) who.ended.add(op_id(now_ - 1, 1 + queue));
    if (random_.below(3u) == 0) who.ended.add(who_[1 - queue].op);
    for (Invalidation* one : {&who.vector, &who.scalar}) {
      if (random_.below(2u)) *one = {who.ended, now_};
    }
  }

  void between() {
    switch (random_.below(12u)) {
      case 0: return new_operation(random_.below(2u));
      case 1:
        for (auto* t : {&by_runs_, &by_bytes_}) t->caches.write_back();
        return;
      case 2:
        for (auto* t : {&by_runs_, &by_bytes_}) t->caches.invalidate();
        return;
      case 3: {
        const size_t at = random_.below(256u);
        for (auto* t : {&by_runs_, &by_bytes_}) t->memory[at] ^= std::byte(1);
        return;
      }
      default: return;
    }
  }

  bool oracle_conflicts(const Accessor& who, Request request) {
    bool found = false;
    const uint64_t end = request.address + request.bytes;
    if (words_) request.bytes = 1;
    for (; request.address < end; request.address += request.bytes) {
      Conflict conflict;
      uint8_t* bytes = by_bytes_.caches.reach(who, request, conflict);
      if (request.write) std::fill_n(bytes, request.bytes, uint8_t(now_));
      found |= conflict.kind != Conflict::Kind::None;
    }
    return found;
  }

  bool lane_conflicts(const Accessor& who, const Request& request) {
    Conflict conflict;
    uint8_t* bytes = by_runs_.caches.reach(who, request, conflict);
    if (request.write) std::fill_n(bytes, request.bytes, uint8_t(now_));
    return conflict.kind != Conflict::Kind::None;
  }

  void step() {
    between();
    by_runs_.caches.begin(++now_);
    by_bytes_.caches.begin(now_);
    const Accessor& who = who_[random_.below(2u)];
    const bool write = random_.below(3u) == 0;
    const uint32_t lane_bytes = (words_ ? 4u : 1u) << random_.below(3u),
                   lanes = 1 + random_.below(20u);
    const Path path = write ? Path::L2 : Path(random_.below(3u));
    const uint64_t begin = kBase + lane_bytes * random_.below(256u / lane_bytes);
    std::vector<bool> expected(lanes), found(lanes);
    for (uint32_t k = 0; k < lanes; ++k) {
      expected[k] =
          oracle_conflicts(who, {begin + k * lane_bytes, lane_bytes, path, !write, write});
    }
    const Request run{begin, lanes * lane_bytes, path, !write, write};
    if (uint8_t* bytes = by_runs_.caches.reach_if_clean(who, run)) {
      if (write) std::fill_n(bytes, run.bytes, uint8_t(now_));
    } else {
      for (uint32_t k = 0; k < lanes; ++k) {
        found[k] = lane_conflicts(who, {begin + k * lane_bytes, lane_bytes, path, !write, write});
      }
    }
    ASSERT_EQ(found, expected) << "step at " << now_ << ", path " << int(path) << ", "
                               << (write ? "write" : "read");
    found_ += int(std::ranges::count(found, true));
  }

  SplitMix64 random_;
  const bool words_;
  CachesUnderTest by_runs_, by_bytes_;
  Accessor who_[2];
  uint32_t now_ = 1;
  int found_ = 0;
};

TEST(CachesByRuns, SayOfARunWhatTheySayOfItsLanes) {
  for (const bool cached : {true, false}) {
    int found = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << (cached ? ", cached" : ", uncached"));
      found += CachesByRuns(seed, cached).run(80);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(found, 1000);
  }
}

}  // namespace
}  // namespace tuff::emu
