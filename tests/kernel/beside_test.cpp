// Launches beside each other: one list with a branch for each, the same values as each has alone,
// and what a launch of all of them is.
#include <gtest/gtest.h>

#include <set>

#include "ir/kernel_floor.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"
#include "sched/beside.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

// The nests of several kernels, with buffers and loops of their own.
UOp beside(const std::vector<UOp>& kernels) {
  std::vector<UOp> ends;
  int32_t ranges = 0, params = 0;
  for (const UOp& k : kernels) {
    UOpMap<UOp> own;
    int32_t next_range = ranges, next_param = params;
    for (const Node* n : toposort(k)) {
      if (n->op == Op::Range) {
        const RangeArg& arg = n->get<RangeArg>();
        own.emplace(UOp(n), range(n->src(0), ranges + arg.id, arg.kind));
        next_range = std::max(next_range, ranges + arg.id + 1);
      } else if (n->op == Op::Param) {
        const ParamArg& arg = n->get<ParamArg>();
        own.emplace(UOp(n), param(params + arg.slot, n->dtype, arg.count));
        next_param = std::max(next_param, params + arg.slot + 1);
      }
    }
    const UOp moved = substitute(k, own);
    ends.insert(ends.end(), moved->src().begin(), moved->src().end());
    ranges = next_range, params = next_param;
  }
  return sink(ends);
}

std::vector<UOp> products() {
  return {packed_sum_ast(32, 8), packed_sum_ast(8, 8), packed_sum_ast(12, 4)};
}

bool is_opened(const LinearKernel& k, AxisKind kind) {
  return std::ranges::any_of(k.ops, [&](const UOp& u) {
    return u->op == Op::Range && u->get<RangeArg>().kind == kind && !u->src(0)->is_const();
  });
}

TEST(Beside, SameValuesOnEveryTarget) {
  const UOp ast = beside(products());
  ASSERT_EQ(sched::launches_of(ast).size(), 3u);
  for (const NamedTarget& t : test_targets()) {
    for (const uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const std::string what = fmt::format("{} seed {}", t.name, seed);
      LinearKernel k;
      ASSERT_NO_THROW(k = lower(ast, t.target, {.random_seed = seed})) << what;
      ASSERT_NO_THROW(check_linear_spec(k.ops, "lower")) << what << "\n" << to_text(k);
      ASSERT_NO_THROW(expect_same(ast, k, 1e-5, what)) << what << "\n" << to_text(k);
    }
  }
}

// The sum of a vector's squares, which all rows of a matrix have in common, is made by the loop of
// their products; also where rows are a loop of their own, and of a matrix that is packed.
UOp normed_ast(int64_t rows, int64_t length, bool packed) {
  AstBuilder b;
  const UOp row = b.loop(rows), k = b.fold(length), x = load(1, length, k);
  const DType stored = packed ? DType::U8 : DType::F32;
  const UOp weight = cast(load(2, rows * length, row * length + k, stored), DType::F32);
  const UOp sum = reduce_over(Op::Add, weight * x, {k}), squares = reduce_over(Op::Add, x * x, {k});
  const UOp scale = alu(Op::Recip, {alu(Op::Sqrt, {squares + constant(DType::F32, 1)})});
  return kernel_of({store(0, rows, row, sum * scale, {row})});
}

TEST(Beside, SquaresAreSummedWithProducts) {
  for (const NamedTarget& t : test_targets()) {
    for (const bool packed : {false, true}) {
      for (const auto& [rows, length] : {std::pair(24, 512), std::pair(9, 131), std::pair(1, 96)}) {
        const UOp ast = normed_ast(rows, length, packed);
        for (const uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
          const std::string what = fmt::format("{} {}x{} seed {}", t.name, rows, length, seed);
          LinearKernel k;
          ASSERT_NO_THROW(k = lower(ast, t.target, {.random_seed = seed})) << what;
          ASSERT_NO_THROW(check_linear_spec(k.ops, "lower")) << what << "\n" << to_text(k);
          ASSERT_NO_THROW(expect_same(ast, k, 1e-5, what)) << what << "\n" << to_text(k);
        }
      }
    }
  }
  // One loop for both, and rows for the subgroups of a workgroup.
  const LinearKernel k = lower(normed_ast(256, 2048, true), builtin_target("aco-gfx1100"));
  const auto loops = std::ranges::count_if(k.ops, [](const UOp& u) {
    return u->op == Op::Range && u->get<RangeArg>().kind == AxisKind::Reduce;
  });
  EXPECT_EQ(loops, 1) << to_text(k);
  EXPECT_EQ(k.local[0], 128u);
}

TEST(Beside, EachKeepsItsMapping) {
  const Target t = builtin_target("aco-gfx1100");
  const std::vector<UOp> all = products();
  int64_t groups = 0;
  uint64_t flops = 0;
  std::string opts;
  for (const UOp& ast : all) {
    const LinearKernel alone = lower(ast, t);
    groups += alone.groups[0].max();
    flops += alone.estimate.flops;
    opts += (opts.empty() ? "" : " | ") + alone.opts;
  }
  const LinearKernel k = lower(beside(all), t);
  EXPECT_EQ(k.opts, opts);
  EXPECT_EQ(k.groups[0].max(), groups);
  EXPECT_EQ(k.estimate.flops, flops);
  EXPECT_TRUE(is_opened(k, AxisKind::Loop)) << to_text(k);
  EXPECT_LE(k.shared_bytes, t.shared_bytes);
}

// A bound that each access is checked by is a report of the whole kernel: nests share the launch.
TEST(Beside, ChecksOfBoundsAreOneReport) {
  const Target t = builtin_target("aco-gfx1100");
  const LinearKernel k = lower(beside(products()), t, {.check_bounds = true});
  EXPECT_GE(k.bounds.slot, 0);
  EXPECT_NO_THROW(check_linear_spec(k.ops, "lower"));
}

TEST(Beside, SumsOverColumnsAndElementsShareTheirLoops) {
  EXPECT_TRUE(sched::launches_of(beside({elementwise_ast(6, 32), elementwise_ast(7, 13)})).empty());
  EXPECT_TRUE(sched::launches_of(beside({packed_sum_ast(64, 32), elementwise_ast(7, 13)})).empty());
  EXPECT_TRUE(sched::launches_of(packed_sum_ast(64, 32)).empty());
}

}  // namespace
}  // namespace tuff::kernel::testing
