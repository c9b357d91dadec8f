// Which element-wise kernels become one, and that what they compute stays the same bit for bit.
#include <gtest/gtest.h>

#include <random>

#include "ir/walk.h"
#include "sched/host_run.h"
#include "sched/merge.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

// Two moments and the parameter, as AdamW updates them; `rate` is a scalar in memory.
struct Parameter {
  UOp value, moment, square;
};
Parameter parameter(int64_t n) { return {host_buffer({n}), host_buffer({n}), host_buffer({n})}; }
void append_update(std::vector<UOp>& sinks, const Parameter& p, const UOp& gradient,
                   const UOp& rate) {
  const UOp m = assign(p.moment, add(mul(p.moment, number(0.5)), gradient));
  const UOp v = assign(p.square, add(mul(p.square, number(0.25)), mul(gradient, gradient)));
  const UOp step = mul(m, recip(add(v, number(4))));
  sinks.push_back(
      assign(p.value, sub(p.value, mul(step, broadcast(reshape(rate, {Dim(1)}), m->shape)))));
  sinks.push_back(m);
  sinks.push_back(v);
}

const Storage* storage_below(const Node* n) {
  while (n->op == Op::Assign || n->op == Op::Reshape) n = n->src(0).get();
  return n->get<Ref<Storage>>().get();
}

void expect_exact(const std::vector<UOp>& sinks, uint32_t seed, const TargetOf& target_of) {
  const Scheduled s = schedule(sinks, target_of);
  const Contents contents = random_contents(s, seed);
  const RunResult got = run_schedule(s, contents);
  TensorEvaluator want(contents);
  for (size_t k = 0; k < sinks.size(); k++) {
    ASSERT_EQ(got.sinks[k], want.eval(sinks[k])) << "seed " << seed << " sink " << k << "\n"
                                                 << to_text(*s.schedule);
    if (sinks[k]->op == Op::Assign) {
      ASSERT_EQ(got.storages.at(storage_below(sinks[k].get())->id), want.eval(sinks[k]))
          << "seed " << seed << " storage of sink " << k << "\n"
          << to_text(*s.schedule);
    }
  }
}

std::vector<UOp> optimizer_step(std::initializer_list<int64_t> sizes) {
  std::vector<UOp> sinks;
  const UOp rate = host_buffer({1});
  for (int64_t n : sizes) append_update(sinks, parameter(n), host_buffer({n}), rate);
  return sinks;
}

TEST(Merge, MomentsAndParameterAreOneKernel) {
  const std::vector<UOp> sinks = optimizer_step({96});
  const auto s = schedule(sinks, host_target).schedule;
  ASSERT_EQ(kernel_count(*s), 1) << to_text(*s);
  EXPECT_EQ(s->calls[0].output_count, 3u);
  EXPECT_EQ(s->calls[0].args.size(), 5u);
  expect_exact(sinks, 1, host_target);
}

TEST(Merge, ParametersOfAllSizesAreNestsOfOneKernel) {
  const std::vector<UOp> sinks = optimizer_step({96, 1, 7, 1024, 96});
  const auto s = schedule(sinks, host_target).schedule;
  EXPECT_EQ(kernel_count(*s), 1) << to_text(*s);
  expect_exact(sinks, 2, host_target);
}

TEST(Merge, AsManyAsBuffersAllow) {
  Target few = host_target("CPU");
  few.max_buffers = 9;  // two parameters: 2 x (value, two moments, gradient) and the rate
  const TargetOf target_of = [&](const std::string&) -> const Target& { return few; };
  const std::vector<UOp> sinks = optimizer_step({96, 5, 7, 1024});
  const auto s = schedule(sinks, target_of).schedule;
  EXPECT_EQ(kernel_count(*s), 2) << to_text(*s);
  for (const Call& c : s->calls) EXPECT_LE(c.args.size(), 9u);
  expect_exact(sinks, 3, target_of);
}

