// Products by cooperative matrices: what is legal, and that the lowered list means what the AST
// means, whatever else is done to the loops.
#include <gtest/gtest.h>

#include <random>

#include "base/random_cases.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/opt/neighbours.h"
#include "kernel/opt/random_opts.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;
using tuff::testing::random_cases;
using tuff::testing::random_hits;

constexpr int64_t kF16 = 0, kSmallF16 = 1, kBf16 = 2, kI8 = 3, kU8 = 4;  // shapes of matrix_gpu()

int64_t count(const LinearKernel& k, Op op) {
  return std::count_if(k.ops.begin(), k.ops.end(), [&](const UOp& u) { return u->op == op; });
}

LinearKernel lowered(const NarrowProduct& p, std::vector<Opt> opts,
                     const Target& target = matrix_gpu()) {
  return lower_with(narrow_product_ast(p), target, std::move(opts));
}

void expect_right(const NarrowProduct& p, const std::vector<Opt>& opts,
                  const Target& target = matrix_gpu()) {
  const std::string what = to_string(opts);
  const LinearKernel k = lowered(p, opts, target);
  EXPECT_EQ(count(k, Op::MatrixMulAdd), 1) << what;
  ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what;
  // Sums of up to 64 products of numbers up to 2, each of them exact in f32.
  ASSERT_NO_THROW(expect_same(narrow_product_ast(p), k, 2e-3, what, run_linear)) << what << "\n"
                                                                                 << to_text(k);
}

std::string refusal(const NarrowProduct& p, std::vector<Opt> opts,
                    const Target& target = matrix_gpu()) {
  try {
    lowered(p, std::move(opts), target);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(Matrices, OneFragment) {
  expect_right({}, {{OptKind::Matrix, 0, kF16}});
  expect_right({.m = 8, .n = 8, .k = 64}, {{OptKind::Matrix, 0, kSmallF16}});
  expect_right({.m = 32, .n = 24, .k = 32, .factor = DType::BF16}, {{OptKind::Matrix, 0, kBf16}});
}

TEST(Matrices, IntegersAreSummedExactly) {
  for (const auto& [factor, shape] : {std::pair(DType::I8, kI8), std::pair(DType::U8, kU8)}) {
    const NarrowProduct p{
        .m = 32, .n = 16, .k = 64, .factor = factor, .sum = DType::I32, .result = DType::I32};
    const UOp ast = narrow_product_ast(p);
    const LinearKernel k = lower_with(ast, matrix_gpu(), {{OptKind::Matrix, 0, shape}});
    expect_same(ast, k, 0, "integers");
  }
}

TEST(Matrices, FragmentsSubgroupsAndGroups) {
  const std::vector<Opt> opts{{OptKind::Matrix, 0, kF16}, {OptKind::Upcast, 1, 2},
                              {OptKind::Upcast, 2, 2},    {OptKind::Local, 1, 2},
                              {OptKind::Group, 0, 0},     {OptKind::Group, 1, 0},
                              {OptKind::Group, 2, 0}};
  const NarrowProduct p{.batch = 2, .m = 64, .n = 32, .k = 32, .residual = true};
  expect_right(p, opts);
  const LinearKernel k = lowered(p, opts);
  EXPECT_EQ(k.local, (std::array<uint32_t, 3>{16, 1, 1}));
  EXPECT_EQ(k.subgroup_size, 8u);
  EXPECT_EQ(k.shared_bytes, 2u * 4 * 256 * 4);
  EXPECT_EQ(count(k, Op::Barrier), 1);
  EXPECT_EQ(k.estimate.flops, 2u * (2 * 64 * 32 * 32) + 2u * (2 * 64 * 32) / 2);
}

// The memory of the sums is written again by each iteration.
TEST(Matrices, LoopsThatAreLeftHaveASecondBarrier) {
  const NarrowProduct p{.m = 64, .n = 32, .k = 16, .bias = true};
  const std::vector<Opt> opts{{OptKind::Matrix, 0, kF16}};
  expect_right(p, opts);
  EXPECT_EQ(count(lowered(p, opts), Op::Barrier), 2);
}

// They need no workgroup memory; whatever follows them does, and what becomes bfloat16.
TEST(Matrices, SumsAloneAreStoredAsMatrices) {
  const std::vector<Opt> opts{{OptKind::Matrix, 0, kF16}, {OptKind::Upcast, 1, 2},
                              {OptKind::Local, 2, 2}};
  for (const DType result : {DType::F32, DType::F16, DType::BF16}) {
    for (const bool transposed : {false, true}) {
      NarrowProduct p{
          .batch = 2, .m = 64, .n = 32, .k = 32, .result = result, .transposed = transposed};
      expect_right(p, opts);
      const LinearKernel k = lowered(p, opts);
      EXPECT_EQ(k.shared_bytes > 0, result == DType::BF16);
      EXPECT_EQ(count(k, Op::Barrier) > 0, result == DType::BF16);
      EXPECT_EQ(count(k, Op::Cast), result == DType::F32 ? 0 : 1);
      EXPECT_EQ(count(k, Op::MatrixStore), 1);
      EXPECT_TRUE(k.buffers[0].written);
      p.bias = true;
      EXPECT_GT(lowered(p, opts).shared_bytes, 0u);
    }
  }
}

TEST(Matrices, WhateverLiesTransposed) {
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      for (const bool output : {false, true}) {
        expect_right({.m = 32,
                      .n = 48,
                      .k = 32,
                      .result = DType::F16,
                      .left_across = left,
                      .right_across = right,
                      .bias = true,
                      .transposed = output},
                     {{OptKind::Matrix, 0, kF16}, {OptKind::Local, 0, 2}});
      }
    }
  }
}

