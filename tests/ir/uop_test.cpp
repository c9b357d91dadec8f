// The node: interning, lifetime, folding, shapes, walking.
#include <gtest/gtest.h>

#include <thread>

#include "ir/uop.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

UOp leaf(int64_t n, DType t = DType::F32) { return buffer(make_ref<Storage>("CPU", t, n)); }

TEST(UOp, EqualNodesAreOneNode) {
  const UOp a = index_const(3), b = index_const(3);
  EXPECT_EQ(a, b);
  const UOp r = range(index_const(8), 0, AxisKind::Loop);
  EXPECT_EQ(r * 4 + 1, r * 4 + 1);
  EXPECT_NE(leaf(4), leaf(4));
}

TEST(UOp, StructuralKeyIgnoresStorageIdentity) {
  const UOp a = leaf(4), b = leaf(4), c = leaf(5);
  EXPECT_EQ(alu(Op::Neg, {a})->key, alu(Op::Neg, {b})->key);
  EXPECT_NE(alu(Op::Neg, {a})->key, alu(Op::Neg, {c})->key);
}

TEST(UOp, ReleasesEverything) {
  const uint64_t before = live_node_count();
  {
    UOp x = leaf(16);
    for (int i = 0; i < 200000; i++) x = make(Op::Neg, DType::F32, {x});
    EXPECT_GE(live_node_count(), before + 200000);
  }
  EXPECT_EQ(live_node_count(), before);
}

