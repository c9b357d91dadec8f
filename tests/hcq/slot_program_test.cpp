// SlotProgram: what is computed, once per distinct expression, and what is refused.
#include <gtest/gtest.h>

#include <random>

#include "base/check.h"
#include "hcq/slot_program.h"

namespace tuff::hcq {
namespace {

using ir::Op;

std::vector<uint64_t> ran(const SlotProgram& p, std::span<const int64_t> given) {
  std::vector<uint64_t> slots(p.slot_count());
  p.load_constants(slots);
  std::copy(given.begin(), given.end(), slots.begin());
  p.run(slots);
  return slots;
}
int64_t result(const SlotProgram& p, uint32_t slot, std::initializer_list<int64_t> given) {
  return static_cast<int64_t>(ran(p, given)[slot]);
}

TEST(SlotProgram, HasOneEntryPerDistinctExpression) {
  SlotProgram p(2);
  const uint32_t two = p.constant(2), sum = p.append(Op::Add, 0, 1);
  EXPECT_EQ(p.constant(2), two);
  EXPECT_EQ(p.append(Op::Add, 1, 0), sum) << "either order";
  EXPECT_NE(p.append(Op::Sub, 0, 1), p.append(Op::Sub, 1, 0));
  const uint32_t twice = p.append(Op::Mul, sum, two);
  EXPECT_EQ(p.append(Op::Mul, two, sum), twice);
  EXPECT_EQ(p.size(), 4u);
  EXPECT_EQ(result(p, twice, {3, 4}), 14);
}

TEST(SlotProgram, DivisionRoundsDown) {
  SlotProgram p(2);
  const uint32_t q = p.append(Op::FloorDiv, 0, 1), r = p.append(Op::FloorMod, 0, 1);
  for (int64_t a = -9; a <= 9; a++) {
    for (int64_t b = 1; b <= 4; b++) {
      const int64_t quotient = result(p, q, {a, b}), rest = result(p, r, {a, b});
      EXPECT_EQ(quotient * b + rest, a);
      EXPECT_GE(rest, 0);
      EXPECT_LT(rest, b);
    }
  }
  EXPECT_THROW(result(p, q, {1, 0}), InvalidArgument);
  EXPECT_THROW(result(p, q, {1, -2}), InvalidArgument);
}

TEST(SlotProgram, RefusesWhatDoesNotFit) {
  SlotProgram p(2);
  p.append(Op::Mul, 0, 1);
  EXPECT_THROW(result(p, 2, {INT64_MAX, 2}), InvalidArgument);
  EXPECT_EQ(result(p, 2, {INT64_MAX, 1}), INT64_MAX);
  SlotProgram sum(2);
  sum.append(Op::Add, 0, 1);
  EXPECT_THROW(result(sum, 2, {INT64_MAX, 1}), InvalidArgument);
  SlotProgram difference(2);
  difference.append(Op::Sub, 0, 1);
  EXPECT_THROW(result(difference, 2, {INT64_MIN, 1}), InvalidArgument);
}

// Written a second time, over recorded operations.
int64_t expected(Op op, int64_t a, int64_t b, int64_t c) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Max: return a < b ? b : a;
    case Op::CmpLt: return a < b ? 1 : 0;
    case Op::CmpEq: return a == b ? 1 : 0;
    case Op::CmpNe: return a == b ? 0 : 1;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Where: return a != 0 ? b : c;
    default: break;
  }
  ADD_FAILURE();
  return 0;
}

TEST(SlotProgram, RandomProgramsComputeWhatTheirOperationsSay) {
  constexpr Op ops[] = {Op::Add,  Op::Sub,   Op::Max,
                            Op::CmpLt, Op::CmpEq, Op::CmpNe,
                            Op::And,  Op::Or,    Op::Where};
  std::mt19937 random(7);
  const auto pick = [&](uint32_t n) { return uint32_t(random() % n); };
  for (int round = 0; round < 200; round++) {
    const uint32_t given = 1 + pick(3);
    SlotProgram p(given);
    std::vector<int64_t> values;
    for (uint32_t i = 0; i < given; i++) values.push_back(int64_t(pick(41)) - 20);
    std::vector<int64_t> inputs = values;
    for (int step = 0; step < 20; step++) {
      if (pick(5) == 0) {
        const int64_t v = int64_t(pick(9)) - 4;
        const uint32_t slot = p.constant(v);
        values.resize(p.slot_count());
        values[slot] = v;
        continue;
      }
      const Op op = ops[pick(std::size(ops))];
      const uint32_t n = p.slot_count(), a = pick(n), b = pick(n), c = pick(n);
      const uint32_t slot = p.append(op, a, b, op == Op::Where ? c : 0);
      values.resize(p.slot_count());
      values[slot] = expected(op, values[a], values[b], values[c]);
    }
    const std::vector<uint64_t> got = ran(p, inputs);
    for (size_t i = 0; i < values.size(); i++) EXPECT_EQ(int64_t(got[i]), values[i]) << round;
  }
}

}  // namespace
}  // namespace tuff::hcq