TEST(Matrices, WhatCannotBeIsRefused) {
  const std::vector<Opt> f16{{OptKind::Matrix, 0, kF16}};
  EXPECT_EQ(refusal({}, f16), "");
  EXPECT_NE(refusal({.m = 15}, f16).find("shorter than the shape"), std::string::npos);
  EXPECT_NE(refusal({.n = 8}, f16).find("shorter than the shape"), std::string::npos);
  EXPECT_NE(refusal({.k = 12}, f16).find("shorter than the shape"), std::string::npos);
  EXPECT_NE(refusal({.factor = DType::BF16}, f16).find("dtype"), std::string::npos);
  EXPECT_NE(refusal({.factor = DType::F32}, f16).find("dtype"), std::string::npos);
  EXPECT_NE(refusal({}, {{OptKind::Matrix, 1, kF16}}).find("no such sum"), std::string::npos);
  EXPECT_NE(refusal({}, {{OptKind::Matrix, 0, 9}}).find("no such shape"), std::string::npos);
  EXPECT_NE(
      refusal({.m = 32}, {{OptKind::Split, 0, 2}, {OptKind::Matrix, 0, kF16}}).find("already"),
      std::string::npos);
  Target t = matrix_gpu();
  t.subgroup_size = 1;
  EXPECT_NE(refusal({}, f16, t).find("no subgroup"), std::string::npos);
  t = matrix_gpu();
  t.features.storage16 = false;
  EXPECT_NE(refusal({}, f16, t).find("as they are"), std::string::npos);
  t = matrix_gpu();
  t.shared_bytes = 512;
  EXPECT_NE(refusal({.bias = true}, f16, t).find("holds no matrix"), std::string::npos);
  t = matrix_gpu();
  t.matrix_shapes.clear();
  EXPECT_FALSE(allows(t, OptKind::Matrix));
}

