// The key of the schedule cache: equal for two graphs exactly when they differ only in which
// Storages they use, with the inputs in corresponding order.
#include "sched/normalize.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

constexpr int kLeaves = 5;
using Builder = std::function<UOp(std::span<const UOp>)>;

GraphKey key_of(const UOp& root) {
  GraphKey key;
  normalize(std::span(&root, 1), key);
  return key;
}

// Which earlier leaf each leaf is, so that equal patterns of sharing are equal vectors.
std::vector<std::vector<int>> sharing_patterns() {
  std::vector<std::vector<int>> out{{}};
  for (int i = 0; i < kLeaves; i++) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& p : out) {
      const int fresh = p.empty() ? 0 : *std::max_element(p.begin(), p.end()) + 1;
      for (int k = 0; k <= fresh; k++) {
        longer.push_back(p);
        longer.back().push_back(k);
      }
    }
    out = std::move(longer);
  }
  return out;
}

UOp build(const Builder& builder, const std::vector<int>& pattern) {
  std::vector<UOp> buffers, leaves;
  for (int i = 0; i < kLeaves; i++) buffers.push_back(host_buffer({4}));
  for (int k : pattern) leaves.push_back(buffers[size_t(k)]);
  return builder(leaves);
}

// A random expression over all leaves: chains, diamonds over one value, products of two.
Builder random_builder(uint32_t seed) {
  return [seed](std::span<const UOp> leaves) {
    std::mt19937 rng(seed);
    std::vector<UOp> pool(leaves.begin(), leaves.end());
    for (int step = 0; step < 12 || pool.size() > 1; step++) {
      const size_t at = rng() % pool.size();
      UOp& x = pool[at];
      switch (rng() % 4) {
        case 0: x = neg(x); break;
        case 1: x = add(x, number(3)); break;
        case 2: x = mul(x, neg(x)); break;
        default:
          if (pool.size() < 2) break;
          const size_t other = (at + 1 + rng() % (pool.size() - 1)) % pool.size();
          pool[at] = rng() % 2 ? add(pool[at], pool[other]) : mul(neg(pool[other]), pool[at]);
          if (rng() % 2 || step >= 12) pool.erase(pool.begin() + int(other));
      }
    }
    return pool[0];
  };
}

TEST(Normalize, KeysAreEqualExactlyWhenSharingIs) {
  const auto patterns = sharing_patterns();
  ASSERT_EQ(patterns.size(), 52u);  // Bell's number of 5
  for (uint32_t seed = 0; seed < 40; seed++) {
    const Builder builder = random_builder(seed);
    std::map<std::vector<uint64_t>, size_t> seen;
    for (size_t p = 0; p < patterns.size(); p++) {
      const UOp first = build(builder, patterns[p]), second = build(builder, patterns[p]);
      const GraphKey a = key_of(first), b = key_of(second);
      EXPECT_EQ(a.tokens, b.tokens) << "seed " << seed << " pattern " << p;
      EXPECT_EQ(a.inputs.size(), b.inputs.size());
      const auto [it, fresh] = seen.emplace(a.tokens, p);
      EXPECT_TRUE(fresh) << "seed " << seed << ": patterns " << it->second << " and " << p;
    }
  }
}

TEST(Normalize, InputsCorrespond) {
  const UOp a = host_buffer({4}), b = host_buffer({4});
  auto graph = [](const UOp& x, const UOp& y) { return add(mul(neg(x), x), neg(neg(y))); };
  const UOp one = graph(a, b), other = graph(b, a);
  const GraphKey k1 = key_of(one), k2 = key_of(other);
  EXPECT_EQ(k1.tokens, k2.tokens);
  ASSERT_EQ(k1.inputs.size(), 2u);
  EXPECT_EQ(k1.inputs[0], k2.inputs[1]);
  EXPECT_EQ(k1.inputs[1], k2.inputs[0]);
}

TEST(Normalize, NamesEveryDevice) {
  const UOp copied =
      make(Op::Copy, DType::F32, {host_buffer({4}, DType::F32, "NULL")}, Placement{{"CPU"}});
  const GraphKey k = key_of(neg(copied));
  ASSERT_EQ(k.devices.size(), 2u);
  EXPECT_EQ(*k.devices[0], "CPU");
  EXPECT_EQ(*k.devices[1], "NULL");
  const UOp constant_there =
      make(Op::Contiguous, DType::F32, {expand(reshape(number(1), {1}), {4})}, Placement{{"CPU"}});
  EXPECT_EQ(key_of(constant_there).devices.size(), 1u);
}

TEST(Junction, IsWherePathsToMemoryPart) {
  const UOp a = host_buffer({4}), b = host_buffer({4});
  const Node* below = neg(a)->junction;
  EXPECT_EQ(below->op, Op::Buffer);
  EXPECT_EQ(mul(neg(a), add(a, number(1)))->junction, below);
  const UOp meeting = add(neg(a), b);
  EXPECT_EQ(meeting->junction, meeting.get());
  EXPECT_EQ(mul(neg(meeting), meeting)->junction, meeting.get());
  EXPECT_EQ(number(3)->junction, nullptr);
}

}  // namespace
}  // namespace tuff::sched::testing
