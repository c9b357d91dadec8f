// Stores by index: what calls they are, and their values on the host. Indexes of random contents
// are -2 to 2: some outside, most more than once.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

UOp index_buffer(std::initializer_list<int64_t> shape) { return host_buffer(shape, DType::I32); }
UOp rows(const UOp& index, const Shape& shape) {
  return expand(reshape(index, {index->shape[0], Dim(1)}), shape);
}
UOp added(const UOp& to, const UOp& value, const UOp& index, int64_t axis = 0) {
  return scatter(to, value, index, {Op::Add, axis});
}

TEST(Scatter, TheTargetIsStoredAndThenWhatComesToIt) {
  const UOp x = host_buffer({3, 8}), v = host_buffer({5, 8});
  const std::vector<UOp> sinks{added(mul(x, number(2)), v, rows(index_buffer({5}), v->shape))};
  const std::string place = "cast(load(index(p1, r0)))",
                    to = "p0[r1 + " + place + " % 3*8 if !(" + place + " < 0) & " + place + " < 3]";
  EXPECT_EQ(to_text(*schedule(sinks, host_target).schedule),
            "kernel k0 out0 <- in0\n"
            "    r0:24: p0[r0] = mul(p1[r0], 2)\n"
            "kernel k1 out0 <- in2 in1\n"
            "    r0:5 in order r1:8: " + to + " = add(" + to + ", p2[r0*8 + r1])\n");
  expect_meaning(sinks, 1e-6);
}

TEST(Scatter, InPlaceItStoresNothingElse) {
  const UOp x = host_buffer({3, 8}), v = host_buffer({5, 8});
  const UOp after = assign(x, added(x, v, rows(index_buffer({5}), v->shape)));
  const std::shared_ptr<const Schedule> s = expect_meaning({after}, 1e-6);
  ASSERT_EQ(s->calls.size(), 1u) << to_text(*s);
  EXPECT_EQ(s->buffers[s->calls[0].args[0]].origin, BufferOrigin::Input);
}

TEST(Scatter, OldContentsAreReadBefore) {
  const UOp x = host_buffer({3, 8}), v = host_buffer({5, 8}), i = index_buffer({5});
  const UOp doubled = reduce(Op::Add, mul(x, number(2)), {0});
  const UOp after = assign(x, added(mul(x, number(3)), v, rows(i, v->shape)));
  const std::shared_ptr<const Schedule> s = expect_meaning({after, doubled}, 1e-5);
  EXPECT_EQ(s->calls.size(), 3u) << to_text(*s);
  // A reader that needs the new contents, too, has a copy.
  const UOp sums = expand(reduce(Op::Add, after, {1}), x->shape);
  expect_meaning({after, add(mul(x, number(2)), after)}, 1e-5);
  expect_meaning({after, add(x, sums)}, 1e-5);
}

TEST(Scatter, WhatItReadsOfItsOwnTargetIsReadBefore) {
  const UOp x = host_buffer({4, 8}), i = index_buffer({4});
  const UOp other = flip(x, {0});
  for (const Op op : {Op::Add, Op::Assign}) {
    const UOp after = assign(x, scatter(x, other, rows(i, x->shape), {op, 0}));
    expect_meaning({after}, 1e-6);
  }
  const UOp counts = reshape(buffer(make_ref<Storage>("CPU", DType::I32, 4)), {4});
  expect_meaning({assign(counts, scatter(counts, counts, counts, {Op::Add, 0}))}, 0);
}

TEST(Scatter, OneAfterTheOther) {
  const UOp x = host_buffer({3, 4}), v = host_buffer({2, 4}), i = index_buffer({2});
  const UOp once = added(x, v, rows(i, v->shape)), twice = added(once, v, rows(i, v->shape));
  EXPECT_EQ(expect_meaning({twice}, 1e-6)->calls.size(), 3u) << "a copy, and both";
  EXPECT_EQ(expect_meaning({once, twice}, 1e-6)->calls.size(), 4u);
  expect_meaning({assign(x, twice), once}, 1e-6);
  const UOp stored = assign(x, once);
  const UOp both = assign(stored, added(stored, v, rows(i, v->shape)));
  const auto in_place = expect_meaning({both}, 1e-6);
  EXPECT_EQ(in_place->calls.size(), 2u) << to_text(*in_place);
  // What the second one reads of the first is there only in between.
  const UOp reads = added(stored, shrink(stored, {{1, 3}, {0, 4}}), rows(i, v->shape));
  expect_meaning({assign(stored, reads)}, 1e-6);
  expect_meaning({assign(stored, added(stored, shrink(x, {{1, 3}, {0, 4}}), rows(i, v->shape)))},
                 1e-6);
}