// Where the shape does not divide an axis the last matrix begins early: what it has in common with
// the one before is stored once, and summed once, steps in copies alone.
TEST(Matrices, TheLastOneEndsWithItsAxis) {
  const std::vector<Opt> tile{{OptKind::Matrix, 0, kF16}, {OptKind::Upcast, 0, 2},
                              {OptKind::Local, 1, 2},     {OptKind::Split, 2, 2},
                              {OptKind::Group, 0, 0},     {OptKind::Group, 1, 0}};
  for (NarrowProduct p : {NarrowProduct{.m = 39, .n = 32, .k = 64}, {.m = 48, .n = 56, .k = 64},
                          {.m = 48, .n = 33, .k = 64}, {.m = 32, .n = 32, .k = 40},
                          {.m = 64, .n = 32, .k = 37}, {.batch = 2, .m = 17, .n = 19, .k = 53}}) {
    for (const bool across : {false, true}) {
      p.left_across = across, p.right_across = !across, p.transposed = across;
      const int outer = p.batch > 1 ? 1 : 0;
      const auto at = [&](std::vector<Opt> opts) {
        for (Opt& o : opts) o.axis += o.kind == OptKind::Matrix ? 0 : outer;
        return opts;
      };
      expect_right(p, {{OptKind::Matrix, 0, kF16}});
      if (p.m % 32 == 0 || p.m % 16 != 0) expect_right(p, at({tile[0], tile[1]}));
      NarrowProduct with_more = p;
      with_more.bias = with_more.residual = true;
      expect_right(with_more, {{OptKind::Matrix, 0, kF16}});
      if (p.m % 16 != 0 && p.n % 16 != 0 && p.k % 16 != 0) {
        std::vector<Opt> opts = at(tile);
        expect_right(p, opts);
        const int64_t around = outer + 1;
        opts.insert(opts.end(), {{OptKind::Stage, 0, around}, {OptKind::Stage, 1, around}});
        expect_right(p, opts);
        std::erase_if(opts, [](const Opt& o) { return o.kind == OptKind::Split; });
        opts.insert(opts.end(), {{OptKind::Ahead, 0, 2}, {OptKind::Ahead, 1, 2}});
        expect_right(with_more, opts);
      }
    }
  }
  EXPECT_GT(lowered({.m = 39, .n = 32, .k = 64}, {{OptKind::Matrix, 0, kF16}}).shared_bytes, 0u);
  EXPECT_NE(refusal({.m = 39}, {tile[0], {OptKind::Upcast, 0, 4}}).find("is possible"),
            std::string::npos);
}

// An element that two matrices have in common is loaded by the one that stores it.
TEST(Matrices, TheLastOneUpdatesInPlace) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{20, 16}, {16, 20}, {37, 41}}) {
    AstBuilder b;
    const UOp i = b.loop(m), j = b.loop(n), r = b.fold(32);
    const UOp x = load(1, m * 32, i * 32 + r, DType::F16),
              y = load(2, 32 * n, r * n + j, DType::F16);
    const UOp sum = reduce_over(Op::Add, cast(x, DType::F32) * cast(y, DType::F32), {r});
    const UOp old = load(0, m * n, i * n + j, DType::F32);
    const UOp ast = kernel_of({store(0, m * n, i * n + j, old + sum, {i, j})});
    const LinearKernel k = lower_with(ast, matrix_gpu(), {{OptKind::Matrix, 0, kF16}});
    EXPECT_EQ(count(k, Op::MatrixMulAdd), 1);
    ASSERT_NO_THROW(expect_same(ast, k, 2e-3, "in place", run_linear)) << to_text(k);
  }
}

TEST(Matrices, NothingPadsAndNothingSplitsAMatrix) {
  const NarrowProduct p{.m = 48, .n = 32, .k = 32, .bias = true};
  const auto after = [&](const Opt& o) { return refusal(p, {{OptKind::Matrix, 0, kF16}, o}); };
  EXPECT_EQ(after({OptKind::Upcast, 0, 3}), "");
  EXPECT_NE(after({OptKind::Upcast, 0, 2}).find("does not divide"), std::string::npos);
  EXPECT_NE(after({OptKind::Local, 0, 2}).find("does not divide"), std::string::npos);
  for (const OptKind kind : {OptKind::Vector, OptKind::Unroll, OptKind::GroupReduce,
                             OptKind::Spread, OptKind::Matrix})
    EXPECT_NE(after({kind, kind == OptKind::Unroll ? 2 : 0, 2}), "") << name(kind);
  Target t = matrix_gpu();
  t.shared_bytes = 2048;
  EXPECT_NE(refusal(p, {{OptKind::Matrix, 0, kF16}, {OptKind::Upcast, 0, 3}}, t)
                .find("so many fragments"),
            std::string::npos);
  t = matrix_gpu();
  t.max_local[0] = 16;
  EXPECT_NE(refusal(p, {{OptKind::Matrix, 0, kF16}, {OptKind::Local, 0, 3}}, t), "");
}

