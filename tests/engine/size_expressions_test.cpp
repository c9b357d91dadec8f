// SizeExpressions against graph's own evaluation of index expressions.
#include <gtest/gtest.h>

#include <random>

#include "engine/jit/size_expressions.h"
#include "ir/scalar_eval.h"
#include "ir/symbolic.h"

namespace tuff::engine {
namespace {

using namespace ir;

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  int64_t pick(int64_t n) { return int64_t(random_() % uint64_t(n)); }

  UOp number(const std::vector<UOp>& variables, int depth) {
    const auto next = [&] { return number(variables, depth - 1); };
    if (depth == 0)
      return pick(4) ? variables[size_t(pick(int64_t(variables.size())))] : index_const(pick(9));
    switch (pick(8)) {
      case 0: return next() + next();
      case 1: return next() - next();
      case 2: return next() * index_const(pick(7) - 2);
      case 3: return floordiv(next(), 1 + pick(6));
      case 4: return floormod(next(), 1 + pick(6));
      case 5: return alu(Op::Max, {next(), next()});
      case 6: return where(lt(next(), next()), next(), next());
      default: return alu(Op::Neg, {next()});
    }
  }

 private:
  std::mt19937 random_;
};

TEST(SizeExpressions, ComputeWhatTheExpressionsMean) {
  const std::vector<UOp> variables{variable("B", 1, 8), variable("T", 1, 64), variable("k", 0, 5)};
  Random random(3);
  std::vector<UOp> wanted;
  std::vector<uint32_t> slots;
  SizeExpressions expressions(variables);
  for (int i = 0; i < 300; i++) {
    const UOp x = random.number(variables, 4);
    wanted.push_back(i % 2 ? simplify(x) : x);
    ASSERT_TRUE(expressions.covers(wanted.back()));
    slots.push_back(expressions.slot(wanted.back()));
  }
  const hcq::SlotProgram program = expressions.program();
  std::vector<uint64_t> values(program.slot_count());
  program.load_constants(values);
  for (int round = 0; round < 20; round++) {
    const int64_t given[] = {1 + random.pick(8), 1 + random.pick(64), random.pick(6)};
    std::copy(std::begin(given), std::end(given), values.begin());
    program.run(values);
    const VariableValues named{{"B", given[0]}, {"T", given[1]}, {"k", given[2]}};
    for (size_t i = 0; i < wanted.size(); i++)
      EXPECT_EQ(int64_t(values[slots[i]]), evaluate_index(wanted[i], named)) << i;
  }
}

TEST(SizeExpressions, AreSharedAndKnowTheirVariables) {
  const UOp t = variable("T", 1, 64), other = variable("other", 1, 64);
  SizeExpressions expressions({&t, 1});
  const uint32_t slot = expressions.slot(t * 4 + 3);
  EXPECT_EQ(expressions.slot(t * 4 + 3), slot);
  EXPECT_EQ(expressions.program().size(), 2u);
  EXPECT_FALSE(expressions.covers(t + other));
  EXPECT_TRUE(expressions.covers(index_const(5)));
  // Of the same name, but with other bounds: another variable.
  EXPECT_FALSE(expressions.covers(variable("T", 1, 63)));
}

}  // namespace
}  // namespace tuff::engine
