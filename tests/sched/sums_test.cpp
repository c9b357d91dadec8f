// Products and norms made where they are read, and products that are launched beside each other:
// what kernels they are, and their values on the host.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/walk.h"
#include "sched/beside.h"
#include "sched/host_run.h"
#include "sched/models.h"
#include "sched/norms.h"
#include "sched/parts.h"
#include "sched/sums.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

constexpr int64_t kLength = 64;

Target gpu() {
  Target t = host_target("CPU");
  t.has_local = true;
  t.cores = 16;
  t.subgroup_size = 32;
  return t;
}

// Without fusion of rows, which sums of unpacked weights are too.
std::shared_ptr<const Schedule> checked(const std::vector<UOp>& sinks, const Target& target = gpu(),
                                        bool rows = false) {
  const TargetOf target_of = [&](const std::string&) -> const Target& { return target; };
  StepChoice steps;
  if (!rows) steps.skip("rows");
  const Scheduled s = schedule(sinks, target_of, {}, steps);
  const Contents contents = random_contents(s, 1);
  const RunResult got = run_schedule(s, contents);
  TensorEvaluator want(contents);
  for (size_t k = 0; k < sinks.size(); k++) {
    const Values& right = want.eval(sinks[k]);
    EXPECT_EQ(got.sinks[k].size(), right.size());
    for (size_t i = 0; i < right.size(); i++) {
      const double x = right[i].as_double();
      EXPECT_NEAR(got.sinks[k][i].as_double(), x, 1e-4 * (1 + std::abs(x)))
          << "sink " << k << " element " << i << "\n" << to_text(*s.schedule);
    }
  }
  return s.schedule;
}

UOp weight(int64_t rows) { return permute(host_buffer({rows, kLength}), {1, 0}); }
UOp vectors(int64_t count) { return host_buffer({count, kLength}); }

// Of pairs along an axis of two: x * c + (the other one) * s, with s of alternating signs.
UOp turned(const UOp& x, int64_t axis) {
  Shape along(x->shape.size(), Dim(1));
  along[size_t(axis)] = Dim(2);
  const UOp sign = reshape(host_buffer({2}), along);
  return add(mul(x, expand(reshape(host_buffer({1}), Shape(x->shape.size(), Dim(1))), x->shape)),
             mul(flip(x, {axis}), expand(sign, x->shape)));
}

TEST(Sums, AGateIsMadeWithWhatItGates) {
  const UOp x = vectors(1);
  const UOp gated = mul(relu(matmul(x, weight(96))), matmul(x, weight(96)));
  EXPECT_EQ(kernel_count(*checked({gated})), 1);
}

TEST(Sums, PairsAreTurnedBeforeTheyAreStored) {
  const UOp y = matmul(vectors(1), weight(96));
  const auto neighbours = checked({turned(reshape(y, {Dim(1), Dim(6), Dim(8), Dim(2)}), 3)});
  EXPECT_EQ(kernel_count(*neighbours), 1) << to_text(*neighbours);
  EXPECT_EQ(neighbours->calls[0].ast->src_count, 2u);
  const auto halves = checked({turned(reshape(y, {Dim(1), Dim(6), Dim(2), Dim(8)}), 2)});
  EXPECT_EQ(kernel_count(*halves), 1) << to_text(*halves);
  // Rows of the matrix are one loop, whatever they are in the result.
  for (const UOp& end : halves->calls[0].ast->src()) EXPECT_EQ(end->src_count, 2u);
}

TEST(Sums, OfSeveralVectorsToo) {
  // Sums of eight pairs would not stay in registers.
  for (const int64_t n : {2, 4, 8}) {
    const UOp y = reshape(matmul(vectors(n), weight(96)), {Dim(n), Dim(6), Dim(8), Dim(2)});
    EXPECT_EQ(kernel_count(*checked({turned(y, 3)})), n == 8 ? 2 : 1) << n;
  }
}

UOp put(const UOp& cache, const UOp& row) {
  const UOp index = host_buffer({1}, DType::I32);
  const UOp places = expand(reshape(index, {Dim(1), Dim(1)}), row->shape);
  return assign(cache, scatter(cache, row, places, {Op::Assign, 0}));
}

TEST(Sums, OneRowIsStoredByItsProduct) {
  const UOp cache = host_buffer({5, 96}), y = matmul(vectors(1), weight(96));
  EXPECT_EQ(kernel_count(*checked({put(cache, y)})), 1);
  const UOp pairs = reshape(turned(reshape(y, {Dim(1), Dim(6), Dim(8), Dim(2)}), 3), y->shape);
  EXPECT_EQ(kernel_count(*checked({put(cache, pairs)})), 1);
}

TEST(Sums, WhatOthersReadTooIsStored) {
  const UOp x = vectors(1), y = matmul(x, weight(96));
  const UOp pairs = turned(reshape(y, {Dim(1), Dim(6), Dim(8), Dim(2)}), 3);
  EXPECT_EQ(kernel_count(*checked({pairs, contiguous(y)})), 2);
  // More elements that are read together than an invocation makes at once.
  const UOp eight = reshape(y, {Dim(1), Dim(12), Dim(8)});
  EXPECT_EQ(kernel_count(*checked({add(eight, flip(eight, {2}))})), 2);
}