int64_t shared_elements(const LinearKernel& k, DType t) {
  int64_t n = 0;
  for (const UOp& u : k.ops)
    n += u->op == Op::Shared && u->dtype == t ? u->get<SharedArg>().count : 0;
  return n;
}

// However the factors lie; their lines stay lines, 16 bytes further apart than they are long.
TEST(Matrices, TheirFactorsAreCopiedByTheWorkgroup) {
  const std::vector<Opt> tile{{OptKind::Matrix, 0, kF16},
                              {OptKind::Upcast, 0, 2},
                              {OptKind::Local, 1, 2},
                              {OptKind::Group, 0, 0},
                              {OptKind::Group, 1, 0}};
  const Opt longer{OptKind::Split, 2, 2};
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      const NarrowProduct p{
          .m = 32, .n = 32, .k = 64, .left_across = left, .right_across = right, .bias = true};
      std::vector<Opt> opts = tile;
      opts.insert(opts.end(), {longer, {OptKind::Stage, 0, 1}, {OptKind::Stage, 1, 1}});
      expect_right(p, opts);
      const LinearKernel k = lowered(p, opts);
      EXPECT_EQ(shared_elements(k, DType::F16), 2 * 32 * (32 + 8)) << to_text(k);
      EXPECT_EQ(count(k, Op::Barrier), 3);
      opts = tile;
      opts.insert(opts.end(), {{OptKind::Stage, 0, 1}, {OptKind::Stage, 1, 1}});
      opts.insert(opts.end(), {{OptKind::Ahead, 0, 1}, {OptKind::Ahead, 1, 1}});
      expect_right(p, opts);
      EXPECT_EQ(count(lowered(p, opts), Op::Register), 3);
    }
  }
}

TEST(Matrices, OneFactorIsCopied) {
  const NarrowProduct p{.batch = 2, .m = 32, .n = 32, .k = 32, .factor = DType::I8,
                        .sum = DType::I32, .result = DType::I32};
  const UOp ast = narrow_product_ast(p);
  for (const int factor : {0, 1}) {
    const LinearKernel k = lower_with(
        ast, matrix_gpu(),
        {{OptKind::Matrix, 0, kI8}, {OptKind::Local, 1, 2}, {OptKind::Upcast, 2, 2},
         {OptKind::Stage, factor, 1}});
    ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with"));
    EXPECT_EQ(shared_elements(k, DType::I8), 32 * (32 + 16)) << to_text(k);
    expect_same(ast, k, 0, "integers");
  }
}

TEST(Matrices, CopiesThatCannotBeAreRefused) {
  const NarrowProduct p{.m = 32, .n = 32, .k = 64, .bias = true};
  const std::vector<Opt> tile{
      {OptKind::Matrix, 0, kF16}, {OptKind::Upcast, 0, 2}, {OptKind::Upcast, 1, 2}};
  const auto after = [&](std::vector<Opt> more, const Target& target = matrix_gpu()) {
    more.insert(more.begin(), tile.begin(), tile.end());
    return refusal(p, more, target);
  };
  EXPECT_EQ(after({{OptKind::Stage, 0, 1}, {OptKind::Stage, 1, 1}}), "");
  EXPECT_NE(after({{OptKind::Stage, 0, 1}, {OptKind::Stage, 1, 0}}).find("another loop"),
            std::string::npos);
  EXPECT_NE(after({{OptKind::Stage, 0, 1}, {OptKind::Upcast, 0, 2}}), "");
  Target t = matrix_gpu();
  t.features.f16 = false;
  EXPECT_NE(after({{OptKind::Stage, 0, 1}}, t).find("as matrices have them"), std::string::npos);
  t = matrix_gpu();
  t.shared_bytes = 4 * 16 * 16 * 4 + 1024;  // sums, and less than a copy
  EXPECT_NE(after({{OptKind::Stage, 0, 0}}, t).find("fast memory left"), std::string::npos);
}