TEST(Merge, LargeLoopsStayApart) {
  const UOp a = host_buffer({kMaxNestElements}), b = host_buffer({100});
  EXPECT_EQ(kernel_count(*schedule(std::vector<UOp>{neg(a), neg(b)}, host_target).schedule), 1);
  const UOp c = host_buffer({kMaxNestElements + 1});
  EXPECT_EQ(kernel_count(*schedule(std::vector<UOp>{neg(c), neg(b)}, host_target).schedule), 2);
  EXPECT_EQ(kernel_count(*schedule(std::vector<UOp>{neg(b), neg(c)}, host_target).schedule), 2);
}

// Rows of a part have two loops, what reads their result element by element has one, and the other
// way round.
TEST(Merge, ReadersWalkInLoopsOfTheirOwn) {
  const UOp wide = host_buffer({8, 64}), a = host_buffer({8, 16}), b = host_buffer({8, 16});
  const UOp part = shrink(wide, {{Dim(0), Dim(8)}, {Dim(16), Dim(32)}});
  const UOp stored = assign(a, mul(part, part)), reader = assign(b, add(stored, b));
  std::vector<UOp> sinks{stored, reader};
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target).schedule), 1);
  expect_exact(sinks, 6, host_target);

  const UOp first = assign(a, mul(a, a)), second = assign(b, add(first, part));
  sinks = {first, second};
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target).schedule), 1);
  expect_exact(sinks, 7, host_target);
}

TEST(Merge, WhatIsReadInAnotherOrderStaysApart) {
  const UOp a = host_buffer({8, 8});
  const UOp stored = assign(a, add(a, number(1)));
  const UOp turned = contiguous(permute(stored, {1, 0}));
  const std::vector<UOp> sinks{stored, turned};
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target).schedule), 2);
  expect_exact(sinks, 4, host_target);
}

TEST(Merge, MemoryInCommonIsNotMergedAcross) {
  const UOp a = host_buffer({64}), b = host_buffer({32});
  const std::vector<UOp> sinks{assign(a, neg(a)), assign(b, neg(b))};
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target).schedule), 1);
  const MemoryOf overlapping = [&](const Storage& s) {
    return s.count == 64 ? MemoryPart{1, 0, 256} : MemoryPart{1, 128, 256};
  };
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target, overlapping).schedule), 2);
  const MemoryOf beside = [&](const Storage& s) {
    return s.count == 64 ? MemoryPart{1, 0, 256} : MemoryPart{1, 256, 384};
  };
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target, beside).schedule), 1);
}

TEST(Merge, ColumnSumsAreNestsAndTheirReadersJoinThem) {
  const Parameter bias = parameter(32);
  const UOp gradients = host_buffer({48, 32}), others = host_buffer({20, 6});
  const UOp gradient = reshape(reduce(Op::Add, gradients, {0}), {Dim(32)});
  std::vector<UOp> sinks{reduce(Op::Add, others, {0})};
  append_update(sinks, bias, gradient, host_buffer({1}));
  const auto s = schedule(sinks, host_target).schedule;
  EXPECT_EQ(kernel_count(*s), 1) << to_text(*s);
  expect_exact(sinks, 5, host_target);
}

const Target& gpu(const std::string&) {
  static const Target t = [] {
    Target x = host_target("CPU");
    x.has_local = true;
    return x;
  }();
  return t;
}

// Of two matrices, which other kernels read.
UOp stored_product() {
  const auto repeated = [](const UOp& x, const Shape& as) {
    return expand(reshape(x, as), {Dim(6), Dim(5), Dim(8)});
  };
  return contiguous(reduce(Op::Add,
                           mul(repeated(host_buffer({6, 8}), {Dim(6), Dim(1), Dim(8)}),
                               repeated(host_buffer({5, 8}), {Dim(1), Dim(5), Dim(8)})),
                           {2}));
}

