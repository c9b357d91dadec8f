// What works row by row is one kernel, forwards and backwards, and what must stay apart does;
// values on the host.
#include <gtest/gtest.h>

#include "ir/gradient.h"
#include "ir/walk.h"
#include "sched/host_run.h"
#include "sched/models.h"
#include "sched/rows.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

// Of sixteen cores: too many for a few rows.
const Target& many_cores(const std::string&) {
  static const Target t = [] {
    Target x;
    x.device = "CPU";
    x.cores = 16;
    return x;
  }();
  return t;
}

// How many kernels the sinks are, after their values have been compared with the direct meaning.
int kernels(const std::vector<UOp>& sinks, double tolerance = 1e-4,
            const TargetOf& target_of = host_target) {
  return kernel_count(*expect_meaning(sinks, tolerance, target_of));
}

UOp rms_norm(const UOp& x, const UOp& weight) {
  const UOp n = number(1.0 / double(x->shape[1].value()));
  const UOp mean = mul(reduce(Op::Add, mul(x, x), {1}), n);
  const UOp scale = recip(alu(Op::Sqrt, {add(mean, number(1e-5))}));
  return mul(mul(x, expand(scale, x->shape)), broadcast(weight, x->shape));
}

UOp log_softmax(const UOp& x) {
  const UOp shifted = sub(x, expand(reduce(Op::Max, x, {1}), x->shape));
  const UOp sum = alu(Op::Log2, {reduce(Op::Add, exp(shifted), {1})});
  return sub(shifted, expand(mul(sum, number(0.6931471805599453)), x->shape));
}

// The gradient for x of f(x), given that of its result.
UOp backwards(const UOp& y, const UOp& x) {
  const UOp targets[] = {x};
  return gradients(y, contiguous(host_buffer({x->shape[0].value(), x->shape[1].value()})),
                   targets)[0];
}

TEST(Rows, SoftmaxIsOneKernel) {
  const UOp s = softmax(host_buffer({8, 16}));
  EXPECT_EQ(kernels({s}), 1);
  EXPECT_EQ(to_text(*schedule(std::vector<UOp>{s}, host_target).schedule),
            "kernel k0 out0 <- in0\n"
            "    v0 = max_reduce(p1[r0*16 + r2]; r2:16)\n"
            "    r0:8 r1:16: p0[r0*16 + r1] = mul(exp2(mul(sub(p1[r0*16 + r1], v0), "
            "1.4426950216293335)), recip(add_reduce(exp2(mul(sub(p1[r0*16 + r3], v0), "
            "1.4426950216293335)); r3:16)))\n");
}

TEST(Rows, NormsAreOneKernel) {
  EXPECT_EQ(kernels({layer_norm(host_buffer({8, 16}), host_buffer({16}))}), 1);
  EXPECT_EQ(kernels({rms_norm(host_buffer({8, 16}), host_buffer({16}))}), 1);
  EXPECT_EQ(kernels({log_softmax(host_buffer({8, 16}))}), 1);
}

// However few rows there are; also of 16-bit floats, which are not handed on to what has columns.
TEST(Rows, RowValuesThatNeedEachOtherAreOneKernel) {
  for (const DType t : {DType::F32, DType::F16}) {
    const UOp x = host_buffer({2, 4096}, t);
    const UOp max = reduce(Op::Max, x, {1});
    const UOp range = reduce(Op::Max, sub(expand(max, x->shape), x), {1});
    EXPECT_EQ(kernels({max, range}, 1e-2, many_cores), 1) << name(t);
  }
}

TEST(Rows, TheyTakeWhatStandsBeforeAndAfter) {
  const UOp x = mul(add(host_buffer({8, 16}), host_buffer({8, 16})), number(0.5));
  EXPECT_EQ(kernels({relu(add(softmax(x), host_buffer({8, 16})))}), 1);
  EXPECT_EQ(kernels({relu(layer_norm(x, host_buffer({16})))}), 1);
}

TEST(Rows, OddOnesAreOneKernelToo) {
  for (const auto& [rows, columns] : {std::pair{1, 16}, {7, 1}, {13, 17}, {1, 1}, {31, 2}}) {
    EXPECT_LE(kernels({softmax(host_buffer({rows, columns}))}), 1) << rows << " x " << columns;
    EXPECT_LE(kernels({layer_norm(host_buffer({rows, columns}), host_buffer({columns}))}), 1)
        << rows << " x " << columns;
  }
  EXPECT_EQ(kernels({softmax(host_buffer({0, 4}))}), 0);
}

