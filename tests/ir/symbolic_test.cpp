// Properties of the symbolic simplifier, by brute force over random expressions.
#include <gtest/gtest.h>

#include "ir/linear_form.h"
#include "ir/random_index.h"
#include "ir/rewrite.h"
#include "ir/symbolic.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

using test::Evaluator;
using test::Generator;
using test::Point;
using test::Space;

UOp loaded(DType t) {
  return make(Op::Load, t, {make(Op::Index, t, {param(0, t, 8), index_const(3)})});
}

Space number_space() {
  return {{variable("n", -3, 2), range(index_const(5), 0, AxisKind::Loop),
           range(index_const(4), 1, AxisKind::Reduce), range(index_const(3), 2, AxisKind::Loop),
           variable("k", -7, -6), loaded(DType::Bool)}};
}
Space symbolic_space() {
  const UOp v = variable("v", 1, 4);
  return {{v, range(v, 0, AxisKind::Loop), range(index_const(4), 1, AxisKind::Loop),
           range(v, 2, AxisKind::Loop)}};
}

// An axis of 3 to 8 elements with windows of 3, each 2 from the one before, and their taps.
Space window_space() {
  const UOp w = variable("w", 3, 8);
  return {{w, range(floordiv(w - 3, index_const(2)) + 1, 0, AxisKind::Loop),
           range(index_const(3), 1, AxisKind::Reduce)}};
}
Space space_of(int seed) {
  return seed % 3 == 2 ? symbolic_space() : seed % 3 == 1 ? window_space() : number_space();
}

// Both expressions agree at every point (where `given` is true).
void expect_same(const Space& space, const UOp& before, const UOp& after, const UOp& given = {}) {
  ASSERT_EQ(before->dtype, after->dtype);
  Evaluator eval({before, after, given ? given : bool_const(true)});
  bool same = true;
  space.each([&](const Point& p) {
    if (!same) return;
    eval.at(p);
    if (eval[2]) same = eval[0] == eval[1];
    if (!same) {
      std::string at;
      for (const auto& [n, v] : p) at += fmt::format(" {}={}", expression(UOp(n)), v);
      FAIL() << expression(before) << " became " << expression(after)
             << (given ? " given " + expression(given) : "") << ": " << eval[0] << " and "
             << eval[1] << " at" << at;
    }
  });
}

void expect_sound_bounds(const Space& space, const UOp& x) {
  Evaluator eval({x});
  const auto [low, high] = tight_bounds(x);
  space.each([&](const Point& p) {
    eval.at(p);
    if (eval[0] < low || eval[0] > high)
      FAIL() << expression(x) << " is " << eval[0] << ", outside " << low << ".." << high;
    eval.each([&](const Node& n, int64_t v) {
      if (v < n.min || v > n.max)
        FAIL() << expression(UOp(&n)) << " is " << v << ", outside " << n.min << ".." << n.max;
    });
  });
}

UOp with_simplified_sources(const UOp& u) {
  if (u->op == Op::Range) return u;
  std::vector<UOp> src;
  for (const UOp& s : u->src()) src.push_back(simplify(s));
  return with_src(u, src);
}

class RandomExpressions : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kPerSeed = 170;
  Space space_ = space_of(GetParam());
  Generator random_{uint64_t(GetParam()), space_};
};

TEST_P(RandomExpressions, SimplifyKeepsTheValue) {
  for (int i = 0; i < kPerSeed && !HasFatalFailure(); i++) {
    const UOp x = i % 3 ? random_.index(1 + i % 6) : random_.boolean(1 + i % 5);
    expect_same(space_, x, simplify(x));
  }
}

TEST_P(RandomExpressions, SimplifyIsIdempotent) {
  for (int i = 0; i < kPerSeed; i++) {
    const UOp x = random_.index(1 + i % 6);
    const UOp once = simplify(x);
    drop_simplify_cache();
    ASSERT_EQ(expression(simplify(once)), expression(once)) << "from " << expression(x);
  }
}

TEST_P(RandomExpressions, BoundsAreSound) {
  for (int i = 0; i < kPerSeed / 5 && !HasFatalFailure(); i++)
    expect_sound_bounds(space_, random_.index(1 + i % 6));
}

TEST_P(RandomExpressions, SimplifyGivenAgreesWhereTheConditionHolds) {
  for (int i = 0; i < kPerSeed && !HasFatalFailure(); i++) {
    const UOp x = random_.index(1 + i % 5);
    UOp given = random_.boolean(1 + i % 3);
    if (i % 2) given = logical_and(given, lt(index_const(random_.pick(-3, 2)), random_.leaf()));
    expect_same(space_, x, simplify_given(x, given), given);
  }
}

TEST_P(RandomExpressions, CoefficientIsTheStep) {
  const UOp leaf = space_.leaves[1];
  for (int i = 0; i < kPerSeed / 5; i++) {
    const UOp x = random_.index(4);
    const auto step = coefficient(x, leaf);
    if (!step) continue;
    const UOp moved = substitute(x, {{leaf, make(Op::Add, DType::Index, {leaf, index_const(1)})}});
    Evaluator eval({x, moved});
    space_.each([&](const Point& p) {
      if (p.at(leaf.get()) >= leaf->max || (leaf->src_count && !leaf->src(0)->is_const())) return;
      eval.at(p);
      if (eval[1] - eval[0] != *step) FAIL() << "step " << *step << " of " << expression(x);
    });
  }
}

