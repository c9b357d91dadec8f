// Reductions that one sweep over a row makes: which sums a growing maximum scales, and what leaves
// them for that.
#include <gtest/gtest.h>

#include <functional>

#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"

namespace tuff::ir {
namespace {

constexpr int64_t kColumns = 16;

UOp f32(double v) { return constant(DType::F32, v); }
UOp column(int32_t id, AxisKind kind = AxisKind::Reduce) {
  return range(index_const(kColumns), id, kind);
}
UOp score(const UOp& at, int32_t slot = 1) {
  return make_load(make_index(param(slot, DType::F32, kColumns), at));
}
UOp folded(Op op, const UOp& x, const UOp& r) {
  return make(Op::Reduce, x->dtype, {x, r}, ReduceArg{op, {}});
}
UOp exp2_of(const UOp& x) { return make(Op::Exp2, DType::F32, {x}); }
UOp less(const UOp& x, const UOp& y) { return make(Op::Sub, DType::F32, {x, y}); }
UOp stored(const UOp& x) {
  return sink(std::vector<UOp>{
      make_end(make_store(make_index(param(0, DType::F32, 1), index_const(0)), x))});
}
struct Row {
  UOp memory, filled;
  UOp at(const UOp& column) const { return make_load(make_index(filled, column)); }
};
Row kept(int32_t number, const UOp& own, const UOp& value) {
  const UOp memory = make(Op::Shared, DType::F32, {}, SharedArg{number, kColumns});
  const UOp end = make_end(make_store(make_index(memory, own), value), std::span(&own, 1));
  return {memory, make_after(memory, {end})};
}

const UOp a = column(0), b = column(1), c = column(2), own = column(3, AxisKind::Loop),
          other = column(4, AxisKind::Loop);

std::optional<OneSweep> sweep(const UOp& x) {
  return one_sweep(stored(x), std::vector<UOp>{a, b, c});
}
UOp largest() { return folded(Op::Max, score(a), a); }
bool scales(const UOp& term) {
  const auto s = sweep(folded(Op::Add, term, b));
  return s && s->max && s->scaled.size() == 1;
}

TEST(OneSweep, SumsOfExponentialsAreScaled) {
  const UOp e = exp2_of(less(score(b), largest()));
  const UOp natural = exp2_of(less(score(b), largest()) * f32(1.4426950408889634));
  EXPECT_TRUE(scales(e));
  EXPECT_TRUE(scales(natural));
  EXPECT_TRUE(scales(e * score(b, 2)));
  EXPECT_TRUE(scales(cast(e, DType::F64)));
  EXPECT_TRUE(scales(make(Op::Neg, DType::F32, {e})));
  EXPECT_TRUE(scales(where(lt(b, index_const(9)), e, f32(0))));
  EXPECT_TRUE(scales(make(Op::Add, DType::F32, {e, e * score(b, 2)})));
}

TEST(OneSweep, WhatTheMaximumChangesInAnotherWayIsRefused) {
  const UOp e = exp2_of(less(score(b), largest()));
  EXPECT_FALSE(scales(e * e));
  EXPECT_FALSE(scales(make(Op::Add, DType::F32, {e, score(b)})));
  EXPECT_FALSE(scales(where(lt(b, index_const(9)), e, f32(1))));
  EXPECT_FALSE(scales(e * largest()));
  EXPECT_FALSE(scales(score(b) * largest()));
  EXPECT_FALSE(scales(exp2_of(less(largest(), score(b)))));
  EXPECT_FALSE(scales(exp2_of(less(score(b), largest()) * score(b, 2))));
  EXPECT_FALSE(scales(make(Op::Recip, DType::F32, {e})));
  EXPECT_FALSE(sweep(folded(Op::Max, e, b)));
  const UOp sum = folded(Op::Add, score(a), a);
  EXPECT_FALSE(sweep(folded(Op::Add, exp2_of(less(score(b), sum)), b)));
  // Both change with the maximum, but not alike.
  const UOp narrow = exp2_of(less(score(c), largest()) * f32(0.5));
  EXPECT_FALSE(sweep(folded(Op::Add, e, b) * folded(Op::Add, narrow, c)));
  // Three of them wait for one another.
  const UOp total = folded(Op::Add, e, b);
  EXPECT_FALSE(sweep(folded(Op::Add, exp2_of(less(score(c), largest())) * total, c)));
}

TEST(OneSweep, ReductionsWithoutEachOtherNeedNoMaximum) {
  const auto s = sweep(folded(Op::Add, score(a), a) * folded(Op::Max, score(b, 2), b));
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->max);
  EXPECT_EQ(s->others.size(), 2u);
  const auto beside = sweep(folded(Op::Add, exp2_of(less(score(b), largest())), b) *
                            folded(Op::Add, score(c), c));
  ASSERT_TRUE(beside && beside->max);
  EXPECT_EQ(beside->others.size(), 1u);
}

TEST(OneSweep, TheScaleIsThatOfTheExponential) {
  const auto s = sweep(folded(Op::Add, exp2_of(less(score(b), largest()) * f32(3)), b));
  ASSERT_TRUE(s);
  EXPECT_EQ(s->scale(f32(1), f32(2)), exp2_of(less(f32(1), f32(2)) * f32(3)));
}

// A softmax times values: the quotient leaves the sum, and the sum below it reads the row.
TEST(OneSweep, FactorsOfARowLeaveTheSumsThatReadIt) {
  const Row scores = kept(0, own, score(own));
  const UOp max = folded(Op::Max, scores.at(a), a);
  const auto e = [&](const UOp& at) { return exp2_of(less(scores.at(at), max)); };
  const UOp quotient = make(Op::Recip, DType::F32, {folded(Op::Add, e(b), b)});
  const auto softmax = [&](const UOp& value) { return kept(1, other, value).at(c); };
  const auto result = [&](const UOp& weight) {
    return stored(folded(Op::Add, weight * score(c, 2), c));
  };
  const UOp ast = result(softmax(e(other) * quotient));
  const std::vector<UOp> columns = columns_of_rows(ast).value();
  EXPECT_EQ(columns.size(), 5u);
  EXPECT_FALSE(one_sweep(ast, columns));
  const UOp made = with_factors_outside(ast);
  const auto s = one_sweep(made, columns);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->scaled.size(), 2u);
  const UOp row = softmax(e(other));
  const UOp total = folded(Op::Add, kept(1, other, e(other)).at(b), b);
  EXPECT_EQ(made, stored(folded(Op::Add, row * score(c, 2), c) *
                         make(Op::Recip, DType::F32, {total})));
  // Where something else needs the quotient in the row, it stays.
  const UOp squared = softmax(e(other) * quotient);
  for (const UOp& kept_ast : {result(squared * squared), result(exp2_of(squared))})
    EXPECT_EQ(with_factors_outside(kept_ast), kept_ast);
}

