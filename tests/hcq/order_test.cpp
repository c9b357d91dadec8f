// How lists are arranged: order_by_levels and cut_by_time against their definitions on random
// lists, and PacedList, which learns how long its parts take.
#include "hcq/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hcq/fake_device.h"
#include "hcq/hazards.h"
#include "hcq/paced_list.h"
#include "hcq/random_lists.h"

namespace tuff::hcq {
namespace {

using test::conflict;
using test::random_list;

bool is_barrier(const Command& c) { return std::holds_alternative<BarrierCmd>(c.body); }

size_t barriers_of(const CommandList& list) {
  return size_t(std::count_if(list.commands.begin(), list.commands.end(), is_barrier));
}

// The longest chain of conflicts, by the definition. Quadratic.
size_t longest_chain(const CommandList& list) {
  std::vector<size_t> length(list.commands.size(), 1);
  for (size_t i = 0; i < length.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (conflict(list.commands[j], list.commands[i]))
        length[i] = std::max(length[i], length[j] + 1);
  return *std::max_element(length.begin(), length.end());
}

Trace one_after_the_other(const std::vector<ListPart>& parts) {
  Trace t;
  for (const ListPart& p : parts) t.events.emplace_back(Submission{.list = &p.list});
  return t;
}

TEST(OrderByLevels, KeepsConflictsInOrderWithTheFewestBarriers) {
  std::mt19937 rng(5);
  const std::vector<MemoryBlock> blocks(4, MemoryBlock{0, 64});
  size_t before = 0, after = 0;
  for (int round = 0; round < 300; ++round) {
    const CommandList given = random_list(rng, blocks, 1 + rng() % 50);
    CommandList plain = given, list = given;
    insert_barriers(plain);
    order_by_levels(list);
    ASSERT_EQ(list.commands.size(), given.commands.size());
    std::vector<size_t> numbers;
    for (const Command& c : list.commands) numbers.push_back(size_t(std::stoi(c.label)));
    for (size_t i = 0; i < numbers.size(); ++i)
      for (size_t j = i + 1; j < numbers.size(); ++j)
        ASSERT_TRUE(numbers[i] < numbers[j] || !conflict(list.commands[i], list.commands[j]));
    std::sort(numbers.begin(), numbers.end());
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i) << "each one once";

    insert_barriers(list);
    EXPECT_EQ(barriers_of(list) + 1, longest_chain(given));
    EXPECT_LE(barriers_of(list), barriers_of(plain));
    before += barriers_of(plain);
    after += barriers_of(list);
    Trace t;
    t.events.emplace_back(Submission{.list = &list});
    const HazardReport report = check_hazards(t);
    EXPECT_TRUE(report.clean()) << to_text(report);
    EXPECT_TRUE(report.unneeded.empty());
  }
  EXPECT_LT(after, before) << "some list has independent commands apart";
}

TEST(OrderByLevels, NothingMovesAcrossWhatOrders) {
  const MemoryBlock block{0, 64};
  const Access write{{&block, 0, 4}, true};
  CommandList list;
  for (const char* label : {"0", "1", "2", "barrier", "3"})
    list.commands.push_back({DispatchCmd{}, {}, label});
  list.commands[3].body = BarrierCmd{};
  list.commands[0].accesses = list.commands[1].accesses = {write};
  order_by_levels(list);
  std::vector<std::string> labels;
  for (const Command& c : list.commands) labels.push_back(c.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "2", "1", "barrier", "3"}));
}

TEST(CutByTime, PartsAreTheListAndWithinTheLimit) {
  std::mt19937 rng(7);
  const std::vector<MemoryBlock> blocks(2, MemoryBlock{0, 64});
  for (int round = 0; round < 200; ++round) {
    CommandList list = random_list(rng, blocks, 1 + rng() % 40);
    for (Command& c : list.commands) c.cost_ns = rng() % 30;
    insert_barriers(list);
    const uint64_t limit = 1 + rng() % 100;
    const std::vector<ListPart> parts = cut_by_time(list, limit);
    std::vector<std::string> labels, again;
    for (const Command& c : list.commands)
      if (!is_barrier(c)) labels.push_back(c.label);
    size_t at = 0;
    for (const ListPart& p : parts) {
      EXPECT_EQ(p.begin, at);
      at = p.end;
      const uint64_t cost = expected_ns(p.list);
      const auto costly = std::count_if(p.list.commands.begin(), p.list.commands.end(),
                                        [](const Command& c) { return c.cost_ns > 0; });
      EXPECT_TRUE(cost <= limit || costly == 1) << cost << " of " << limit;
      for (const Command& c : p.list.commands)
        if (!is_barrier(c)) again.push_back(c.label);
    }
    EXPECT_EQ(at, list.commands.size());
    EXPECT_EQ(again, labels);
    const HazardReport report = check_hazards(one_after_the_other(parts));
    EXPECT_TRUE(report.clean()) << to_text(report);
    EXPECT_TRUE(report.unneeded.empty()) << "no barrier stands at a cut";
    EXPECT_EQ(cut_by_time(list, 0).size(), 1u);
  }
}

