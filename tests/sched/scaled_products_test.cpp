// Constants that leave sums of products, and those that must not.
#include "sched/scaled_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/walk.h"
#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

constexpr int64_t kRows = 3, kLength = 8;

UOp factor(DType narrow = DType::F16) {
  return cast(host_buffer({kRows, kLength}, narrow), DType::F32);
}
UOp filled(double c, int64_t columns = kLength) {
  const UOp one = reshape(constant(DType::F32, c), Shape(2, Dim(1)));
  return expand(one, {Dim(kRows), Dim(columns)});
}
UOp sum(const UOp& x, const UOp& y) { return reduce(Op::Add, mul(x, y), {1}); }

// What the sum is multiplied by; 0: nothing.
double scale_of(const UOp& sum) {
  const ScaledProducts s = scaled_products(sum);
  if (!s.sum) return 0;
  double all = 1;
  for (const Node* n : toposort(s.scale))
    if (n->op == Op::Const) all *= n->get<Scalar>().as_double();
  expect_meaning({sum}, 1e-4);
  return all;
}

TEST(ScaledProducts, ConstantsLeaveTheSum) {
  const UOp x = factor(), y = factor(DType::BF16);
  EXPECT_EQ(scale_of(sum(mul(x, filled(0.125)), y)), 0.125);
  EXPECT_EQ(scale_of(sum(mul(filled(-0.5), x), mul(y, filled(4)))), -2);
  const UOp turned = permute(mul(permute(x, {1, 0}), permute(filled(3), {1, 0})), {1, 0});
  EXPECT_EQ(scale_of(sum(turned, y)), 3);
  const UOp padded = pad(mul(shrink(x, {{Dim(0), Dim(kRows)}, {Dim(0), Dim(4)}}), filled(3, 4)),
                         {{Dim(0), Dim(0)}, {Dim(0), Dim(kLength - 4)}});
  EXPECT_EQ(scale_of(sum(padded, y)), 3);
  EXPECT_EQ(scale_of(sum(x, y)), 0);
  EXPECT_EQ(scale_of(sum(mul(host_buffer({kRows, kLength}), filled(3)), y)), 0);
}

// A constant with zeros around it is a mask.
TEST(ScaledProducts, PaddedConstantsStay) {
  const UOp mask = pad(filled(1, 4), {{Dim(0), Dim(0)}, {Dim(0), Dim(kLength - 4)}});
  const UOp masked = sum(mul(factor(), mask), factor());
  EXPECT_EQ(scale_of(masked), 0);
  expect_meaning({masked}, 1e-4);
}

// Sums of products of bf16 alone, and products of constants alone, may be infinite.
TEST(ScaledProducts, ConstantsFarFromOneStay) {
  const UOp x = factor(DType::BF16), y = factor(DType::BF16);
  for (const double c : {1e-20, 1e20, 0.0, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_EQ(scale_of(sum(mul(x, filled(c)), y)), 0) << c;
  EXPECT_EQ(scale_of(sum(mul(x, filled(1e30)), mul(y, filled(1e-30)))), 0);
}

}  // namespace
}  // namespace tuff::sched::testing