// The mean of a softmax's slopes, whose terms have the quotient in common; other reductions may
// close the same range.
TEST(OneSweep, FactorsOfTermsLeaveTheirSum) {
  const Row scores = kept(0, own, score(own)), slopes = kept(1, other, score(other, 2));
  const UOp max = folded(Op::Max, scores.at(a), a);
  const auto e = [&](const UOp& at) { return exp2_of(less(scores.at(at), max)); };
  for (const UOp& r : {b, c}) {
    const UOp quotient = make(Op::Recip, DType::F32, {folded(Op::Add, e(r), r)});
    const UOp ast = stored(folded(Op::Add, slopes.at(c) * (e(c) * quotient), c));
    const std::vector<UOp> columns = columns_of_rows(ast).value();
    EXPECT_FALSE(one_sweep(ast, columns));
    const UOp made = with_factors_outside(ast);
    EXPECT_EQ(made, stored(folded(Op::Add, slopes.at(c) * e(c), c) * quotient));
    const auto s = one_sweep(made, columns);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->scaled.size(), 2u);
  }
}

// What other numbers are divided by may be all that keeps them within a narrow float.
TEST(OneSweep, QuotientsLeaveARoundingOfPowersBelowTheMaximumAlone) {
  const Row scores = kept(0, own, score(own));
  const UOp max = folded(Op::Max, scores.at(a), a);
  const auto leaves = [&](const std::function<UOp(const UOp&)>& power) {
    const UOp quotient = make(Op::Recip, DType::F32, {folded(Op::Add, power(b), b)});
    const UOp rounded = cast(cast(power(other) * quotient, DType::F16), DType::F32);
    const UOp ast = stored(folded(Op::Add, kept(1, other, rounded).at(c) * score(c, 2), c));
    return !(with_factors_outside(ast) == ast);
  };
  const auto e = [&](const UOp& at) { return exp2_of(less(scores.at(at), max)); };
  EXPECT_TRUE(leaves(e));
  EXPECT_TRUE(leaves([&](const UOp& at) { return e(at) * f32(1.25); }));
  EXPECT_TRUE(leaves([&](const UOp& at) {
    return exp2_of(less(scores.at(at), max) * f32(1.4426950408889634));
  }));
  EXPECT_FALSE(leaves([&](const UOp& at) { return e(at) * f32(2e5); }));
  EXPECT_FALSE(leaves([&](const UOp& at) { return exp2_of(scores.at(at)); }));
  EXPECT_FALSE(leaves([&](const UOp& at) { return exp2_of(less(scores.at(at), f32(30))); }));
  EXPECT_FALSE(leaves([&](const UOp& at) { return scores.at(at) * scores.at(at); }));
}

TEST(OneSweep, RowsThatAreReadElsewhereHaveNoColumns) {
  const Row row = kept(0, own, score(own));
  EXPECT_TRUE(columns_of_rows(stored(folded(Op::Add, row.at(a), a))));
  EXPECT_FALSE(columns_of_rows(stored(folded(Op::Add, row.at(a + 1), a))));
  const UOp both = make(Op::Reduce, DType::F32, {row.at(a) * row.at(b), a, b},
                        ReduceArg{Op::Add, {}});
  EXPECT_FALSE(columns_of_rows(stored(both)));
}

}  // namespace
}  // namespace tuff::ir