// A chain of kernels that are expected to take 10 ms each, of 100 ms that a submission may take.
class Paced : public testing::Test {
 protected:
  static constexpr uint64_t kMs = 1'000'000;
  CommandList chain(size_t kernels) {
    CommandList list;
    for (size_t i = 0; i < kernels; ++i) {
      Command c{DispatchCmd{&program_, {&block_, 16, 16}}, {{{&block_, 0, 4}, true}}, "k"};
      c.cost_ns = 10 * kMs;
      list.commands.push_back(c);
    }
    insert_barriers(list);
    return list;
  }
  FakeQueue& queue() { return static_cast<FakeQueue&>(device_.compute_queue()); }
  void takes(uint64_t ms) {
    queue().duration = [ms](const Command& c) {
      return std::holds_alternative<DispatchCmd>(c.body) ? ms * kMs : 0;
    };
  }
  void replay(PacedList& list, int times) {
    for (int i = 0; i < times; ++i) list.submit({}, value_);
    EXPECT_EQ(value_, queue().last_submitted());
  }

  std::array<std::byte, 64> memory_{};
  MemoryBlock block_{reinterpret_cast<uint64_t>(memory_.data()), 64, memory_.data()};
  int ran_ = 0;
  FakeProgram program_{"k", 0, 0, [this](const std::byte*, std::array<uint32_t, 3>) { ++ran_; }};
  FakeDevice device_{{.max_submission_ns = 100 * kMs}};
  uint64_t value_ = 0;
};

TEST_F(Paced, AListIsCutByWhatIsExpected) {
  takes(10);
  PacedList list(queue(), chain(35), false);
  EXPECT_EQ(list.submissions(), 4u);
  replay(list, 6);
  EXPECT_EQ(list.submissions(), 4u);
  EXPECT_EQ(ran_, 6 * 35);
  EXPECT_EQ(queue().encoded, 4) << "encoded once";
}

TEST_F(Paced, WhatTakesLongerIsCutFiner) {
  takes(45);
  PacedList list(queue(), chain(20), false);
  EXPECT_EQ(list.submissions(), 2u);
  replay(list, 2);
  EXPECT_EQ(list.submissions(), 10u) << "two of 45 ms each";
  const int encoded = queue().encoded;
  replay(list, 20);
  EXPECT_EQ(queue().encoded, encoded);
  EXPECT_EQ(ran_, 22 * 20);
}

TEST_F(Paced, WhatTakesLessIsJoined) {
  takes(1);
  PacedList list(queue(), chain(40), false);
  EXPECT_EQ(list.submissions(), 4u);
  replay(list, 2);
  EXPECT_EQ(list.submissions(), 1u);
  replay(list, 10);
  EXPECT_EQ(ran_, 12 * 40);
}

TEST_F(Paced, AKernelThatIsTooLongStandsAlone) {
  takes(500);
  PacedList list(queue(), chain(6), false);
  replay(list, 10);
  EXPECT_EQ(list.submissions(), 6u);
}

TEST_F(Paced, ShortListsAreNeitherCutNorTimed) {
  int stamps = 0;
  queue().on_submit = [&](const CommandList& l, uint64_t) { stamps += int(l.timestamp_count); };
  takes(10);
  PacedList list(queue(), chain(4), false);
  replay(list, 3);
  EXPECT_EQ(list.submissions(), 1u);
  EXPECT_EQ(stamps, 0);
}

TEST_F(Paced, AProfileSeesEveryCommandOfEveryPart) {
  takes(10);
  PacedList list(queue(), chain(25), true);
  EXPECT_EQ(list.submissions(), 3u);
  replay(list, 1);
  size_t commands = 0;
  list.report([&](const CommandList& l, std::span<const uint64_t> times) {
    for (const TimedCommand& t : timed_commands(l, times)) {
      EXPECT_EQ(t.end_ns - t.begin_ns, 10 * kMs);
      ++commands;
    }
  });
  EXPECT_EQ(commands, 25u);
}

}  // namespace
}  // namespace tuff::hcq