TEST(Rows, SumsOverCountersAreTakenIn) {
  const UOp x = host_buffer({8, 16}), label = host_buffer({8, 1});
  const UOp column = expand(reshape(iota(Dim(16), DType::F32), {Dim(1), Dim(16)}), x->shape);
  const UOp one_hot = alu(Op::CmpLt, {column, expand(label, x->shape)});
  const UOp count = reduce(Op::Add, cast(one_hot, DType::F32), {1});
  EXPECT_EQ(kernels({mul(x, expand(count, x->shape))}), 1);
}

TEST(Rows, RowsOfSeveralAxesAreRows) {
  const UOp x = host_buffer({2, 3, 4, 5});
  const UOp centered = sub(x, expand(mul(reduce(Op::Add, x, {3}), number(0.2)), x->shape));
  EXPECT_EQ(kernels({centered}), 1);
  const UOp t = permute(centered, {0, 2, 1, 3});
  EXPECT_EQ(kernels({contiguous(t)}), 1);
}

TEST(Rows, BackwardsOfASoftmaxIsOneKernel) {
  const UOp x = host_buffer({8, 16});
  const UOp y = contiguous(softmax(x));
  EXPECT_EQ(kernels({y, backwards(y, x)}), 2);  // forwards, backwards
}

TEST(Rows, BackwardsOfNormsIsOneKernel) {
  for (const bool centered : {false, true}) {
    const UOp x = contiguous(host_buffer({8, 16})), w = host_buffer({16});
    const UOp y = contiguous(centered ? layer_norm(x, w) : rms_norm(x, w));
    EXPECT_LE(kernels({y, backwards(y, x)}), 3) << centered;  // the copy, forwards, backwards
  }
}

TEST(Rows, WhatOthersReadIsStoredBesides) {
  const UOp x = host_buffer({8, 16});
  const UOp top = reduce(Op::Max, x, {1});
  const UOp y = sub(x, expand(top, x->shape));
  const UOp total = reduce(Op::Add, top, {0});
  const auto s = schedule(std::vector<UOp>{y, top, total}, host_target).schedule;
  EXPECT_EQ(s->calls[0].output_count, 2u) << to_text(*s);
  EXPECT_EQ(kernels({y, top, total}), 2);
}

TEST(Rows, TooFewRowsStayApart) {
  const auto count = [](const UOp& u) {
    return kernel_count(*schedule(std::vector<UOp>{u}, many_cores).schedule);
  };
  EXPECT_EQ(count(softmax(host_buffer({8, 1024}))), 2);
  EXPECT_EQ(count(softmax(host_buffer({8, 16}))), 1);  // few elements
  EXPECT_EQ(count(softmax(host_buffer({64, 1024}))), 1);
  const UOp all = host_buffer({8192});
  const UOp mean = mul(reduce(Op::Add, all, {0}), number(1.0 / 8192));
  EXPECT_EQ(count(sub(all, expand(mean, all->shape))), 2);
}

TEST(Rows, RowsThatLieAcrossMemoryStayApart) {
  const UOp x = host_buffer({16, 24});
  EXPECT_EQ(kernels({sub(x, expand(reduce(Op::Max, x, {0}), x->shape))}), 2);
}

TEST(Rows, ValuesOfAnotherRowStayApart) {
  const UOp x = host_buffer({8, 16});
  const UOp turned = reduce(Op::Max, x, {1});
  const UOp next = shrink(pad(turned, {{0, 1}, {0, 0}}), {{1, 9}, {0, 1}});
  EXPECT_EQ(kernels({add(sub(x, expand(turned, x->shape)), expand(next, x->shape))}), 2);
}

TEST(Rows, RowsThatAreOverwrittenKeepTheirOldContents) {
  const UOp x = host_buffer({8, 16});
  const UOp y = sub(x, expand(reduce(Op::Max, x, {1}), x->shape));
  EXPECT_EQ(kernels({assign(x, y)}), 2);
}

TEST(Rows, SymbolicRowsAndColumns) {
  const Dim n(variable("n", 1, 8));
  const UOp rows = shrink(host_buffer({8, 16}), {{Dim(0), n}, {Dim(0), Dim(16)}});
  EXPECT_EQ(kernel_count(*schedule(std::vector<UOp>{softmax(rows)}, host_target).schedule), 1);
  const UOp columns = shrink(host_buffer({16, 8}), {{Dim(0), Dim(16)}, {Dim(0), n}});
  EXPECT_EQ(kernel_count(*schedule(std::vector<UOp>{softmax(columns)}, host_target).schedule), 1);
}

}  // namespace
}  // namespace tuff::sched::testing