// Each rule on its own, at every node where it applies while simplification goes on.
TEST_P(RandomExpressions, EveryRuleHoldsByItself) {
  const RuleSet& rules = symbolic_rules();
  for (int i = 0; i < kPerSeed / 2 && !HasFatalFailure(); i++) {
    const UOp x = i % 2 ? random_.index(1 + i % 4) : random_.boolean(1 + i % 4);
    for (const Node* n : toposort(x)) {
      for (size_t r = 0; r < rules.rules().size(); r++) {
        const UOp u(n), half = n->src_count ? with_simplified_sources(u) : u;
        for (const UOp& candidate : {u, half}) {
          const UOp result = rules.apply_one(r, candidate);
          if (!result) continue;
          SCOPED_TRACE(rules.rules()[r].name);
          expect_same(space_, candidate, result);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The random expressions above and those of the goldens reach every rule: no dead rows.
TEST(SymbolicRules, EveryRuleIsHit) {
  drop_simplify_cache();
  const std::vector<RuleCount> before = symbolic_rules().counts();
  for (uint64_t seed = 100; seed < 112; seed++) {
    const Space space = space_of(seed);
    Generator random(seed, space);
    for (int i = 0; i < 1500; i++)
      simplify(i % 2 ? random.index(1 + i % 6) : random.boolean(1 + i % 5));
  }
  const UOp wide = loaded(DType::U64);  // a product with zero whose bounds do not tell
  EXPECT_TRUE(
      simplify(make(Op::Mul, DType::U64, {wide, constant(DType::U64, 0)}))->is_const_int(0));
  const std::vector<RuleCount> after = symbolic_rules().counts();
  for (size_t i = 0; i < after.size(); i++)
    EXPECT_GT(after[i].hits, before[i].hits) << after[i].name;
}

// Rules of other dtypes than Index and Bool need values of their own.
TEST(SymbolicRules, FloatsKeepTheirRules) {
  const UOp load = loaded(DType::F32);
  EXPECT_EQ(simplify(make(Op::Mul, DType::F32, {load, constant(DType::F32, 1)})), load);
  const UOp times_zero = make(Op::Mul, DType::F32, {load, constant(DType::F32, 0)});
  EXPECT_EQ(simplify(times_zero), times_zero);  // NaN and infinities
  const UOp plus_zero = make(Op::Add, DType::F32, {load, constant(DType::F32, 0)});
  EXPECT_EQ(simplify(plus_zero), plus_zero);  // -0 + 0 is +0
}

TEST(SymbolicRules, NothingIsKeptAliveButTheCache) {
  drop_simplify_cache();
  const uint64_t before = live_node_count();
  {
    Generator random(7, number_space());
    for (int i = 0; i < 200; i++) simplify(random.index(5));
  }
  drop_simplify_cache();
  EXPECT_EQ(live_node_count(), before);
}

// The same expression built in another order ends as the same node.
TEST(SymbolicRules, OrderOfBuildingDoesNotMatter) {
  auto build = [](bool swap) {
    std::vector<UOp> parts;
    const int ids[2][3] = {{0, 1, 2}, {2, 0, 1}};
    std::vector<UOp> r(3);
    for (int id : ids[swap]) r[size_t(id)] = range(index_const(4 + id), id, AxisKind::Loop);
    const UOp a = floormod(r[0] * 3 + r[1], 7), b = floordiv(r[2] + r[0], 3),
              c = alu(Op::Max, {r[1], r[2]});
    const UOp sum = swap ? c + (b + a) : (a + b) + c;
    return expression(simplify(sum));
  };
  const std::string first = build(false);
  drop_simplify_cache();
  EXPECT_EQ(first, build(true));
}

// How tensor/windows.cpp reads element o * stride + k of an axis whose extent varies: the axis
// several times, cut into rows one longer.
TEST(SymbolicRules, WindowsOfASymbolicAxisNeedNoDivision) {
  const UOp w = variable("w", 3, 640);
  for (const int64_t before : {0, 2}) {
    const UOp n = w + before, k = range(index_const(3), 1, AxisKind::Reduce);
    for (const int64_t stride : {1, 2, 3}) {
      const UOp count = simplify(floordiv(n - 3, index_const(stride)) + 1);
      const UOp o = range(count, 0, AxisKind::Loop), at = o * stride + k;
      const UOp flat = k * (n + 1) + o * stride;
      EXPECT_EQ(expression(simplify(floormod(flat, n))), expression(simplify(at))) << stride;
      EXPECT_EQ(simplify(floordiv(flat, n)), k) << stride;
      EXPECT_TRUE(simplify(lt(at, n))->is_const_int(1)) << stride;
      EXPECT_EQ(simplify(floormod(at, n + 2)), simplify(at)) << stride;
    }
  }
}

// Whether its body runs depends on the group: a body that forgets the counter leaves the loop.
TEST(SymbolicRules, TheCounterOfALoopThatMayNotRunStays) {
  const UOp group = range(index_const(4), 0, AxisKind::Group);
  const UOp size = where(lt(group, index_const(2)), index_const(1), index_const(0));
  const UOp counter = range(size, 1, AxisKind::Loop);
  EXPECT_FALSE(simplify(counter + index_const(5))->is_const());
  EXPECT_FALSE(simplify(lt(counter, index_const(1)))->is_const());
  EXPECT_TRUE(simplify(range(index_const(1), 1, AxisKind::Loop) + index_const(5))->is_const());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomExpressions, ::testing::Range(0, 12));

}  // namespace
}  // namespace tuff::ir