// Workgroups go through all of the index, each for places of its own; a device that makes few
// iterations does so in several kernels.
TEST(Scatter, OnGpusInvocationsHavePlacesOfTheirOwn) {
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  gpu.cores = 2;
  gpu.subgroup_size = 4;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  for (const uint64_t most : {0, 6}) {
    gpu.max_loop_trips = most;
    for (const int64_t n : {1, 3, 16, 45}) {
      const UOp v = host_buffer({10, 3}), i = index_buffer({10});
      for (const Op op : {Op::Add, Op::Assign, Op::Max}) {
        const UOp x = host_buffer({n, 3});
        const auto s = expect_meaning({scatter(x, v, rows(i, v->shape), {op, 0})}, 1e-6, target_of);
        EXPECT_EQ(s->calls.size(), most ? 5u : 2u) << to_text(*s);
      }
    }
  }
}

// More of them than places: runs of the index have places of their own, which are added up.
TEST(Scatter, OnGpusRunsOfLongIndexesAreCombinedBesideEachOther) {
  Target gpu = host_target("CPU");
  gpu.has_local = true;
  gpu.cores = 2;
  gpu.subgroup_size = 8;
  const TargetOf target_of = [&](const std::string&) -> const Target& { return gpu; };
  for (const int64_t n : {1024, 1999}) {
    const UOp v = host_buffer({n, 3}), i = index_buffer({n}), x = host_buffer({3, 3});
    for (const Op op : {Op::Add, Op::Max}) {
      const UOp made = scatter(x, v, rows(i, v->shape), {op, 0});
      const auto s = expect_meaning({made}, 1e-4, target_of);
      EXPECT_NE(to_text(*s).find("_reduce("), std::string::npos) << to_text(*s);
    }
    expect_meaning({scatter(x, v, rows(i, v->shape), {Op::Assign, 0})}, 0, target_of);
  }
}

TEST(Scatter, IndexesThatNameNoElementTwice) {
  const UOp v = host_buffer({6, 3});
  const UOp turned = add(cast(flip(iota(6, DType::I32), {0}), DType::I32),
                         constant(DType::I32, 2));  // 7 ... 2
  const UOp i = rows(contiguous(make(Op::Copy, DType::I32, {turned}, Placement{{"CPU"}})), v->shape);
  const UOp x = host_buffer({7, 3});
  for (const Op op : {Op::Add, Op::Assign})
    expect_meaning({scatter(x, v, i, {op, 0, Named::Once})}, 1e-6);
  const UOp all = sub(i, expand(reshape(constant(DType::I32, 2), {1, 1}), i->shape));
  const UOp none = expand(reshape(number(0), {1, 1}), {Dim(6), Dim(3)});
  const auto s = expect_meaning({scatter(none, v, all, {Op::Assign, 0, Named::All})}, 0);
  EXPECT_EQ(s->calls.size(), 2u) << to_text(*s);
}

TEST(Scatter, RandomShapesAndAxes) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t n) { return int64_t(random() % uint64_t(n)) + 1; };
  for (int round = 0; round < 60; round++) {
    Shape to{Dim(pick(3)), Dim(pick(4)), Dim(pick(3))}, from = to;
    const auto axis = size_t(random() % 3);
    from[axis] = Dim(pick(6));
    const auto memory = [&](const Shape& s, DType t) {
      return reshape(buffer(make_ref<Storage>("CPU", t, element_count(s))), s);
    };
    const DType t = round % 3 == 0 ? DType::I32 : DType::F32;
    const Op op = std::array{Op::Add, Op::Mul, Op::Max, Op::Assign}[size_t(round) % 4];
    const UOp x = memory(to, t), v = memory(from, t), i = memory(from, DType::I32);
    const UOp made = scatter(x, round % 2 ? v : mul(v, v), i, {op, int64_t(axis)});
    expect_meaning({round % 5 ? made : assign(x, made)}, 1e-5);
    expect_meaning({add(made, x)}, 1e-5);
  }
}

}  // namespace
}  // namespace tuff::sched::testing