// A row that begins at an odd place, rows of no whole vectors: what is not aligned, irregular or
// gated is copied as what is computed. Steps between neighbours are refused.
TEST(Matrices, FactorsThatAreNoMatricesAreCopiedOrRefused) {
  AstBuilder b;
  const UOp i = b.loop(16), j = b.loop(16), r = b.fold(16);
  const auto product = [&](const UOp& left_at, const UOp& gate) {
    const UOp x = load(1, 1024, left_at, DType::F16, gate),
              y = load(2, 256, r * 16 + j, DType::F16);
    const UOp sum = reduce_over(Op::Add, cast(x, DType::F32) * cast(y, DType::F32), {r});
    return kernel_of({store(0, 256, i * 16 + j, sum, {i, j})});
  };
  enum Taken { kNot, kAsItLies, kCopied };
  const auto taken = [&](const UOp& left_at, const UOp& gate) {
    const UOp ast = product(left_at, gate);
    Tiling t(ast, matrix_gpu());
    const std::vector<Opt> opts{{OptKind::Matrix, 0, kF16}};
    if (!try_apply(t, opts[0])) return kNot;
    expect_same(ast, lower_with(ast, matrix_gpu(), opts), 2e-3, "taken", run_linear);
    return t.matrices->a.computed ? kCopied : kAsItLies;
  };
  EXPECT_EQ(taken(i * 16 + r, {}), kAsItLies);
  EXPECT_EQ(taken(i * 24 + r + 8, {}), kAsItLies);
  EXPECT_EQ(taken(i * 16 + r + 4, {}), kCopied);
  EXPECT_EQ(taken(i * 20 + r, {}), kCopied);
  EXPECT_EQ(taken(i * 32 + r * 2, {}), kNot);
  EXPECT_EQ(taken(floordiv(i, 2) * 16 + r, {}), kCopied);
  EXPECT_EQ(taken(i * 16 + r, lt(i, index_const(9))), kCopied);
}

// What is computed lies as a matrix does in its copy alone, which is made even where none is asked
// for.
TEST(Matrices, ComputedFactorsAreCopied) {
  const std::vector<Opt> tile{{OptKind::Matrix, 0, kF16},
                              {OptKind::Upcast, 0, 2},
                              {OptKind::Local, 1, 2},
                              {OptKind::Split, 2, 2}};
  for (const bool left : {false, true}) {
    NarrowProduct p{.m = 64, .n = 64, .k = 64};
    (left ? p.left_positive : p.right_positive) = true;
    EXPECT_GT(shared_elements(lowered(p, tile), DType::F16), 0);
    expect_right(p, tile);
    for (const char* copies : {"stage(0,2)", "stage(1,2)", "stage(0,2) stage(1,2)", "stage(1,0)",
                               "stage(0,4) stage(1,4) ahead(0,1) ahead(1,1)",
                               "stage(0,4) stage(1,4) ahead(0,2) ahead(1,2)",
                               "stage(0,4) stage(1,4) ahead(0,1) ahead(1,2)"})
      expect_right(p, parse_opts(to_string(tile) + " " + copies));
    p.right_positive = p.left_positive = true;
    expect_right(p, {{OptKind::Matrix, 0, kF16}});
    expect_right(p, tile);
    for (const bool across : {false, true}) {
      p.left_across = p.right_across = across;
      expect_right(p, tile);
    }
  }
  Target small = matrix_gpu();
  small.shared_bytes = 16 * 16 * 4 + 256;
  EXPECT_NE(refusal({.left_positive = true}, {{OptKind::Matrix, 0, kF16}}, small)
                .find("no copy of a computed factor"),
            std::string::npos);
}

// ---- a CPU's thread alone ---------------------------------------------------------------------

