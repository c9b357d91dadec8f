// What lanes of a subgroup do for each other: when loads are shared and reductions folded by
// shuffles, when not, and that both keep the meaning.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

size_t count(const LinearKernel& k, Op op) {
  return size_t(
      std::count_if(k.ops.begin(), k.ops.end(), [&](const UOp& u) { return u->op == op; }));
}
Target subgroups(uint32_t size) {
  Target t = builtin_target("spirv-lavapipe");
  t.subgroup_size = size;
  return t;
}
const Opt kRows{OptKind::Upcast, 0, 8}, kColumns{OptKind::Local, 1, 8};

TEST(SharedLoads, ALoadThatAllLanesWouldDoIsDividedAmongThem) {
  const UOp ast = matmul_ast(16, 24, 40);
  const LinearKernel k = lower_with(ast, subgroups(8), {kRows, kColumns});
  EXPECT_EQ(count(k, Op::Shuffle), 1u)
      << to_text(k);  // the left operand; the right one has columns
  expect_same(ast, k, 1e-5, "shared");
  const std::string skipped[] = {"shared-loads"};
  EXPECT_EQ(count(lower_with(ast, subgroups(8), {kRows, kColumns}, skipped), Op::Shuffle), 0u);
}

TEST(SharedLoads, PaddedColumnsAndSeveralTilesKeepTheMeaning) {
  const Target t = subgroups(8);
  const UOp padded = matmul_ast(16, 20, 7);
  LinearKernel k = lower_with(padded, t, {kRows, kColumns});
  EXPECT_EQ(count(k, Op::Shuffle), 1u);
  expect_same(padded, k, 1e-5, "20 columns");
  const UOp ast = matmul_ast(32, 32, 24);
  k = lower_with(
      ast, t,
      {kRows, {OptKind::Upcast, 0, 2}, {OptKind::Upcast, 1, 2}, kColumns, {OptKind::Unroll, 2, 4}});
  EXPECT_EQ(count(k, Op::Shuffle), 1u);
  expect_same(ast, k, 1e-5, "two rows to a lane");
  k = lower_with(ast, t, {{OptKind::Upcast, 0, 2}, kRows, kColumns, {OptKind::Group, 0, 0}});
  expect_same(ast, k, 1e-5, "rows side by side in a lane");
}

TEST(SharedLoads, OnlyWhereTheWorkgroupIsOneSubgroupAndLoadsAreDear) {
  const UOp ast = matmul_ast(16, 32, 40);
  const auto shuffled = [&](const Target& t, std::vector<Opt> opts) {
    const LinearKernel k = lower_with(ast, t, std::move(opts));
    expect_same(ast, k, 1e-5, k.opts);
    return count(k, Op::Shuffle);
  };
  EXPECT_EQ(shuffled(subgroups(8), {kRows, {OptKind::Local, 1, 16}}), 0u);
  EXPECT_EQ(shuffled(subgroups(8), {kRows, {OptKind::Local, 1, 4}}), 0u);
  EXPECT_EQ(shuffled(subgroups(8), {{OptKind::Upcast, 0, 4}, kColumns}), 0u);
  EXPECT_EQ(shuffled(subgroups(4), {kRows, kColumns}), 0u);
  EXPECT_EQ(shuffled(subgroups(4), {{OptKind::Upcast, 0, 4}, {OptKind::Local, 1, 4}}), 1u);
  Target t = subgroups(8);
  t.load_cost = 1;
  EXPECT_EQ(shuffled(t, {kRows, kColumns}), 0u);
  t = subgroups(8);
  t.features.subgroup_shuffle = false;
  EXPECT_EQ(shuffled(t, {kRows, kColumns}), 0u);
}

TEST(SharedLoads, AReductionSharedByASubgroupNeedsNoMemory) {
  const UOp ast = softmax_ast(4, 64);
  const std::vector<Opt> opts{{OptKind::Unroll, 2, 4}, {OptKind::GroupReduce, 2, 8},
                              {OptKind::Unroll, 3, 4}, {OptKind::GroupReduce, 3, 8},
                              {OptKind::Vector, 1, 4}, {OptKind::Local, 1, 8}};
  LinearKernel k = lower_with(ast, subgroups(8), opts);
  EXPECT_EQ(count(k, Op::Shuffle), 2u);
  EXPECT_EQ(count(k, Op::Shared) + count(k, Op::Barrier), 0u);
  expect_same(ast, k, 1e-5, "by shuffles");
  Target without = subgroups(8);
  without.features.subgroup_shuffle = false;
  k = lower_with(ast, without, opts);
  EXPECT_EQ(count(k, Op::Shuffle), 0u);
  EXPECT_EQ(count(k, Op::Shared), 2u);
  expect_same(ast, k, 1e-5, "in workgroup memory");
  EXPECT_EQ(count(lower_with(ast, subgroups(32), opts), Op::Shuffle), 0u);
}

// The value is the same in all invocations, and nothing else is shared: the workgroup is one of
// one.
TEST(SharedLoads, AReductionOfWhatNoLaneChangesIsAProduct) {
  AstBuilder b;
  const UOp i = b.loop(6), r = b.fold(8);
  const UOp ast = kernel_of({store(0, 6, i, reduce_over(Op::Add, load(1, 6, i), {r}), {i})});
  const LinearKernel k = lower_with(ast, subgroups(8), {{OptKind::GroupReduce, 1, 8}});
  EXPECT_EQ(count(k, Op::Shuffle), 0u) << to_text(k);
  expect_same(ast, k, 1e-5, "no lane");
}

// What the heuristics choose on lavapipe: a tile by the subgroup, whatever the operands' layouts,
// and never more than one subgroup in its workgroup.
TEST(SharedLoads, HeuristicsTileProductsBySubgroups) {
  const Target t = builtin_target("spirv-lavapipe");
  for (const int64_t n : {64, 128, 256}) {
    const LinearKernel k = lower(matmul_ast(n, n, 64), t);
    EXPECT_EQ(count(k, Op::Shuffle), 1u) << to_text(k);
    EXPECT_EQ(k.local, (std::array<uint32_t, 3>{8, 1, 1}));
  }
  expect_same(matmul_ast(64, 64, 20), lower(matmul_ast(64, 64, 20), t), 1e-5, "chosen");
  Target bound = t;
  bound.features.device_address = false;
  expect_same(matmul_ast(64, 64, 20), lower(matmul_ast(64, 64, 20), bound), 1e-5, "bound buffers");
  const LinearKernel odd = lower(matmul_ast(63, 61, 67), t);
  EXPECT_EQ(count(odd, Op::Shuffle), 1u) << to_text(odd);
  expect_same(matmul_ast(63, 61, 67), odd, 1e-5, "odd sizes");
}

}  // namespace
}  // namespace tuff::kernel::testing
