// Attention by cooperative matrices: both products of rows that are kept, or one of them, mean what
// the AST means, wherever tiles and slabs end, and what is refused.
#include <gtest/gtest.h>

#include <functional>

#include "ir/kernel_floor.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

// Axes of attention: head, row, columns of the result, of scores, of probabilities; then the sums.
constexpr int kRow = 1, kWidth = 2, kScores = 3, kWeights = 4, kMax = 6, kSum = 8;

struct Rows {
  int64_t slab = 32, shares = 2, lanes = 4, subgroups = 1;
};
std::vector<Opt> opts_of(const Rows& r, int64_t width, std::vector<Opt> matrices) {
  const int64_t local = int64_t(matrix_gpu().subgroup_size) / r.shares * r.subgroups;
  std::vector<Opt> out{{OptKind::Upcast, kWidth, width}, {OptKind::Slab, kScores, r.slab},
                       {OptKind::Local, kWeights, r.shares}, {OptKind::GroupReduce, kMax, r.shares},
                       {OptKind::GroupReduce, kSum, r.shares}, {OptKind::Upcast, kRow, r.lanes},
                       {OptKind::Local, kRow, local}, {OptKind::Group, 0, 0},
                       {OptKind::Group, kRow, 0}};
  out.insert(out.end(), matrices.begin(), matrices.end());
  return out;
}
const std::vector<Opt> kBoth{{OptKind::Matrix, 0, 0}, {OptKind::Matrix, 1, 0}};

void expect_right(const UOp& ast, const std::vector<Opt>& opts, int64_t products) {
  const LinearKernel k = lower_with(ast, matrix_gpu(), opts);
  ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << to_string(opts);
  EXPECT_EQ(std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::MatrixMulAdd; }),
            products);
  expect_same(ast, k, 4e-3, to_string(opts));
}

TEST(RowMatrices, BothProductsOfAttention) {
  for (const bool causal : {false, true}) {
    const UOp ast = attention_ast(2, 64, 32, causal, DType::F16);
    for (const Rows& r : {Rows{}, Rows{.subgroups = 2}, Rows{.shares = 4, .lanes = 8},
                          Rows{.lanes = 8, .subgroups = 2}})
      expect_right(ast, opts_of(r, 32, kBoth), 2);
  }
}

TEST(RowMatrices, EitherProductAlone) {
  const UOp ast = attention_ast(1, 64, 32, true, DType::F16);
  for (const Opt& one : kBoth) expect_right(ast, opts_of({}, 32, {one}), 1);
}

TEST(RowMatrices, TheLastSlabIsMasked) {
  for (const bool causal : {false, true})
    expect_right(attention_ast(2, 80, 32, causal, DType::F16), opts_of({}, 32, kBoth), 2);
}

TEST(RowMatrices, OtherShapesOfMatrices) {
  const std::vector<Opt> small{{OptKind::Matrix, 0, 1}, {OptKind::Matrix, 1, 1}};
  expect_right(attention_ast(1, 64, 64, true, DType::F16),
               opts_of({.slab = 32, .shares = 2, .lanes = 2}, 64, small), 2);
}

TEST(RowMatrices, ScoresAreScaledBeforeTheyAreRounded) {
  const UOp ast = attention_ast(2, 64, 32, true, DType::F16, 0.25);
  expect_right(ast, opts_of({}, 32, kBoth), 2);
  // The row holds what is rounded: half of what the sums would take.
  const LinearKernel k = lower_with(ast, matrix_gpu(), opts_of({}, 32, kBoth)),
                     whole = lower_with(attention_ast(2, 64, 32, true, DType::F16),
                                        matrix_gpu(), opts_of({}, 32, kBoth));
  EXPECT_EQ(k.shared_bytes, whole.shared_bytes);
}

// The last tile of rows begins early enough to end with them.
TEST(RowMatrices, AnyNumberOfRows) {
  for (const int64_t positions : {72, 65, 127})
    for (const bool causal : {false, true})
      expect_right(attention_ast(2, positions, 32, causal, DType::F16),
                   opts_of({.subgroups = 2}, 32, kBoth), 2);
}

// With another value, and at another place.
UOp stored(const UOp& ast, const std::function<UOp(const UOp&)>& value,
           const std::function<UOp(const UOp&)>& place) {
  const UOp store = ast->src(0)->src(0), &index = store->src(0);
  const UOp to = make_store(make_index(index->src(0), place(index->src(1))), value(store->src(1)));
  return substitute(ast, {{store, to}});
}