TEST(ThreadMatrices, MeanTheSame) {
  for (const bool transposed : {false, true}) {
    const UOp ast = pair_product_ast({.m = 64, .n = 32, .k = 64, .transposed = transposed});
    for (const std::vector<Opt>& opts :
         {std::vector<Opt>{{OptKind::Matrix, 0, 0}},
          {{OptKind::Matrix, 0, 0}, {OptKind::Upcast, 0, 2}, {OptKind::Upcast, 1, 2}},
          {{OptKind::Matrix, 0, 0}, {OptKind::Split, 2, 2}, {OptKind::Swap, 0, 1},
           {OptKind::Group, 0, 2}}}) {
      const std::string what = to_string(opts);
      const LinearKernel k = lower_with(ast, matrix_cpu(), opts);
      EXPECT_EQ(count(k, Op::MatrixMulAdd), 1) << what;
      EXPECT_EQ(k.subgroup_size, 0u);
      EXPECT_EQ(k.shared_bytes, 0u);
      EXPECT_EQ(k.estimate.flops, 2u * 64 * 32 * 64) << what;
      ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what;
      ASSERT_NO_THROW(expect_same(ast, k, 2e-3, what, run_linear)) << what << "\n" << to_text(k);
    }
  }
}

TEST(ThreadMatrices, AreChosenWithGroupsThatTheCacheHolds) {
  const UOp ast = pair_product_ast({.m = 256, .n = 32, .k = 64, .transposed = true});
  const LinearKernel k = lower(ast, matrix_cpu(), {});
  // Half of the cache holds 32 of the 256 rows.
  EXPECT_NE(k.opts.find("matrix(0,0) upcast(0,2) upcast(1,2) group(0,8)"), std::string::npos)
      << k.opts;
  EXPECT_NO_THROW(expect_same(ast, k, 2e-3, "chosen", run_linear));
}

TEST(ThreadMatrices, WhatCannotBeIsRefused) {
  const auto why = [](const PairProduct& p, std::vector<Opt> more = {}) {
    std::vector<Opt> opts{{OptKind::Matrix, 0, 0}};
    opts.insert(opts.end(), more.begin(), more.end());
    return kernel::testing::refusal(pair_product_ast(p), matrix_cpu(), opts);
  };
  const PairProduct whole{.m = 64, .n = 64};
  EXPECT_EQ(why(whole), "");
  EXPECT_NE(why({.m = 24}).find("does not divide"), std::string::npos);
  EXPECT_NE(why({.n = 8}).find("does not divide"), std::string::npos);
  EXPECT_NE(why({.k = 48}).find("does not divide"), std::string::npos);
  EXPECT_NE(why({.bias = true}).find("not stored as they are"), std::string::npos);
  EXPECT_EQ(why(whole, {{OptKind::Upcast, 0, 2}, {OptKind::Upcast, 1, 2}}), "");
  EXPECT_NE(why(whole, {{OptKind::Upcast, 0, 4}}).find("no registers"), std::string::npos);
  EXPECT_NE(why(whole, {{OptKind::Upcast, 0, 2}, {OptKind::Upcast, 1, 4}}).find("no registers"),
            std::string::npos);
  for (const OptKind kind : {OptKind::Vector, OptKind::Unroll, OptKind::Stage, OptKind::Local})
    EXPECT_NE(why(whole, {{kind, kind == OptKind::Unroll ? 2 : 0, 2}}), "") << name(kind);
  // Rows that do not lie in pairs are no factor, and other devices have none that do.
  const Opt matrix{OptKind::Matrix, 0, 0};
  const UOp plain = narrow_product_ast({.k = 32, .factor = DType::BF16});
  EXPECT_NE(kernel::testing::refusal(plain, matrix_cpu(), {matrix}), "");
  Target gpu = matrix_gpu();
  gpu.matrix_shapes = matrix_cpu().matrix_shapes;
  EXPECT_NE(kernel::testing::refusal(pair_product_ast(whole), gpu, {matrix}), "");
}

TEST(Matrices, WithBoundsCheckedThereAreNone) {
  const UOp ast = narrow_product_ast({.m = 64, .n = 64, .k = 64});
  const LinearKernel k = lower(ast, matrix_gpu(), {.check_bounds = true});
  EXPECT_EQ(count(k, Op::MatrixMulAdd), 0);
}

