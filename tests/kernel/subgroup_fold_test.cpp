// Shared reductions whose lanes hand each other their parts: kernel/lower/reduce.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "ir/kernel_floor.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/opt/neighbours.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

Target subgroups_of(uint32_t lanes) {
  Target t = builtin_target("amdgpu-gfx1100");
  t.subgroup_size = lanes;
  return t;
}
int64_t ops_of(const LinearKernel& k, Op op) {
  return std::ranges::count(k.ops, op, [](const UOp& u) { return u->op; });
}
LinearKernel lowered(const UOp& ast, const Target& t, const std::string& opts) {
  return lower_with(ast, t, parse_opts(opts));
}

// 64 rows of sums; opts as (rows, width) of a workgroup.
std::string shares(int64_t rows, int64_t width) {
  return fmt::format("{}group_reduce(1,{})", rows > 1 ? fmt::format("local(0,{}) ", rows) : "",
                     width);
}

TEST(SubgroupFolds, LanesAddUpWhatTheyShare) {
  const UOp ast = sum_ast(64, 192);
  for (const auto& [lanes, rows, width] :
       {std::tuple{32, 4, 32}, {32, 8, 16}, {32, 1, 32}, {32, 4, 8}, {64, 16, 8}, {64, 1, 64}}) {
    const LinearKernel k = lowered(ast, subgroups_of(uint32_t(lanes)), shares(rows, width));
    EXPECT_EQ(ops_of(k, Op::Barrier), 0) << k.opts;
    EXPECT_EQ(ops_of(k, Op::Shared), 0) << k.opts;
    EXPECT_EQ(ops_of(k, Op::Shuffle), std::bit_width(uint64_t(width)) - 1) << k.opts;
    EXPECT_EQ(k.subgroup_size, uint32_t(lanes));
    EXPECT_EQ(k.local, (std::array<uint32_t, 3>{uint32_t(rows * width), 1, 1})) << k.opts;
    expect_same(ast, k, 1e-5, k.opts);
  }
}

TEST(SubgroupFolds, SumsOfSubgroupsMeetInWorkgroupMemory) {
  const UOp ast = sum_ast(64, 512);
  for (const auto& [rows, width] : {std::pair{1, 64}, {2, 128}, {4, 64}, {1, 256}}) {
    const LinearKernel k = lowered(ast, subgroups_of(32), shares(rows, width));
    EXPECT_EQ(ops_of(k, Op::Shuffle), 5) << k.opts;
    EXPECT_EQ(ops_of(k, Op::Barrier), 2) << k.opts;
    EXPECT_LE(k.shared_bytes, 64u) << k.opts;  // one sum of a subgroup each, rounded up
    expect_same(ast, k, 1e-5, k.opts);
  }
}

// No whole subgroups, lanes that are not neighbours, wide numbers, or a device that promises none.
TEST(SubgroupFolds, OthersAreTreesInWorkgroupMemory) {
  const UOp ast = sum_ast(64, 192);
  const Target t = subgroups_of(32);
  for (const char* opts :
       {"local(0,3) group_reduce(1,16)", "group_reduce(1,8)", "group_reduce(1,32) local(0,4)"}) {
    const LinearKernel k = lowered(ast, t, opts);
    EXPECT_EQ(ops_of(k, Op::Shuffle), 0) << opts;
    EXPECT_GT(ops_of(k, Op::Barrier), 0) << opts;
    expect_same(ast, k, 1e-5, opts);
  }
  Target without = t;
  without.features.full_subgroups = false;
  EXPECT_EQ(ops_of(lowered(ast, without, shares(4, 32)), Op::Shuffle), 0);
}

TEST(SubgroupFolds, MaximaAndSumsOfARowShareTheirLanes) {
  const UOp ast = softmax_ast(16, 256);
  for (const char* width : {"16", "32", "64"}) {
    const std::string opts = fmt::format(
        "local(0,4) group_reduce(2,{0}) group_reduce(3,{0}) local(1,{0}) group(0,0)", width);
    const LinearKernel k = lowered(ast, subgroups_of(32), opts);
    EXPECT_GT(ops_of(k, Op::Shuffle), 0) << opts;
    expect_same(ast, k, 1e-5, opts);
  }
}

// Random graphs 1312 and 1439 of `tuff check`: a sum that is added to in place. All lanes have it, but
// one that stores it must not do so before another one has read what was there.
TEST(SubgroupFolds, WhatLanesReadIsStoredByOneOfThemBehindAll) {
  for (const bool inside : {false, true}) {  // of the sum
    AstBuilder b;
    const UOp k = b.fold(64), old = load(0, 1, index_const(0)), x = load(1, 64, k);
    const UOp sum = reduce_over(Op::Add, inside ? x * old : x, {k});
    const UOp ast = kernel_of({store(0, 1, index_const(0), inside ? sum : sum + old, {})});
    const LinearKernel kernel = lowered(ast, subgroups_of(32), "group_reduce(0,32)");
    EXPECT_EQ(ops_of(kernel, Op::Shuffle), 5) << kernel.opts;
    EXPECT_EQ(ops_of(kernel, Op::Barrier), inside ? 1 : 0) << to_text(kernel);
    for (const UOp& u : kernel.ops) {
      const Node* memory = accessed_memory(u.get());
      if (!memory || memory->get<ParamArg>().slot != 0) continue;
      EXPECT_EQ(u->src(0)->src_count == 3, u->op == Op::Store || !inside) << to_text(kernel);
    }
    expect_same(ast, kernel, 1e-5, inside ? "read in the sum" : "read beside the sum");
  }
}

TEST(SubgroupFolds, WhichAre) {
  const Target t = subgroups_of(32);
  EXPECT_TRUE(folds_in_subgroups(t, 16, 32));
  EXPECT_TRUE(folds_in_subgroups(t, 64, 128));
  EXPECT_FALSE(folds_in_subgroups(t, 12, 96));
  EXPECT_FALSE(folds_in_subgroups(t, 16, 48));
  EXPECT_FALSE(folds_in_subgroups(t, 32, 2048));  // beyond one axis of a workgroup
  EXPECT_TRUE(folds_in_subgroups(builtin_target("spirv-lavapipe"), 8, 8));
}

}  // namespace
}  // namespace tuff::kernel::testing