TEST(UOp, InternsFromManyThreads) {
  const uint64_t before = live_node_count();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([] {
      for (int i = 0; i < 20000; i++) {
        const UOp r = range(index_const(i % 17 + 2), 0, AxisKind::Loop);
        ASSERT_EQ(r * 3 + i % 5, r * 3 + i % 5);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(live_node_count(), before);
}

TEST(UOp, FoldsIndexIdentities) {
  const UOp r = range(index_const(8), 0, AxisKind::Loop);
  EXPECT_EQ(r + 0, r);
  EXPECT_EQ(r * 1, r);
  EXPECT_EQ((r + 2) + 3, r + 5);
  EXPECT_EQ(floordiv(r, 8), index_const(0));
  EXPECT_EQ(floormod(r, 8), r);
  EXPECT_EQ(lt(r, index_const(8)), bool_const(true));
  EXPECT_EQ((r * 4 + 3)->max, 31);
}

TEST(UOp, ShapesAndErrors) {
  const UOp x = reshape(leaf(24), {2, 3, 4});
  EXPECT_EQ(to_string(permute(x, {2, 0, 1})->shape), "(4, 2, 3)");
  EXPECT_EQ(to_string(reduce(Op::Add, x, {1})->shape), "(2, 1, 4)");
  EXPECT_EQ(to_string(pad(x, {{0, 0}, {1, 2}, {0, 0}})->shape), "(2, 6, 4)");
  EXPECT_THROW(reshape(x, {5, 5}), ShapeError);
  EXPECT_THROW(permute(x, {0, 0, 1}), ShapeError);
  EXPECT_THROW(shrink(x, {{0, 2}, {0, 4}, {0, 4}}), ShapeError);
  EXPECT_THROW(flip(x, {3}), IndexError);
  EXPECT_THROW(reduce(Op::Add, x, {3}), InvalidArgument);
  EXPECT_THROW(alu(Op::Add, {x, reshape(leaf(24), {4, 3, 2})}), ShapeError);
  EXPECT_THROW(make(Op::Add, DType::F32, {leaf(4), leaf(4, DType::I32)}), InternalError);
}

// Two expansions become one, which the source alone would allow.
TEST(UOp, ExpansionsOfExpandedAxesAreRefused) {
  const UOp x = reshape(leaf(2), {2, 1}), wide = expand(x, {2, 3}), c = constant(DType::F32, 1);
  EXPECT_THROW(expand(wide, {2, 5}), ShapeError);
  EXPECT_THROW(expand(wide, {2, 1}), ShapeError);
  EXPECT_THROW(expand(expand(reshape(c, {1}), {5}), {7}), ShapeError);
  EXPECT_EQ(expand(wide, {2, 3}), wide);
  const UOp tall = expand(reshape(leaf(3), {1, 3}), {1, 3});
  EXPECT_EQ(to_string(expand(tall, {4, 3})->shape), "(4, 3)");
  const UOp both = expand(expand(reshape(leaf(1), {1, 1}), {2, 1}), {2, 3});
  EXPECT_EQ(both->src(0)->op, Op::Reshape);
}

TEST(UOp, SymbolicExtents) {
  const UOp n = variable("n", 1, 64);
  const Dim d = Dim(n) * 2 + 1;
  EXPECT_EQ(d.max(), 129);
  EXPECT_FALSE(d.is_const());
  EXPECT_EQ(Dim(index_const(5)), Dim(5));
}

// Every value of two counters: none is outside, and of an or the highest bit is known.
TEST(UOp, BoundsOfBitsHold) {
  for (const int64_t size : {1, 2, 5, 8, 13}) {
    for (const int64_t added : {-3, 0, 4}) {
      const UOp a = cast(range(index_const(size), 0, AxisKind::Loop) + added, DType::I32),
                b = cast(range(index_const(6), 1, AxisKind::Loop), DType::I32);
      const UOp either = alu(Op::Or, {a, b}), left = alu(Op::Shl, {a, b}),
                right = alu(Op::Shr, {a, b});
      for (int64_t x = added; x < added + size; x++) {
        for (int64_t y = 0; y < 6; y++) {
          const auto holds = [&](const UOp& u, int64_t v) {
            EXPECT_TRUE(u->min <= v && v <= u->max) << x << " and " << y << ": " << v;
          };
          holds(either, x | y);
          holds(left, x * (int64_t(1) << y));
          holds(right, x >> y);
        }
      }
      if (added < 0) continue;
      EXPECT_EQ(either->max, added + size > 8 ? (added + size > 16 ? 31 : 15) : 7);
      EXPECT_EQ(left->max, (added + size - 1) << 5);
      EXPECT_EQ(right->max, added + size - 1);
    }
  }
}

TEST(Walk, SubstitutesAndSorts) {
  const UOp a = leaf(4), b = leaf(4);
  const UOp x = alu(Op::Add, {alu(Op::Neg, {a}), alu(Op::Exp2, {a})});
  EXPECT_EQ(toposort(x).size(), 4u);
  UOpMap<UOp> map{{a, b}};
  EXPECT_EQ(substitute(x, map), alu(Op::Add, {alu(Op::Neg, {b}), alu(Op::Exp2, {b})}));
  EXPECT_TRUE(depends_on(x, a));
  EXPECT_FALSE(depends_on(x, b));
  const UOp y =
      map_bottom_up(x, [&](const UOp& u) { return u->op == Op::Neg ? u->src(0) : UOp(); });
  EXPECT_EQ(y, alu(Op::Add, {a, alu(Op::Exp2, {a})}));
}

TEST(Walk, ChainOperandsAreInOrderAndStopAtOtherOps) {
  const UOp a = variable("a", 0, 9), b = variable("b", 0, 9), c = variable("c", 0, 9);
  const auto join = [](Op op, const UOp& x, const UOp& y) {
    return make(op, DType::Index, {x, y});
  };
  const UOp sum = join(Op::Add, a, b);
  EXPECT_EQ(chain_operands(Op::Mul, join(Op::Mul, join(Op::Mul, c, sum), a)),
            (std::vector<UOp>{c, sum, a}));
  EXPECT_EQ(chain_operands(Op::Mul, join(Op::Mul, c, join(Op::Mul, b, c))),
            (std::vector<UOp>{c, b, c}));
  EXPECT_EQ(chain_operands(Op::Mul, sum), std::vector<UOp>{sum});
}

}  // namespace
}  // namespace tuff::ir
