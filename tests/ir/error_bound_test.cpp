// Running error analysis: bounds hold for every order of a sum and follow cancellation; what is
// exact has no bound at all; what a rounding decides is unknown.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "ir/error_bound.h"

namespace tuff::ir {
namespace {

UOp loop(int64_t n, int32_t id, AxisKind kind = AxisKind::Loop) {
  return range(index_const(n), id, kind);
}
UOp at(int32_t slot, int64_t count, const UOp& offset, DType t = DType::F32) {
  return make(Op::Load, DType::Void,
              {make(Op::Index, DType::Void, {param(slot, t, count), offset})});
}
UOp kernel(const UOp& value, const UOp& r) {
  const UOp to = make(Op::Index, DType::Void, {param(0, value->dtype, r->src(0)->max), r});
  return sink(
      std::vector<UOp>{make(Op::End, DType::Void, {make(Op::Store, DType::Void, {to, value}), r})});
}

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& v) {
  return std::as_bytes(std::span<const T>(v));
}

std::vector<Bounded> bounds(const UOp& ast, std::vector<std::span<const std::byte>> inputs) {
  inputs.insert(inputs.begin(), std::span<const std::byte>());
  std::vector<Bounded> out;
  bound_errors(
      ast, {inputs, {}}, [](const StoredElement&) { return true; },
      [&](const StoredElement& s, const Bounded& b) {
        EXPECT_EQ(s.element, int64_t(out.size()));
        out.push_back(b);
      });
  return out;
}

// What all terms have in common is made once.
TEST(ErrorBound, TermsOfAnElementAreThoseOfSumsInsideEachOther) {
  const UOp i = loop(4, 0), j = loop(10, 1, AxisKind::Reduce), k = loop(20, 2, AxisKind::Reduce);
  const auto sum = [](const UOp& x, const UOp& r) {
    return make(Op::Reduce, DType::F32, {x, r}, ReduceArg{Op::Add, {}});
  };
  EXPECT_EQ(terms_of_element(kernel(at(1, 4, i), i)), 1);
  EXPECT_EQ(terms_of_element(kernel(sum(at(1, 200, j * 20), j) + sum(at(1, 20, k), k), i)), 31);
  EXPECT_EQ(terms_of_element(kernel(sum(sum(at(1, 200, j * 20 + k), k), j), i)), 1 + 10 * 21);
  EXPECT_EQ(terms_of_element(kernel(sum(at(1, 10, j) * sum(at(1, 20, k), k), j), i)), 31);
  // A row that is kept is what fills it, wherever it is read.
  const UOp c = loop(10, 3), memory = make(Op::Shared, DType::F32, {}, SharedArg{0, 10});
  const UOp place = make(Op::Index, DType::F32, {memory, c});
  const UOp store = make(Op::Store, DType::Void, {place, sum(at(1, 200, c * 20 + k), k)});
  const UOp row = make(Op::After, DType::F32, {memory, make(Op::End, DType::Void, {store, c})});
  const UOp read = make(Op::Load, DType::F32, {make(Op::Index, DType::F32, {row, j})});
  EXPECT_EQ(terms_of_element(kernel(sum(read, j), i)), 1 + 10 * 21);
}

TEST(ErrorBound, SumsInAnyOrderStayWithin) {
  constexpr int64_t kTerms = 2000;
  std::mt19937 rng(1);
  const UOp i = loop(1, 0), k = loop(kTerms, 1, AxisKind::Reduce);
  const UOp sum = make(Op::Reduce, DType::F32, {at(1, kTerms, k), k}, ReduceArg{Op::Add, {}});
  for (int round = 0; round < 20; round++) {
    std::vector<float> x(kTerms);
    for (float& v : x)
      v = std::ldexp(float(int(rng() % 2001) - 1000), -int(rng() % 12)) + (round % 2 ? 500 : 0);
    const double exact = std::accumulate(x.begin(), x.end(), 0.0);
    const Bounded b = bounds(kernel(sum, i), {bytes(x)}).at(0);
    for (int order = 0; order < 20; order++) {
      std::shuffle(x.begin(), x.end(), rng);
      const float got = std::accumulate(x.begin(), x.end(), 0.0f);
      ASSERT_LE(std::abs(double(got) - exact), b.error) << "round " << round;
    }
    double magnitude = 0;
    for (float v : x) magnitude += std::abs(double(v));
    EXPECT_LT(b.error, magnitude * 2e-5);  // no looser than it has to be: 180 * 2^-24
  }
}

TEST(ErrorBound, ASumOfManyEqualTermsIsOffByOneRounding) {
  constexpr int64_t kTerms = 30'000;
  const UOp i = loop(1, 0), k = loop(kTerms, 1, AxisKind::Reduce);
  const UOp sum = make(Op::Reduce, DType::F32, {at(1, kTerms, k), k}, ReduceArg{Op::Add, {}});
  const std::vector<float> x(kTerms, std::log2(2.75f));
  const Bounded b = bounds(kernel(sum, i), {bytes(x)}).at(0);
  EXPECT_EQ(b.value.as_double(), double(float(double(x[0]) * kTerms)));
}

// Random graph 8200857 of `tuff check`: a product of 11 factors of up to 5 bits, of which 0 was allowed.
TEST(ErrorBound, ProductsInAnyOrderStayWithin) {
  std::mt19937 rng(1);
  const UOp i = loop(1, 0);
  int exact = 0;
  for (int round = 0; round < 400; round++) {
    const int64_t terms = 2 + round % 10;
    const UOp k = loop(terms, 1, AxisKind::Reduce);
    const UOp x = at(1, terms, k);
    const UOp product = make(Op::Reduce, DType::F32, {x, k}, ReduceArg{Op::Mul, {}});
    std::vector<float> factors(static_cast<size_t>(terms));
    for (float& v : factors) v = float(int(rng() % 65) - 32) / 8;
    const Bounded b = bounds(kernel(product, i), {bytes(factors)}).at(0);
    exact += b.error == 0;
    for (int order = 0; order < 20; order++) {
      std::shuffle(factors.begin(), factors.end(), rng);
      const float got = std::accumulate(factors.begin(), factors.end(), 1.0f, std::multiplies());
      ASSERT_TRUE(agrees(Scalar::of_double(DType::F32, double(got)), b)) << "round " << round;
    }
  }
  EXPECT_GT(exact, 200);  // most have few odd factors
}

// Each element of a row needs the row's sum: summed anew for each, this row would take minutes.
TEST(ErrorBound, ASumIsTakenOnceForTheElementsOfItsRow) {
  constexpr int64_t kLength = 1 << 15;
  const UOp i = loop(kLength, 0), k = loop(kLength, 1, AxisKind::Reduce);
  const UOp sum = make(Op::Reduce, DType::F32, {at(1, kLength, k), k}, ReduceArg{Op::Add, {}});
  const UOp value = make(Op::Add, DType::F32, {at(1, kLength, i), sum});
  std::vector<float> x(kLength);
  for (size_t n = 0; n < x.size(); n++) x[n] = float(n % 7);
  const double exact = std::accumulate(x.begin(), x.end(), 0.0);
  const std::vector<Bounded> b = bounds(kernel(value, i), {bytes(x)});
  for (size_t n = 0; n < x.size(); n += 1000)
    EXPECT_LE(std::abs(b[n].value.as_double() - (exact + double(x[n]))), b[n].error) << n;
}

// ... but not where a loop around it changes what is summed.
TEST(ErrorBound, SumsOfDifferentRowsDiffer) {
  const UOp i = loop(4, 0), k = loop(3, 1, AxisKind::Reduce);
  const UOp sum = make(Op::Reduce, DType::F32, {at(1, 12, i * 3 + k), k}, ReduceArg{Op::Add, {}});
  std::vector<float> x(12);
  std::iota(x.begin(), x.end(), 0.0f);
  const std::vector<Bounded> b = bounds(kernel(sum, i), {bytes(x)});
  for (size_t n = 0; n < 4; n++) EXPECT_EQ(b[n].value.as_double(), 9.0 * double(n) + 3);
}

TEST(ErrorBound, FollowsCancellation) {
  const UOp i = loop(2, 0), x = at(1, 2, i), y = at(2, 2, i);
  const UOp v = (x * y) - constant(DType::F32, 1);
  const std::vector<float> a{3, 1e4f}, b{1.0f / 3, 1e-4f};
  const std::vector<Bounded> e = bounds(kernel(v, i), {bytes(a), bytes(b)});
  for (const Bounded& one : e) {
    EXPECT_GE(one.error, std::ldexp(1.0, -25));  // the product's rounding is all that is left
    EXPECT_LE(one.error, std::ldexp(1.0, -22));
  }
}

TEST(ErrorBound, WhatOnlyMovesAndComparesIsExact) {
  const UOp i = loop(3, 0), x = at(1, 3, i), y = at(2, 3, i);
  const UOp v = where(alu(Op::CmpLt, {x, y}), alu(Op::Neg, {x}), alu(Op::Max, {x, y}));
  const std::vector<float> a{1, 2, 3}, b{3, 2, 1};
  EXPECT_EQ(plain_ulps(kernel(v, i)), 0);
  for (const Bounded& one : bounds(kernel(v, i), {bytes(a), bytes(b)})) EXPECT_EQ(one.error, 0);
  const std::vector<int32_t> n{1, 2, 3};
  const UOp whole = at(1, 3, i, DType::I32) * at(1, 3, i, DType::I32);
  for (const Bounded& one : bounds(kernel(whole, i), {bytes(n)})) EXPECT_EQ(one.error, 0);
}

TEST(ErrorBound, WhatARoundingDecidesIsBoundedByBothOutcomes) {
  const UOp i = loop(2, 0), x = at(1, 2, i);
  const UOp product = x * constant(DType::F32, 3);
  const UOp v = where(alu(Op::CmpLt, {product, constant(DType::F32, 1)}), constant(DType::F32, 5),
                      constant(DType::F32, 9));
  const std::vector<float> a{1.0f / 3, 0.4f};
  const std::vector<Bounded> e = bounds(kernel(v, i), {bytes(a)});
  EXPECT_GE(e[0].error, 4);
  EXPECT_EQ(e[1].error, 0);
  // The bits of an inexact number may be anything.
  const std::vector<Bounded> bits = bounds(kernel(bitcast(product, DType::I32), i), {bytes(a)});
  EXPECT_TRUE(std::isinf(bits[0].error));
}

TEST(ErrorBound, UlpsOfEveryFloat) {
  EXPECT_EQ(ulp_of(DType::F32, 1.0), std::ldexp(1.0, -23));
  EXPECT_EQ(ulp_of(DType::F32, -3.0), std::ldexp(1.0, -22));
  EXPECT_EQ(ulp_of(DType::F32, 0.0), std::ldexp(1.0, -149));
  EXPECT_EQ(ulp_of(DType::F16, 1.0), std::ldexp(1.0, -10));
  EXPECT_EQ(ulp_of(DType::F16, 0.0), std::ldexp(1.0, -24));
  EXPECT_EQ(ulp_of(DType::BF16, 1.0), std::ldexp(1.0, -7));
  EXPECT_EQ(ulp_of(DType::F64, 1.0), std::ldexp(1.0, -52));
  EXPECT_EQ(ulp_of(DType::F8E4M3FN, 1.0), std::ldexp(1.0, -3));
  EXPECT_EQ(ulp_of(DType::F8E4M3FN, 0.0), std::ldexp(1.0, -9));
  EXPECT_EQ(ulp_of(DType::F8E5M2, 0.0), std::ldexp(1.0, -16));
}

// A sum that is not exact is demanded to a step; what may lie beyond 448 is not.
TEST(ErrorBound, FloatsOf8BitsEndWhereTheyEnd) {
  constexpr DType t = DType::F8E4M3FN;
  const UOp i = loop(2, 0), third = make(Op::Recip, t, {at(2, 2, i, t)});
  const auto codes = [](double x, double y) {
    return std::vector<uint8_t>{f8e4m3fn_from_f64(x), f8e4m3fn_from_f64(y)};
  };
  const auto a = codes(416, 448), b = codes(3, 3);
  const UOp sum = make(Op::Add, t, {at(1, 2, i, t), third});
  const std::vector<Bounded> got = bounds(kernel(sum, i), {bytes(a), bytes(b)});
  EXPECT_EQ(got[0].value.as_double(), 416);
  EXPECT_GE(got[0].error, 32);
  EXPECT_LE(got[0].error, 64);
  EXPECT_TRUE(std::isinf(got[1].error));
}

}  // namespace
}  // namespace tuff::ir
