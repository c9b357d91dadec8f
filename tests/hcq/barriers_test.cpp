// insert_barriers against a brute-force oracle: necessary and sufficient, over random lists.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "hcq/order.h"
#include "hcq/random_lists.h"

namespace tuff::hcq {
namespace {

using test::conflict;
using test::random_list;

// Places where a barrier stands by the definition: before a command that conflicts with any since
// the last barrier. Quadratic.
std::vector<bool> oracle(const CommandList& list) {
  std::vector<bool> before(list.commands.size());
  size_t since = 0;
  for (size_t i = 0; i < list.commands.size(); ++i)
    for (size_t j = since; j < i; ++j)
      if (conflict(list.commands[j], list.commands[i])) {
        before[i] = true;
        since = i;
        break;
      }
  return before;
}

TEST(Barriers, MatchTheBruteForceOracle) {
  std::mt19937 rng(3);
  std::vector<MemoryBlock> blocks(3, MemoryBlock{0, 64});
  for (int round = 0; round < 400; ++round) {
    CommandList list = random_list(rng, blocks, 60);
    std::vector<bool> expected = oracle(list);
    insert_barriers(list);
    size_t at = 0;
    bool barrier = false;
    for (const Command& c : list.commands) {
      if (std::holds_alternative<BarrierCmd>(c.body)) {
        EXPECT_FALSE(barrier);
        barrier = true;
        continue;
      }
      ASSERT_EQ(c.label, std::to_string(at));
      ASSERT_EQ(barrier, expected[at]) << "round " << round << " command " << at;
      barrier = false;
      ++at;
    }
    ASSERT_EQ(at, expected.size());
  }
}

TEST(Barriers, ExistingBarriersCount) {
  MemoryBlock block{0, 64};
  CommandList list;
  list.commands.push_back({DispatchCmd{}, {{{&block, 0, 8}, true}}, "w"});
  list.commands.push_back({BarrierCmd{}, {}, {}});
  list.commands.push_back({DispatchCmd{}, {{{&block, 0, 8}, false}}, "r"});
  insert_barriers(list);
  EXPECT_EQ(list.commands.size(), 3u);
}

TEST(Barriers, ThousandsOfIndependentCommandsAreFast) {
  std::vector<MemoryBlock> blocks(1, MemoryBlock{0, 64u << 20});
  CommandList list;
  for (size_t i = 0; i < 20'000; ++i)
    list.commands.push_back({DispatchCmd{}, {{{&blocks[0], i * 512, 100}, true}}, ""});
  auto begin = std::chrono::steady_clock::now();
  insert_barriers(list);
  EXPECT_EQ(list.commands.size(), 20'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(2));  // quadratic: minutes
}

}  // namespace
}  // namespace tuff::hcq
