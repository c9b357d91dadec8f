// What a command comes after, against the definition on random lists: the same order, and nothing
// in it that the accesses do not ask for.
#include "hcq/dependencies.h"

#include <gtest/gtest.h>

#include "hcq/random_lists.h"

namespace tuff::hcq {
namespace {

using test::conflict;
using test::random_list;

bool is_fence(const Command& c) {
  return c.accesses.empty() || !std::holds_alternative<DispatchCmd>(c.body);
}

using Order = std::vector<std::vector<bool>>;  // [later][earlier]

Order closure(Order order) {
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      for (size_t k = 0; order[i][j] && k < j; ++k)
        if (order[j][k]) order[i][k] = true;
  return order;
}

std::vector<const Command*> pointers(const CommandList& list) {
  std::vector<const Command*> out;
  for (const Command& c : list.commands) out.push_back(&c);
  return out;
}

void check(const CommandList& list) {
  const size_t count = list.commands.size();
  const Dependencies found = dependencies_of(pointers(list));
  ASSERT_EQ(found.after.size(), count);
  Order wanted(count, std::vector<bool>(count)), got = wanted;
  std::vector<bool> last(count, true);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Command &later = list.commands[i], &earlier = list.commands[j];
      wanted[i][j] = is_fence(later) || is_fence(earlier) || conflict(earlier, later);
      if (wanted[i][j]) last[j] = false;
    }
    for (const uint32_t j : found.after[i]) {
      ASSERT_LT(j, i);
      EXPECT_TRUE(wanted[i][j]) << i << " need not wait for " << j;
      got[i][j] = true;
    }
  }
  EXPECT_EQ(closure(got), closure(wanted));
  std::vector<bool> got_last(count, false);
  for (const uint32_t i : found.last) got_last[i] = true;
  EXPECT_EQ(got_last, last);
}

TEST(Dependencies, AreThoseOfTheAccesses) {
  std::mt19937 rng(9);
  const std::vector<MemoryBlock> blocks(4, MemoryBlock{0, 64});
  for (int round = 0; round < 300; ++round) check(random_list(rng, blocks, rng() % 50));
}

TEST(Dependencies, EverythingKeepsItsSideOfAFence) {
  std::mt19937 rng(10);
  const std::vector<MemoryBlock> blocks(4, MemoryBlock{0, 64});
  for (int round = 0; round < 300; ++round) {
    CommandList list = random_list(rng, blocks, 2 + rng() % 30);
    for (size_t fences = 1 + rng() % 3; fences-- > 0;) {
      Command& c = list.commands[rng() % list.commands.size()];
      if (rng() % 2) {
        c.accesses.clear();
      } else {
        c.body = HostCallCmd{};
      }
    }
    check(list);
  }
}

// Of a chain each waits for the one before it alone.
TEST(Dependencies, WhatIsImpliedIsLeftOut) {
  const MemoryBlock block{0, 64};
  CommandList list;
  for (int i = 0; i < 20; ++i)
    list.commands.push_back(
        {DispatchCmd{}, {{{&block, 0, 8}, false}, {{&block, 0, 4}, true}}, "", {}, 0});
  const Dependencies found = dependencies_of(pointers(list));
  for (uint32_t i = 1; i < 20; ++i) EXPECT_EQ(found.after[i], std::vector<uint32_t>{i - 1});
  EXPECT_EQ(found.last, std::vector<uint32_t>{19});
}

}  // namespace
}  // namespace tuff::hcq