TEST(RowMatrices, WhatFollowsTheSums) {
  constexpr int64_t kHeads = 2, kPositions = 80, kNarrow = 32,
                    kCount = kHeads * kPositions * kNarrow;
  const UOp ast = attention_ast(kHeads, kPositions, kNarrow, true, DType::F16);
  const UOp index = ast->src(0)->src(0)->src(0)->src(1);
  const auto itself = [](const UOp& x) { return x; };
  const auto residual = [&](const UOp& y) {
    return cast(cast(y, DType::F32) + cast(load(4, kCount, index, DType::F16), DType::F32),
                DType::F16);
  };
  const auto transposed = [](const UOp& at) {
    const UOp i = floormod(floordiv(at, index_const(kNarrow)), index_const(kPositions));
    return floordiv(at, index_const(kNarrow * kPositions)) * (kNarrow * kPositions) +
           floormod(at, index_const(kNarrow)) * kPositions + i;
  };
  const std::vector<Opt> opts = opts_of({.shares = 4, .lanes = 8}, 32, kBoth);
  expect_right(stored(ast, residual, itself), opts, 2);
  expect_right(stored(ast, itself, transposed), opts, 2);
  expect_right(stored(ast, residual, transposed), opts, 2);
}

TEST(RowMatrices, OfBFloat16) {
  const std::vector<Opt> both{{OptKind::Matrix, 0, 2}, {OptKind::Matrix, 1, 2}};
  for (const int64_t positions : {64, 80}) {
    const UOp ast = attention_ast(2, positions, 32, true, DType::BF16);
    const LinearKernel k = lower_with(ast, matrix_gpu(), opts_of({}, 32, both));
    expect_same(ast, k, 4e-2, "bf16");
  }
}

// Nothing but the matrices reads the weights, which lie where the scores were.
TEST(RowMatrices, OfWeightsThatAreNotSummed) {
  const UOp whole = attention_ast(2, 64, 32, true, DType::F16);
  UOp ast = whole;
  for (const Node* n : toposort(whole))
    if (n->op == Op::Recip) ast = substitute(ast, {{UOp(n), constant(DType::F32, 0.25)}});
  std::vector<Opt> opts = opts_of({}, 32, kBoth);
  std::erase_if(opts, [](const Opt& o) { return o.axis == kSum; });
  expect_right(ast, opts, 2);
}

TEST(RowMatrices, WhatIsNone) {
  const Target gpu = matrix_gpu();
  const auto refuses = [&](const UOp& ast, const std::vector<Opt>& opts, const std::string& why,
                           const Target& target = matrix_gpu()) {
    expect_refused(ast_for_opts(ast, target), target, opts, why);
  };
  const UOp ast = attention_ast(1, 64, 32, false, DType::F16);
  refuses(ast, {{OptKind::Matrix, 0, 0}}, "shared out as rows");
  refuses(ast, opts_of({}, 32, {{OptKind::Matrix, 2, 0}}), "no such sum of products");
  refuses(ast, opts_of({}, 32, {{OptKind::Matrix, 0, 2}}), "not of the shape's dtype");
  refuses(ast, opts_of({}, 32, {{OptKind::Matrix, 1, 2}}), "row of the shape's dtype");
  refuses(ast, opts_of({.lanes = 2}, 32, kBoth), "whole matrices of rows");
  refuses(ast, opts_of({.slab = 16}, 32, kBoth), "does not divide a slab");
  refuses(ast, opts_of({}, 32, {kBoth[0], kBoth[0]}), "one of matrices already");
  refuses(ast, opts_of({}, 32, {kBoth[0], {OptKind::Matrix, 1, 1}}), "of another shape");
  std::vector<Opt> more = opts_of({}, 32, kBoth);
  more.push_back({OptKind::Upcast, 0, 2});
  refuses(ast, more, "as they are");
  // In place the rows that two tiles have in common would be read after they are stored.
  const UOp ragged = attention_ast(1, 72, 32, false, DType::F16);
  const UOp place = ragged->src(0)->src(0)->src(0);
  const auto added = [&](const UOp& y) { return y + make_load(place); };
  refuses(stored(ragged, added, [](const UOp& x) { return x; }), opts_of({}, 32, kBoth),
          "is not whole");
  refuses(attention_ast(1, 64, 24, false, DType::F16), opts_of({}, 24, kBoth),
          "does not divide the sum");
  refuses(attention_ast(1, 64, 32), opts_of({}, 32, kBoth), "not of the shape's dtype");
  Target small = gpu;
  small.shared_bytes = 8 << 10;
  refuses(ast, opts_of({}, 32, kBoth), "does not hold the copies", small);
}

}  // namespace
}  // namespace tuff::kernel::testing
