// Golden simplifications: what movement ops make of indices, and what must come of it.
#include <gtest/gtest.h>

#include "ir/symbolic.h"
#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

UOp r(int id, int64_t size) { return range(index_const(size), id, AxisKind::Loop); }
std::string simple(const UOp& x) { return expression(simplify(x)); }

UOp flatten(const std::vector<UOp>& index, const IntVec& shape) {
  UOp sum = index_const(0);
  for (size_t i = 0; i < shape.size(); i++) sum = sum * shape[i] + index[i];
  return sum;
}
std::vector<UOp> unflatten(const UOp& flat, const IntVec& shape) {
  std::vector<UOp> out(shape.size());
  UOp rest = flat;
  for (size_t i = shape.size(); i-- > 0;) {
    out[i] = i ? floormod(rest, shape[i]) : rest;
    rest = floordiv(rest, shape[i]);
  }
  return out;
}
std::vector<UOp> reshaped(const std::vector<UOp>& index, const IntVec& from, const IntVec& to) {
  return unflatten(flatten(index, from), to);
}

TEST(SymbolicGolden, ReshapeRoundTrips) {
  const std::vector<UOp> i{r(0, 3), r(1, 4)};
  const auto there = reshaped(i, {3, 4}, {4, 3});
  EXPECT_EQ(simple(there[1]), "(r0 + r1) % 3");
  EXPECT_EQ(simple(flatten(there, {4, 3})), "r0*4 + r1");
  const auto back = reshaped(there, {4, 3}, {3, 4});
  EXPECT_EQ(simple(back[0]), "r0");
  EXPECT_EQ(simple(back[1]), "r1");
  EXPECT_EQ(simple(flatten(back, {3, 4})), "r0*4 + r1");
}

// The gradient of windows: of 12 elements cut into rows of 13, element r1 of row r0 is one of the
// first 10 where r0 is not beyond it.
TEST(SymbolicGolden, RowsThatAreSheared) {
  const UOp flat = r(0, 3) * 12 + r(1, 12);
  const UOp inside = lt(floormod(flat, 13), index_const(10));
  EXPECT_EQ(simple(inside), "r0 < r1 + 1 & r1 < r0 + 10");
  EXPECT_EQ(expression(simplify_given(floordiv(flat, 13), inside)), "r0");
  EXPECT_EQ(expression(simplify_given(floormod(flat, 13), inside)), "r0*-1 + r1");
  const UOp far = lt(floormod(r(0, 5) * 12 + r(1, 12), 13), index_const(10));
  EXPECT_NE(simple(far).find("%"), std::string::npos) << "a row further, 9 is reached from below";
}

TEST(SymbolicGolden, ReshapeChainsOfManyShapes) {
  const std::vector<IntVec> shapes{{2, 3, 4, 5}, {6, 20},  {120},   {5, 24},     {8, 15},
                                   {3, 5, 8},    {12, 10}, {2, 60}, {2, 3, 4, 5}};
  std::vector<UOp> index{r(0, 2), r(1, 3), r(2, 4), r(3, 5)};
  for (size_t i = 0; i + 1 < shapes.size(); i++) {
    index = reshaped(index, shapes[i], shapes[i + 1]);
    EXPECT_EQ(simple(flatten(index, shapes[i + 1])), "r0*60 + r1*20 + r2*5 + r3")
        << "after shape " << i + 1;
  }
  for (int i = 0; i < 4; i++) EXPECT_EQ(simple(index[size_t(i)]), fmt::format("r{}", i));
}

// Quotients and remainders of what has two values are a straight line through them.
TEST(SymbolicGolden, PhasesOfAStride) {
  const UOp block = r(0, 16), phase = r(1, 2), x = block * 2 + phase + 1;
  EXPECT_EQ(simple(floordiv(x, 2)), "r0 + r1");
  EXPECT_EQ(simple(floormod(x, 2)), "r1*-1 + 1");
  for (int64_t a : {-3, -1, 2, 5}) {
    for (int64_t k = -4; k <= 4; k++) {
      for (int64_t c : {2, 3, 4}) {
        const UOp q = simplify(floordiv(phase * a + k, c));
        EXPECT_EQ(expression(q).find("//"), std::string::npos) << a << " " << k << " " << c;
      }
    }
  }
}