TEST(Merge, ReadersOfAProductAreStoredByIt) {
  const UOp product = stored_product();
  const UOp whole = reshape(product, {Dim(30)});
  const std::vector<UOp> sinks{product, mul(whole, add(whole, number(2)))};
  const auto s = schedule(sinks, gpu).schedule;
  EXPECT_EQ(kernel_count(*s), 1) << to_text(*s);
  EXPECT_EQ(kernel_count(*schedule(sinks, host_target).schedule), 2);
  expect_exact(sinks, 6, gpu);
}

// A register has a narrow float as memory does where it has been converted to it, or where the device
// computes in it.
TEST(Merge, ReadersOfANarrowProductAreStoredByItWhereItIsRounded) {
  const UOp product = cast(stored_product(), DType::F16);
  for (const bool converted : {true, false}) {
    const UOp narrow = contiguous(converted ? product : add(product, product));
    const UOp wide = reshape(cast(narrow, DType::F32), {Dim(30)});
    const std::vector<UOp> sinks{narrow, mul(wide, add(wide, number(2)))};
    for (const bool halves : {true, false}) {
      Target t = gpu("");
      t.features.f16 = halves;
      const TargetOf target_of = [&](const std::string&) -> const Target& { return t; };
      const auto s = schedule(sinks, target_of).schedule;
      EXPECT_EQ(kernel_count(*s), converted || halves ? 1 : 2) << to_text(*s);
      expect_exact(sinks, 8, target_of);
    }
  }
}

// Tiles of a product may overlap: what they update in place would be updated twice.
TEST(Merge, WhatAProductWouldUpdateInPlaceStaysApart) {
  const UOp product = stored_product();
  const UOp sum = host_buffer({30});
  const std::vector<UOp> sinks{product, assign(sum, add(sum, reshape(product, {Dim(30)})))};
  EXPECT_EQ(kernel_count(*schedule(sinks, gpu).schedule), 2);
  expect_exact(sinks, 7, gpu);
}

TEST(Merge, RowSumsAndLongColumnsStayApart) {
  const std::vector<UOp> rows{reduce(Op::Add, host_buffer({48, 32}), {1}),
                              reduce(Op::Add, host_buffer({20, 6}), {1})};
  EXPECT_EQ(kernel_count(*schedule(rows, host_target).schedule), 2);
  const std::vector<UOp> columns{reduce(Op::Add, host_buffer({8192, 4}), {0}),
                                 reduce(Op::Add, host_buffer({20, 6}), {0})};
  EXPECT_EQ(kernel_count(*schedule(columns, host_target).schedule), 2);
}

// Chains over a few vectors, assigned in place and read before and after, with reductions between.
std::vector<UOp> random_sinks(uint32_t seed) {
  std::mt19937 rng(seed);
  auto pick = [&](size_t n) { return size_t(rng() % n); };
  static constexpr int64_t sizes[] = {1, 2, 7, 13, 16, 64};
  std::vector<UOp> vectors, sinks;
  for (int i = 0; i < 6; i++) vectors.push_back(host_buffer({sizes[pick(6)]}));
  for (int step = 0; step < 14; step++) {
    UOp& target = vectors[pick(vectors.size())];
    UOp other = vectors[pick(vectors.size())];
    if (!(other->shape == target->shape))
      other = expand(reduce(pick(2) ? Op::Add : Op::Max, other, {0}), target->shape);
    const UOp value = add(mul(target, number(0.5)), other);
    if (pick(3)) {
      target = assign(target, value);
    } else {
      sinks.push_back(value);
    }
  }
  for (const UOp& v : vectors) {
    if (v->op == Op::Assign) sinks.push_back(v);
  }
  return sinks;
}

TEST(Merge, RandomUpdatesKeepTheirBits) {
  size_t several = 0;
  for (uint32_t seed = 0; seed < 1500; seed++) {
    const std::vector<UOp> sinks = random_sinks(seed);
    if (sinks.empty()) continue;
    expect_exact(sinks, seed, host_target);
    if (HasFatalFailure()) return;
    for (const Call& c : schedule(sinks, host_target).schedule->calls)
      several += c.output_count > 1;
  }
  EXPECT_GT(several, 300u);
}

}  // namespace
}  // namespace tuff::sched::testing