// Random products with random opts around the matrices.
TEST(Matrices, MeanTheSameWithRandomOpts) {
  std::mt19937 random(3);
  const auto one_of = [&](auto... values) {
    const std::initializer_list<int64_t> all{int64_t(values)...};
    return all.begin()[random() % all.size()];
  };
  uint32_t used = 0, copied = 0;
  for (uint32_t seed = 0; seed < random_cases(120); seed++) {
    Target target = matrix_gpu();
    target.matrix_shapes = {target.matrix_shapes[size_t(one_of(0, 1, 2, 3, 4))]};
    NarrowProduct p;
    p.factor = target.matrix_shapes[0].a;
    p.sum = target.matrix_shapes[0].sum;
    p.result = p.sum == DType::I32 ? DType::I32 : random() % 2 ? DType::F32 : p.factor;
    p.batch = one_of(1, 1, 2);
    p.m = one_of(16, 16, 32, 48, 8, 17);
    p.n = one_of(16, 16, 32, 48, 24, 33);
    p.k = one_of(32, 16, 64, 32, 40);
    p.left_across = random() % 2, p.right_across = random() % 2, p.transposed = random() % 2;
    p.left_positive = random() % 4 == 0, p.right_positive = random() % 4 == 0;
    p.bias = random() % 2, p.residual = random() % 2;
    const UOp ast = narrow_product_ast(p);
    const auto opts = random_opts(ast_for_opts(ast, target), target, seed, 64);
    const LinearKernel k = lower_with(ast, target, opts);
    used += count(k, Op::MatrixMulAdd) > 0;
    copied += count(k, Op::MatrixMulAdd) > 0 && count(k, Op::Shared) > 1;
    const std::string what = fmt::format("seed {}: {}", seed, to_string(opts));
    ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what;
    const double tolerance = p.result == DType::BF16 ? 1e-2 : 2e-3;
    ASSERT_NO_THROW(expect_same(ast, k, p.sum == DType::I32 ? 0 : tolerance, what)) << what;
    if (HasFailure()) return;
  }
  EXPECT_GE(used, random_hits(40));
  EXPECT_GE(copied, random_hits(10));
}

TEST(Matrices, TheHeuristicsTakeThemWhereAShapeFits) {
  const NarrowProduct p{.m = 64, .n = 48, .k = 32, .result = DType::F16, .bias = true};
  const UOp ast = narrow_product_ast(p);
  const LinearKernel k = lower(ast, matrix_gpu());
  EXPECT_EQ(count(k, Op::MatrixMulAdd), 1) << k.opts;
  EXPECT_EQ(count(k, Op::Barrier), 1) << k.opts;
  expect_same(ast, k, 2e-3, k.opts);
  EXPECT_EQ(count(lower(narrow_product_ast({.m = 17}), matrix_gpu()), Op::MatrixMulAdd), 1);
  EXPECT_EQ(count(lower(narrow_product_ast({.m = 7}), matrix_gpu()), Op::MatrixMulAdd), 0);
  Target t = matrix_gpu();
  t.has_fast_shared = true;
  const LinearKernel staged = lower(ast, t);
  EXPECT_GT(shared_elements(staged, DType::F16), 0) << staged.opts;
  expect_same(ast, staged, 2e-3, staged.opts);
  EXPECT_EQ(count(lower(matmul_ast(64, 64, 64), matrix_gpu()), Op::MatrixMulAdd), 0);
}

TEST(Matrices, AreNeighboursOfAPlainSchedule) {
  const UOp ast = ast_for_opts(narrow_product_ast({.m = 32, .n = 32, .k = 32}), matrix_gpu());
  const auto found = neighbours(ast, matrix_gpu(), parse_opts("group(0,0)"), 64);
  EXPECT_NE(std::find(found.begin(), found.end(), parse_opts("matrix(0,0) group(0,0)")),
            found.end());
}

}  // namespace
}  // namespace tuff::kernel::testing