// Conjuncts are simplified where the others hold: which tap of its phase a gradient's row is.
TEST(SymbolicGolden, ConjunctionsKnowThemselves) {
  const UOp i = r(0, 17), t = r(1, 2), phase = r(2, 2), at = t * 17 + i;
  const UOp inside = lt(floormod(at, 18), index_const(16));
  const UOp tap = lt(floordiv(at, 18) * 2 + phase, index_const(3));
  EXPECT_EQ(expression(simplify_conjunction(simplify(logical_and(inside, tap)))),
            "r1*2 + r2 < 3 & r1 < r0 + 1 & r0 < r1 + 16");
}

TEST(SymbolicGolden, InsideABufferGivenAMask) {
  const UOp c = r(0, 4), a = r(1, 2), q = r(2, 2), b = r(3, 2), p = r(4, 2);
  const UOp offset = c * 9 + a * 6 + q * 3 + b * 2 + p;  // tap (2a+q, 2b+p) of channel c
  const UOp row = lt(a * 2 + q, index_const(3)), column = lt(b * 2 + p, index_const(3));
  EXPECT_TRUE(is_inside_given(offset, 36, logical_and(row, column)));
  EXPECT_FALSE(is_inside_given(offset, 35, logical_and(row, column)));
  EXPECT_FALSE(is_inside_given(offset, 36, row));
  EXPECT_FALSE(is_inside_given(offset - 1, 36, logical_and(row, column)));
  EXPECT_TRUE(is_inside_given(c, 3, lt(c, index_const(3))));
}

// The gradient of windows of three: rows of 12 end in rows of 13, of which ten are windows.
TEST(SymbolicGolden, RemaindersOfOverlappingWindowsAreSums) {
  const UOp i = r(0, 12), t = r(1, 4), at = t * 12 + i;
  const UOp inside = lt(floormod(at, 13), index_const(10));
  EXPECT_EQ(simple(inside), "r1 < r0 + 1 & r0 < r1 + 10");
  EXPECT_EQ(expression(simplify_given(floordiv(at, 13), simplify(inside))), "r1");
  EXPECT_EQ(expression(simplify_given(floormod(at, 13), simplify(inside))), "r0 - r1");
  for (int64_t k = -1; k <= 14; k++) {
    const UOp below = lt(floormod(at, 13), index_const(k)), simpler = simplify(below);
    for (int64_t n = 0; n < 48; n++) {
      UOpMap<UOp> values{{i, index_const(n % 12)}, {t, index_const(n / 12)}};
      EXPECT_EQ(simplify(substitute(simpler, values)), bool_const(n % 13 < k)) << k << " " << n;
    }
  }
}

TEST(SymbolicGolden, SplitAndMergeOfAxes) {
  EXPECT_EQ(simple(floordiv(r(0, 8) * 4 + r(1, 4), 4)), "r0");
  EXPECT_EQ(simple(floormod(r(0, 8) * 4 + r(1, 4), 4)), "r1");
  EXPECT_EQ(simple(floordiv(r(0, 8) * 4 + r(1, 4), 8)), "r0 // 2");
  EXPECT_EQ(simple(floormod(r(0, 8) * 4 + r(1, 4), 8)), "r1 + r0 % 2*4");
  EXPECT_EQ(simple(floordiv(r(0, 8) * 12 + r(1, 12), 4)), "r0*3 + r1 // 4");
  EXPECT_EQ(simple(floordiv(floordiv(r(0, 64), 4), 4)), "r0 // 16");
  EXPECT_EQ(simple(floormod(floormod(r(0, 64), 16), 4)), "r0 % 4");
  EXPECT_EQ(simple(floordiv(r(0, 64), 4) * 4 + floormod(r(0, 64), 4)), "r0");
  EXPECT_EQ(simple(r(0, 64) - floordiv(r(0, 64), 4) * 4), "r0 % 4");
  EXPECT_EQ(simple(floormod(floordiv(r(0, 64), 4), 2) * 4 + floormod(r(0, 64), 4)), "r0 % 8");
}

TEST(SymbolicGolden, FlipsAndPermutes) {
  EXPECT_EQ(simple(index_const(63) - (index_const(63) - r(0, 64))), "r0");
  EXPECT_EQ(simple(floordiv(index_const(63) - r(0, 64), 4)), "r0 // 4*-1 + 15");
  // (4,6) transposed to (6,4), flattened, and read back through the transpose
  const UOp flat = flatten({r(1, 6), r(0, 4)}, {6, 4});
  const auto i = unflatten(flat, {6, 4});
  EXPECT_EQ(simple(flatten({i[1], i[0]}, {4, 6})), "r0*6 + r1");
}