// x * w, divided by the root of the mean of the squares of x.
UOp normed(const UOp& x) {
  const UOp mean = mul(reduce(Op::Add, mul(x, x), {1}), number(1.0 / double(kLength)));
  const UOp scale = recip(alu(Op::Sqrt, {add(mean, number(1e-5))}));
  return mul(mul(x, expand(scale, x->shape)), broadcast(host_buffer({kLength}), x->shape));
}

std::shared_ptr<const Schedule> with_rows(const std::vector<UOp>& sinks) {
  return checked(sinks, gpu(), true);
}

TEST(Norms, WhatElementsHaveInCommonLeavesTheSum) {
  const UOp x = add(vectors(1), vectors(1)), y = normed(x);
  const UOp gated = mul(relu(matmul(y, weight(96))), matmul(y, weight(96)));
  // What is normed is stored, no more.
  const auto s = with_rows({gated});
  EXPECT_EQ(kernel_count(*s), 1) << to_text(*s);
  EXPECT_EQ(kernel_count(*with_rows({gated, contiguous(x)})), 2);
  EXPECT_EQ(kernel_count(*with_rows({matmul(y, weight(96)), matmul(y, weight(32))})), 1);
  const UOp two = normed(vectors(2));
  EXPECT_EQ(kernel_count(*with_rows({matmul(two, weight(96))})), 1);
}

TEST(Norms, StayWhereOthersReadThem) {
  const UOp x = vectors(1), y = normed(x);
  EXPECT_EQ(kernel_count(*with_rows({matmul(y, weight(96)), contiguous(y)})), 2);
  EXPECT_EQ(kernel_count(*with_rows({matmul(normed(vectors(4)), weight(96))})), 2);
  const UOp centered = layer_norm(x, host_buffer({kLength}));
  EXPECT_EQ(kernel_count(*with_rows({matmul(centered, weight(96))})), 2);
}

// The vector changes before its product: that is of the old one.
TEST(Norms, ReadNothingThatIsOverwritten) {
  const UOp a = host_buffer({1, kLength}), old = normed(a);
  with_rows({assign(a, add(a, number(1))), matmul(old, weight(96))});
  with_rows({assign(a, matmul(old, weight(kLength)))});
}

TEST(Sums, NotOfManyVectorsNorOnACpu) {
  const UOp x = vectors(1), more = vectors(kThinProduct + 1);
  const auto gated = [](const UOp& in) {
    return mul(relu(matmul(in, weight(96))), matmul(in, weight(96)));
  };
  EXPECT_EQ(kernel_count(*checked({gated(more)})), 2);
  EXPECT_EQ(kernel_count(*checked({gated(x)}, host_target("CPU"))), 2);
}

TEST(Beside, ProductsOfOneVectorAreOneLaunch) {
  const UOp x = vectors(1), cache = host_buffer({5, 32});
  const UOp q = matmul(x, weight(96)), k = matmul(x, weight(32)), v = matmul(x, weight(32));
  const UOp pairs = turned(reshape(q, {Dim(1), Dim(6), Dim(8), Dim(2)}), 3);
  const auto s = checked({pairs, put(cache, k), v});
  ASSERT_EQ(kernel_count(*s), 1) << to_text(*s);
  EXPECT_EQ(launches_of(s->calls[0].ast).size(), 3u);
}

TEST(Beside, WhatWaitsForAnotherFollowsIt) {
  const UOp x = vectors(1), y = matmul(x, weight(kLength));
  const auto s = checked({matmul(y, weight(96)), matmul(x, weight(32))});
  ASSERT_EQ(kernel_count(*s), 2) << to_text(*s);
  size_t launches = 0;
  for (const Call& c : s->calls) launches += launches_of(c.ast).size();
  EXPECT_EQ(launches, 2u);  // of one of the two kernels
}

TEST(Beside, NothingIsReadThatAnotherOneStores) {
  const UOp a = host_buffer({1, kLength}), x = vectors(1);
  const auto s = checked({assign(a, matmul(x, weight(kLength))), matmul(a, weight(96))});
  EXPECT_EQ(kernel_count(*s), 2) << to_text(*s);
}

TEST(Beside, NoMoreBuffersThanAKernelHas) {
  Target few = gpu();
  few.max_buffers = 5;
  const UOp x = vectors(1);
  const std::vector<UOp> all{matmul(x, weight(32)), matmul(x, weight(48)), matmul(x, weight(40))};
  const auto s = checked(all, few);
  EXPECT_EQ(kernel_count(*s), 2) << to_text(*s);
  for (const Call& c : s->calls) EXPECT_LE(c.args.size(), 5u);
}

}  // namespace
}  // namespace tuff::sched::testing
