#include "hcq/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <vector>

namespace tuff::hcq {
namespace {

constexpr uintptr_t kLine = 64;

bool covers(const Footprint& f, const void* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  return std::ranges::all_of(std::views::iota(begin, begin + bytes), [&](uintptr_t byte) {
    const auto* line = reinterpret_cast<const std::byte*>(byte / kLine * kLine);
    return std::ranges::count(f.lines(), line) == 1;
  });
}

TEST(Footprint, HasEveryLineOfARangeOnce) {
  alignas(64) std::byte memory[512] = {};
  Footprint f;
  f.add(memory + 60, 8);  // over the border of two lines
  EXPECT_EQ(f.lines().size(), 2u);
  EXPECT_TRUE(covers(f, memory + 60, 8));
  f.add(memory, 256);
  EXPECT_EQ(f.lines().size(), 4u);
  EXPECT_TRUE(covers(f, memory, 256));
}

TEST(Footprint, OfNothingIsEmpty) {
  Footprint f;
  f.add(nullptr, 64);
  f.add(&f, 0);
  f.add(std::vector<uint64_t>());
  EXPECT_TRUE(f.lines().empty());
  Footprint::prefetch(f.lines());
}

TEST(Footprint, OfAnObjectHasItsTableOfFunctions) {
  struct Shape {
    virtual ~Shape() = default;
    virtual int corners() const { return 0; }
    uint64_t data[16] = {};
  };
  const Shape shape;
  Footprint f;
  f.add_object(shape);
  EXPECT_TRUE(covers(f, &shape, sizeof shape));
  const void* table = *reinterpret_cast<const void* const*>(&shape);
  EXPECT_TRUE(covers(f, table, 2 * sizeof(void*)));
}

// Graphs are destroyed, lists cut anew: what is asked for may have gone.
TEST(Footprint, MayNameMemoryThatIsGone) {
  Footprint f;
  f.add(reinterpret_cast<const void*>(uintptr_t(64)), 4096);
  Footprint::prefetch(f.lines());
  Footprint::prefetch_code();
  EXPECT_EQ(f.lines().size(), 64u);
}

}  // namespace
}  // namespace tuff::hcq