TEST(SymbolicGolden, PadMasks) {
  const UOp x = r(0, 10), padded = x - 1;  // 8 elements, one of padding on either side
  const UOp mask = logical_and(ge(padded, index_const(0)), lt(padded, index_const(8)));
  EXPECT_EQ(simple(mask), "0 < r0 & r0 < 9");
  EXPECT_EQ(simple(ge(r(0, 8), index_const(0))), "true");
  EXPECT_EQ(simple(lt(r(0, 8), index_const(8))), "true");
  EXPECT_EQ(simple(lt(r(0, 8) * 4 + r(1, 4), index_const(12))), "r0 < 3");
  EXPECT_EQ(simple(lt(floordiv(r(0, 64), 4), index_const(3))), "r0 < 12");
  EXPECT_EQ(simple(lt(index_const(2), floordiv(r(0, 64), 4))), "11 < r0");
  EXPECT_EQ(simple(logical_and(lt(x, index_const(4)), lt(index_const(2), x))), "2 < r0 & r0 < 4");
  EXPECT_EQ(simple(logical_and(lt(x, index_const(4)), lt(index_const(3), x))), "false");
  EXPECT_EQ(simple(alu(Op::Or, {lt(x, index_const(4)), lt(index_const(3), x)})), "true");
  EXPECT_EQ(simple(logical_and(lt(x, index_const(3)), lt(index_const(5), x))), "false");
  EXPECT_EQ(simple(logical_and(lt(x, index_const(3)), lt(x, index_const(5)))), "r0 < 3");
  EXPECT_EQ(simple(logical_not(logical_not(lt(x, index_const(3))))), "r0 < 3");
}

TEST(SymbolicGolden, GivenAMask) {
  const UOp x = r(0, 10), inside = logical_and(ge(x, index_const(1)), lt(x, index_const(9)));
  EXPECT_EQ(expression(simplify_given(floordiv(x - 1, 8), inside)), "0");
  EXPECT_EQ(expression(simplify_given(floormod(x - 1, 8), inside)), "r0 - 1");
  EXPECT_EQ(expression(simplify_given(inside, inside)), "true");
  EXPECT_EQ(expression(simplify_given(x, alu(Op::CmpEq, {x, index_const(4)}))), "4");
}

// A convolution's window: image row oh*2 + kh - 1 of 16, flattened with 16 columns and split again.
TEST(SymbolicGolden, ConvolutionWindow) {
  const UOp oh = r(0, 8), ow = r(1, 8), kh = r(2, 3), kw = r(3, 3);
  const UOp row = oh * 2 + kh - 1, column = ow * 2 + kw - 1;
  const UOp inside =
      logical_and(logical_and(ge(row, index_const(0)), lt(row, index_const(16))),
                  logical_and(ge(column, index_const(0)), lt(column, index_const(16))));
  const UOp flat = row * 16 + column;
  EXPECT_EQ(expression(simplify_given(floordiv(flat, 16), inside)), "r0*2 + r2 - 1");
  EXPECT_EQ(expression(simplify_given(floormod(flat, 16), inside)), "r1*2 + r3 - 1");
}

TEST(SymbolicGolden, SymbolicExtents) {
  const UOp v = variable("v", 1, 64), a = range(v, 0, AxisKind::Loop), b = r(1, 4);
  EXPECT_EQ(simple(floordiv(b * v + a, v)), "r1");
  EXPECT_EQ(simple(floormod(b * v + a, v)), "r0");
  EXPECT_EQ(simple(lt(a, v)), "true");
  EXPECT_EQ(simple(lt(b * v + a, v * 4)), "true");
  EXPECT_EQ(simple(floordiv(v * 12, v)), "12");
}

TEST(SymbolicGolden, FactsOfForms) {
  const UOp a = r(0, 8), b = r(1, 4);
  EXPECT_EQ(coefficient(a * 4 + b - a, a), 3);
  EXPECT_EQ(coefficient(b, a), 0);
  EXPECT_EQ(coefficient(floordiv(a, 2), a), std::nullopt);
  EXPECT_EQ(conjuncts(logical_and(lt(a, b), lt(b, a))).size(), 2u);
}

}  // namespace
}  // namespace tuff::ir
