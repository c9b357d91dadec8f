// The random-order device: what may happen in any order does, what is ordered does not.
#include "devices/shuffle/shuffled.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/check.h"
#include "base/env.h"
#include "devices/cpu/compiled.h"
#include "devices/null/null.h"
#include "hcq/args.h"
#include "hcq/graph.h"

namespace tuff::devices {
namespace {

using namespace hcq;

TEST(Shuffle, IsListedAndNeverTheDefault) {
  const std::vector<Candidate> found = shuffle_probe();
  ASSERT_EQ(found.size(), 2u);
  for (const Candidate& c : found) {
    EXPECT_TRUE(c.usable);
    EXPECT_EQ(c.rank, 0);
    EXPECT_EQ(c.info.name, c.name);
    EXPECT_NE(c.info.description.find("random"), std::string::npos);
  }
  EXPECT_EQ(shuffle_open("")->name(), "SHUFFLE");
  EXPECT_EQ(shuffle_open("visible")->name(), "SHUFFLE:visible");
  EXPECT_THROW(shuffle_open("7"), InvalidArgument);
  EnvOverride none(Env::TUFF_CC, "no-such-compiler");
  EXPECT_FALSE(shuffle_probe()[0].usable);
  EXPECT_NE(shuffle_probe()[0].reason.find("install clang"), std::string::npos);
}

TEST(Shuffle, NothingRunsBeforeTheHostWaits) {
  Shuffled d(ShuffleOptions{.seed = 1, .polls_run = false});
  const Span a = d.upload(Words(100, 0));
  const Command c = d.fill(a, 7);
  const uint64_t before = d.stats().steps;
  const uint64_t value = d.submit({c});
  EXPECT_LT(d.device->compute_queue().timeline().value(), value);
  EXPECT_EQ(d.stats().steps, before);
  d.device->compute_queue().wait(value);
  EXPECT_EQ(d.stats().steps, before + 100);
  EXPECT_EQ(d.read(a), Words(100, 7));
}

TEST(Shuffle, EveryGroupRunsOnceAlsoWhereTheLaunchIsReadFromMemory) {
  constexpr uint32_t nx = 13, ny = 7, nz = 5;
  Shuffled d(3);
  const Span out = d.upload(Words(nx * ny * nz, 0)), groups = d.upload({nx, ny, nz});
  Command direct = d.dispatch(2, {out}, {nx, ny}, {nx, ny, nz}), indirect = direct;
  std::get<DispatchCmd>(indirect.body).indirect = groups;
  std::get<DispatchCmd>(indirect.body).groups = {1, 1, 1};
  d.run({direct, barrier(), indirect});
  const Words got = d.read(out);
  for (uint32_t z = 0, i = 0; z < nz; z++)
    for (uint32_t y = 0; y < ny; y++)
      for (uint32_t x = 0; x < nx; x++, i++)
        ASSERT_EQ(got[i], 2 * (1 + x + 100 * y + 10000 * z)) << i;
}

TEST(Shuffle, CopiesOfEverySizeArriveWhole) {
  Shuffled d(4);
  for (size_t count : {1u, 63u, 64u, 65u, 1000u, 5001u, 300'000u}) {
    Words values(count);
    for (size_t i = 0; i < count; i++) values[i] = uint32_t(i * 2654435761u);
    const Span a = d.upload(values), b = d.words(count);
    d.run({copy(b, a)});
    EXPECT_EQ(d.read(b), values);
  }
}

// How often the reader came after the writer, before it, and in between.
struct Orders {
  int after = 0, before = 0, between = 0;
  void count(const Words& got) {
    const auto old = std::count(got.begin(), got.end(), 1u);
    after += old == 0;
    before += old == std::ptrdiff_t(got.size());
    between += old > 0 && old < std::ptrdiff_t(got.size());
  }
};

TEST(Shuffle, AMissingBarrierShows) {
  Orders bare, ordered;
  Shuffled d(0);
  for (uint64_t seed = 0; seed < 200; seed++) {
    for (Orders* orders : {&bare, &ordered}) {
      shuffle_reseed(*d.device, seed);
      const Span a = d.upload(Words(600, 1)), b = d.words(600);
      std::vector<Command> commands{d.fill(a, 2), copy(b, a)};
      if (orders == &ordered) commands.insert(commands.begin() + 1, barrier());
      d.run(commands);
      orders->count(d.read(b));
    }
  }
  EXPECT_GT(bare.after, 10);
  EXPECT_GT(bare.before, 10);
  EXPECT_GT(bare.between, 10);
  EXPECT_EQ(ordered.after, 200);
}

TEST(Shuffle, SubmissionsOfAQueueAreInOrder) {
  Shuffled d(0);
  for (uint64_t seed = 0; seed < 50; seed++) {
    shuffle_reseed(*d.device, seed);
    const Span a = d.upload(Words(40, 0));
    const Command increment = d.add(a, a, 1);
    for (int i = 0; i < 10; i++) d.submit({increment});
    EXPECT_EQ(d.read(a), Words(40, 10));
  }
}

// Copy queue: upload into a; compute queue: b = a + 1. With and without the wait.
TEST(Shuffle, AMissingWaitBetweenQueuesShows) {
  Orders bare, ordered;
  Shuffled d(0);
  for (uint64_t seed = 0; seed < 200; seed++) {
    for (Orders* orders : {&bare, &ordered}) {
      shuffle_reseed(*d.device, seed);
      const Span source = d.upload(Words(600, 5)), a = d.upload(Words(600, 0)), b = d.words(600);
      const Command add = d.add(a, b, 1);
      const auto copied = d.device->create_signal();
      const uint64_t slots[] = {1};
      std::vector<Command> compute{add};
      if (orders == &ordered) compute.insert(compute.begin(), wait(*copied, 0));
      const uint64_t value = d.submit(compute, slots);
      Queue& copies = *d.device->copy_queue();
      const uint64_t done = Shuffled::submit(copies, {copy(a, source), signal(*copied, 0)}, slots);
      d.device->compute_queue().wait(value);
      copies.wait(done);
      orders->count(d.read(b));
    }
  }
  EXPECT_GT(bare.after, 10);
  EXPECT_GT(bare.before, 10);
  EXPECT_GT(bare.between, 5);
  EXPECT_EQ(ordered.after, 200);
}

// What stands before a wait is not held back by it; what stands after a signal does not wait for
// the signal, and need not be done when it is given.
TEST(Shuffle, WaitsAndSignalsOrderNoMoreThanTheySay) {
  int early = 0, late = 0;
  Shuffled d(ShuffleOptions{.seed = 0, .polls_run = false});
  for (uint64_t seed = 0; seed < 200; seed++) {
    shuffle_reseed(*d.device, seed);
    const Span a = d.upload(Words(50, 0)), b = d.upload(Words(50, 0));
    const auto gate = d.device->create_signal(), half = d.device->create_signal();
    const uint64_t slots[] = {1, 1};
    const Command first = d.fill(a, 1), second = d.fill(b, 1);
    const uint64_t before = d.stats().steps;
    const uint64_t value =
        d.submit({first, signal(*half, 0), second, wait(*gate, 1), signal(*gate, 0)}, slots);
    EXPECT_TRUE(half->wait(1, 1'000'000'000));
    const uint64_t steps = d.stats().steps - before;
    EXPECT_GE(steps, 51u);
    early += steps == 51;  // nothing of `second`
    late += steps == 101;  // all of it
    gate->set(1);
    d.device->compute_queue().wait(value);
    EXPECT_EQ(d.read(b), Words(50, 1));
  }
  EXPECT_GT(early, 10);
  EXPECT_GT(late, 10);
}

TEST(Shuffle, TheSameSeedGivesTheSameOrder) {
  std::set<Words> outcomes;
  for (uint64_t seed = 0; seed < 8; seed++) {
    Words got[2];
    for (Words& g : got) {
      Shuffled d(seed);
      const Span a = d.upload(Words(500, 0)), b = d.upload(Words(500, 0));
      d.run({d.fill(a, 1), d.add(a, b, 1), copy(a, b), d.add(b, a, 10)});
      g = d.read(a);
    }
    EXPECT_EQ(got[0], got[1]);
    outcomes.insert(got[0]);
  }
  EXPECT_GT(outcomes.size(), 6u);
}

TEST(Shuffle, ReseedingStartsAnOrderAnew) {
  Shuffled d(1);
  const Span a = d.upload(Words(500, 0)), b = d.upload(Words(500, 0));
  const std::vector<Command> racy{d.fill(a, 1), d.add(a, b, 1)};
  std::set<Words> outcomes;
  Words first;
  for (uint64_t seed : {7, 8, 9, 7}) {
    d.run({d.fill(a, 0), d.fill(b, 0)});
    shuffle_reseed(*d.device, seed);
    d.run(racy);
    first = first.empty() ? d.read(b) : first;
    outcomes.insert(d.read(b));
  }
  EXPECT_EQ(d.read(b), first);
  EXPECT_GE(outcomes.size(), 2u);
  EXPECT_THROW(shuffle_reseed(*null_open(""), 1), InvalidArgument);
}

TEST(Shuffle, PollsMakeProgress) {
  Shuffled d(5);
  const Span a = d.upload(Words(3000, 0));
  const uint64_t value = d.submit({d.fill(a, 3)});
  uint64_t polls = 0;
  while (d.device->compute_queue().timeline().value() < value) ASSERT_LT(++polls, 100'000u);
  EXPECT_GT(polls, 0u);
  EXPECT_EQ(d.read(a), Words(3000, 3));
}

// ---- what the host does too early

TEST(Shuffle, MemoryFreedTooEarlyShows) {
  Shuffled d(ShuffleOptions{.seed = 6, .polls_run = false});
  const Span a = d.upload(Words(100, 1)), b = d.words(100);
  EXPECT_EQ(d.read(b), Words(100, kSpoiltWord)) << "new memory";
  const uint64_t value = d.submit({copy(b, a)});
  d.device->allocator().free(a);  // without its last use
  d.device->compute_queue().wait(value);
  EXPECT_EQ(d.read(b), Words(100, kSpoiltWord));

  // A block of its own, which goes back to the system, stays readable for what is in flight.
  const size_t large = (8u << 20) / 4;
  const Span c = d.upload(Words(large, 1)), e = d.words(large);
  const uint64_t later = d.submit({copy(e, c)});
  d.device->allocator().free(c);
  d.device->allocator().trim();
  d.device->compute_queue().wait(later);
  EXPECT_EQ(d.read(e), Words(large, kSpoiltWord));

  // And with its last use it is not early.
  const Span f = d.upload(Words(100, 1));
  const uint64_t last = d.submit({copy(b, f)});
  d.device->allocator().free(f, {&d.device->compute_queue(), last});
  EXPECT_EQ(d.read(b), Words(100, 1));
}

TEST(Shuffle, HostWritesTooEarlyShow) {
  Shuffled d(ShuffleOptions{.seed = 6, .host_visible = true, .polls_run = false});
  const Span a = d.upload(Words(100, 1)), b = d.words(100);
  ASSERT_NE(a.host(), nullptr);
  const uint64_t value = d.submit({copy(b, a)});
  std::memset(a.host(), 0, a.size_bytes);
  d.device->compute_queue().wait(value);
  EXPECT_EQ(d.read(b), Words(100, 0));
}

TEST(Shuffle, ListsAndSignalsInFlightAreNotToBeTouched) {
  {
    Shuffled d(ShuffleOptions{.seed = 6, .polls_run = false});
    Queue& queue = d.device->compute_queue();
    const Span a = d.upload(Words(10, 1)), b = d.words(10);
    CommandList list;
    list.commands = {copy(b, a)};
    auto encoded = queue.encode(list, EncodeUse::Replay);
    const uint64_t value = queue.submit(*encoded, {});
    EXPECT_THROW(queue.submit(*encoded, {}), InvalidArgument);
    encoded.reset();
    EXPECT_THROW(queue.wait(value), DeviceLost);
  }
  Shuffled d(ShuffleOptions{.seed = 6, .polls_run = false});
  auto gate = d.device->create_signal(2);
  EXPECT_THROW(gate->set(1), InvalidArgument);
  const uint64_t slots[] = {2};
  const uint64_t value = d.submit({wait(*gate, 0)}, slots);
  gate.reset();
  try {
    d.device->compute_queue().wait(value);
    ADD_FAILURE() << "nothing thrown";
  } catch (const DeviceLost& e) {
    EXPECT_NE(std::string(e.what()).find("a signal was destroyed"), std::string::npos) << e.what();
  }
}

TEST(Shuffle, LoweringASignalIsAFault) {
  Shuffled d(6);
  const auto line = d.device->create_signal(5);
  const uint64_t slots[] = {4};
  const uint64_t value = d.submit({signal(*line, 0), barrier()}, slots);
  d.submit({});
  EXPECT_THROW(d.device->compute_queue().wait(value + 1), DeviceLost);
}

TEST(Shuffle, ADeadlockNamesItsWaits) {
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "60");
  Shuffled d(7);
  const auto a = d.device->create_signal(2), b = d.device->create_signal(4);
  const uint64_t slots[] = {3, 5};
  const uint64_t value = d.submit({wait(*a, 0), signal(*b, 1)}, slots);
  Shuffled::submit(*d.device->copy_queue(), {wait(*b, 1), signal(*a, 0)}, slots);
  try {
    d.device->compute_queue().wait(value);
    ADD_FAILURE() << "nothing thrown";
  } catch (const DeviceLost& e) {
    const std::string text = e.what();
    for (const char* part : {"deadlock", "queue 0", "waits for 3 of a signal at 2", "queue 1",
                             "waits for 5 of a signal at 4"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_THROW(d.submit({}), DeviceLost);
}

TEST(Shuffle, WhatIsMerelyHeldBackIsNoDeadlock) {
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "2000");
  Shuffled here(7), there(8);
  const auto a = here.device->create_signal(), b = there.device->create_signal();
  for (uint64_t i = 1; i <= 50; i++) {
    const uint64_t slots[] = {i};
    here.submit({signal(*a, 0), wait(*b, 0)}, slots);
    there.submit({wait(*a, 0), signal(*b, 0)}, slots);
  }
  here.device->compute_queue().wait_idle();
  there.device->compute_queue().wait_idle();
  EXPECT_EQ(b->value(), 50u);
}

TEST(Shuffle, TheCopyQueueRunsNoKernels) {
  Shuffled d(1);
  const Span a = d.words(4);
  const Command c = d.fill(a, 1);
  EXPECT_THROW(Shuffled::submit(*d.device->copy_queue(), {c}), Unsupported);
}

TEST(Shuffle, TimestampsRise) {
  Shuffled d(1);
  const Span a = d.words(2000), b = d.words(2000);
  CommandList list;
  list.commands = {d.fill(a, 1), barrier(), copy(b, a)};
  add_timestamps(list);
  Queue& queue = d.device->compute_queue();
  const auto encoded = queue.encode(list, EncodeUse::Replay);
  queue.wait(queue.submit(*encoded, {}));
  const std::vector<uint64_t> times = queue.timestamps(*encoded);
  ASSERT_EQ(times.size(), list.timestamp_count);
  EXPECT_GT(times[0], 0u);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

// ---- memory that is used again while commands are in flight: both of hcq's rings

TEST(ShuffledRings, ArgumentBlocksAreNotUsedAgainTooEarly) {
  for (const bool visible : {false, true}) {
    // Submitting polls, and with it the device would keep up.
    Shuffled d(ShuffleOptions{.seed = 3, .host_visible = visible, .polls_run = false});
    const Span cell = d.upload(Words(8, 0));
    ArgRing ring(*d.device, 256);
    Queue& queue = d.device->compute_queue();
    uint32_t sum = 0;
    for (int32_t i = 1; i <= 300; i++) {
      const Span block = ring.allocate(32);
      const uint64_t addresses[] = {cell.address(), cell.address()};
      std::memcpy(ring.host(block), addresses, 16);
      std::memcpy(ring.host(block) + 16, &i, 4);
      CommandList list;
      ring.flush(list);
      list.commands.push_back(barrier());
      list.commands.push_back({DispatchCmd{d.programs[1].get(), block, {8, 1, 1}, {}}, {}, ""});
      ring.retire(queue.submit_once(queue.encode(list, EncodeUse::Once)));
      sum += uint32_t(i);
    }
    EXPECT_EQ(d.read(cell), Words(8, sum)) << (visible ? "visible" : "staged");
  }
}

TEST(ShuffledRings, StagingMemoryIsNotUsedAgainTooEarly) {
  Shuffled d(4);
  Words values(6u << 20);  // six pieces
  for (size_t i = 0; i < values.size(); i++) values[i] = uint32_t(i * 2654435761u);
  const Span a = d.words(values.size());
  for (uint64_t seed = 0; seed < 3; seed++) {
    shuffle_reseed(*d.device, seed);
    d.device->upload(a, values.data());
    EXPECT_TRUE(d.read(a) == values) << seed;
    values[seed] ^= 1;
  }
}

// ---- replays in flight

struct Replays {
  Shuffled d{ShuffleOptions{.seed = 11, .polls_run = false, .submit_cost_ns = 20'000}};
  Span cell = d.upload(Words(100, 0));
  CommandGraph graph;

  explicit Replays(uint32_t instances)
      : graph(*d.device, {increment(), increment(), increment()}, 0, 1, instances) {}
  GraphNode increment() {
    return Launch{d.programs[1].get(),
                       {{cell, -1, 0, 400, true, false}, {cell, -1, 0, 400, false, true}},
                       {{0, 0}},
                       {100, 1, 1}};
  }
  uint64_t replay(int64_t value) { return graph.replay({}, std::span(&value, 1)); }
  Queue& queue() { return d.device->compute_queue(); }
};

TEST(ReplaysInFlight, TheNextIsPatchedAndSubmittedWhileOneIsPending) {
  Replays r(2);
  const uint64_t before = r.d.stats().steps;
  const uint64_t first = r.replay(1), second = r.replay(10);
  EXPECT_EQ(r.d.stats().steps, before) << "nothing has run";
  EXPECT_LT(r.queue().timeline().value(), first);
  r.queue().wait(first);
  const uint64_t one = r.d.stats().steps - before;
  const uint64_t third = r.replay(100);  // takes the first one's instance; the second is pending
  EXPECT_EQ(r.d.stats().steps - before, one);
  EXPECT_LT(r.queue().timeline().value(), second);
  const uint64_t fourth = r.replay(1000);  // no instance is free: waits for the second, not more
  EXPECT_EQ(r.queue().timeline().value(), second);
  EXPECT_EQ(r.d.stats().steps - before, 2 * one);
  r.queue().wait(fourth);
  EXPECT_GT(fourth, third);
  EXPECT_EQ(r.d.read(r.cell), Words(100, 3333));
}

struct Clocked {
  uint64_t elapsed_ns, busy_ns, idle_ns;
};
Clocked clocked(uint32_t instances, bool one_at_a_time) {
  constexpr int kReplays = 40;
  Replays r(instances);
  r.queue().wait(r.replay(1));
  const ShuffleStats from = r.d.stats();
  uint64_t last = 0;
  for (int i = 0; i < kReplays; i++) {
    last = r.replay(1);
    if (one_at_a_time) r.queue().wait(last);
  }
  r.queue().wait(last);
  const ShuffleStats to = r.d.stats();
  EXPECT_EQ(r.d.read(r.cell), Words(100, 3 * (kReplays + 1)));
  return {to.host_ns - from.host_ns, to.busy_ns - from.busy_ns, to.idle_ns - from.idle_ns};
}

TEST(ReplaysInFlight, TwoOverlapPatchingWithTheDevice) {
  const Clocked one = clocked(2, true), two = clocked(2, false), ring_of_one = clocked(1, false);
  printf(
      "nominal us of 40 replays: one at a time %.0f (device idle %.0f), two in flight %.0f "
      "(%.0f)\n",
      double(one.elapsed_ns) / 1e3, double(one.idle_ns) / 1e3, double(two.elapsed_ns) / 1e3,
      double(two.idle_ns) / 1e3);
  EXPECT_EQ(one.busy_ns, two.busy_ns);
  EXPECT_EQ(one.idle_ns, 40 * 20'000u) << "the device waits for every submission";
  EXPECT_EQ(two.idle_ns, 20'000u) << "for the first alone";
  EXPECT_EQ(one.elapsed_ns, one.busy_ns + 40 * 20'000u);
  EXPECT_EQ(two.elapsed_ns, two.busy_ns + 20'000u);
  EXPECT_EQ(ring_of_one.idle_ns, one.idle_ns) << "with one instance nothing overlaps";
}

TEST(ReplaysInFlight, GiveTheRightResultsInEveryOrder) {
  Replays r(2);
  for (uint32_t seed = 0; seed < 200; seed++) {
    shuffle_reseed(*r.d.device, seed);
    uint64_t last = 0;
    for (int64_t i = 1; i <= 8; i++) last = r.replay(i);
    r.queue().wait(last);
    EXPECT_EQ(r.d.read(r.cell), Words(100, (seed + 1) * 3 * 36)) << seed;
  }
}

}  // namespace
}  // namespace tuff::devices
