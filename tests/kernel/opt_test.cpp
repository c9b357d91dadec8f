// Every opt's legality, with the reason in the error, and what it makes of the ranges.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/opt/neighbours.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

TEST(Opt, RefusesWhatIsIllegalAndSaysWhy) {
  const Target cpu = builtin_target("c-x86-64"), gpu = builtin_target("spirv-lavapipe");
  const UOp ast = matmul_ast(12, 16, 40);  // axes 0 and 1 outputs, 2 reduced
  expect_refused(ast, cpu, {{OptKind::Upcast, 5, 2}}, "no such axis");
  expect_refused(ast, cpu, {{OptKind::Upcast, 2, 2}}, "the axis is reduced");
  expect_refused(ast, cpu, {{OptKind::Unroll, 0, 2}}, "the axis is not reduced");
  expect_refused(ast, cpu, {{OptKind::Split, 0, 5}}, "5 does not divide 12");
  expect_refused(ast, cpu, {{OptKind::Upcast, 0, 24}}, "2 to 12 is possible");
  expect_refused(ast, cpu, {{OptKind::Upcast, 0, 1}}, "2 to 12 is possible");
  expect_refused(ast, cpu, {{OptKind::Vector, 0, 32}}, "2 to 16 is possible");
  expect_refused(ast, cpu, {{OptKind::Vector, 0, 6}}, "no power of two");
  expect_refused(ast, cpu, {{OptKind::Vector, 0, 32}}, "2 to 16 is possible");
  EXPECT_EQ(refusal(ast, cpu, {{OptKind::Vector, 0, 16}}), "") << "one vector, lanes left over";
  expect_refused(ast, cpu, {{OptKind::Vector, 0, 4}, {OptKind::Vector, 1, 4}},
                 "a vector axis already");
  expect_refused(ast, cpu, {{OptKind::Local, 1, 4}}, "no workgroups");
  expect_refused(ast, cpu, {{OptKind::GroupReduce, 2, 8}}, "no workgroups");
  expect_refused(ast, cpu, {{OptKind::Group, 0, 0}, {OptKind::Upcast, 0, 2}}, "nothing is left");
  expect_refused(ast, cpu, {{OptKind::Swap, 0, 2}}, "cannot change places");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 2, 12}}, "no power of two");
  expect_refused(ast, gpu,
                 {{OptKind::Local, 0, 4}, {OptKind::GroupReduce, 2, 8}, {OptKind::Local, 1, 8}},
                 "stand outside of the shared reductions");
  Target little = gpu;
  little.features.full_subgroups = false;  // which need no memory for shares
  little.shared_bytes = 1024;
  expect_refused(ast, little, {{OptKind::Local, 1, 16}, {OptKind::GroupReduce, 2, 32}},
                 "exceed 1024 bytes");
  Target small = gpu;
  small.max_invocations = 4;
  expect_refused(ast, small, {{OptKind::Local, 1, 8}}, "at most 4 invocations");
  const UOp softmax = softmax_ast(4, 64);
  expect_refused(softmax, gpu, {{OptKind::GroupReduce, 2, 8}, {OptKind::GroupReduce, 3, 16}},
                 "shared by another number");
  expect_refused(softmax, gpu, {{OptKind::Local, 1, 8}, {OptKind::GroupReduce, 2, 8}},
                 "outputs of other reductions");
  expect_refused(softmax, gpu, {{OptKind::GroupReduce, 2, 8}, {OptKind::Local, 1, 4}},
                 "shared by another number");
  EXPECT_EQ(refusal(softmax, gpu,
                    {{OptKind::Local, 0, 4}, {OptKind::GroupReduce, 2, 8}, {OptKind::Local, 1, 8}}),
            "");
  EXPECT_EQ(
      refusal(softmax, gpu,
              {{OptKind::GroupReduce, 2, 8}, {OptKind::GroupReduce, 3, 8}, {OptKind::Local, 1, 8}}),
      "");
}

// Vectors of windows are taken from contiguous ones, and elements of windows are repeated; rows
// that no vector divides are masked where that is an instruction.
TEST(Opt, WindowsAreVectorsOnACpu) {
  Target t = builtin_target("c-x86-64");
  const auto chosen = [&](const UOp& ast) {
    Tiling tiling(ast, t);
    apply_heuristics(tiling, ast, t);
    expect_same(ast, lower(ast, t), 0, to_string(tiling.applied));
    return to_string(tiling.applied);
  };
  EXPECT_EQ(chosen(pool_ast(8, 12, 2)), "unroll(3,2) vector(1,4)");
  EXPECT_EQ(chosen(unpool_ast(8, 12, 2)), "vector(1,8)");
  EXPECT_EQ(chosen(pool_ast(8, 12, 5)).find("vector"), std::string::npos) << "too far apart";
  EXPECT_EQ(chosen(pool_ast(8, 5, 2)).find("vector"), std::string::npos) << "masked one by one";
  t.vector_bytes = 64;
  EXPECT_EQ(chosen(pool_ast(8, 12, 2)), "unroll(3,2) vector(1,16)");
  EXPECT_EQ(chosen(pool_ast(8, 5, 3)), "unroll(3,3) vector(1,8)");
  EXPECT_EQ(chosen(unpool_ast(8, 12, 2)), "vector(1,8)") << "no masks for as many";
  EXPECT_EQ(chosen(unpool_ast(8, 5, 2)), "vector(1,16)");
  EXPECT_EQ(chosen(unpool_ast(8, 33, 4)), "vector(1,16)");
}

// Blocks of a scale and `piece` numbers, each of two elements, as quantized weights have them.
UOp blocks_at(const UOp& at, int64_t count, int64_t piece) {
  const int64_t words = piece + 4, all = count / (2 * piece) * words;
  const UOp block = floordiv(at, 2 * piece) * words;
  return load(1, all, block) * load(1, all, block + 4 + floormod(at, piece));
}
TEST(Opt, PiecesOfBlocksAreVectorsOnACpu) {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  const auto chosen = [&](const UOp& ast) {
    const LinearKernel lowered = lower(ast, t);
    expect_same(ast, lowered, 1e-4, lowered.opts);
    return lowered.opts;
  };
  const auto element = [](int64_t piece) {
    AstBuilder b;
    const UOp i = b.loop(1024);
    return kernel_of({store(0, 1024, i, blocks_at(i, 1024, piece), {i})});
  };
  const auto product = [](int64_t piece) {
    AstBuilder b;
    const UOp i = b.loop(12), k = b.fold(512);
    const UOp value = load(2, 512, k) * blocks_at(i * 512 + k, 12 * 512, piece);
    return kernel_of({store(0, 12, i, reduce_over(Op::Add, value, {k}), {i})});
  };
  EXPECT_EQ(chosen(element(16)), "vector(0,16)");
  EXPECT_EQ(chosen(element(32)), "vector(0,32)");
  EXPECT_EQ(chosen(element(8)), "") << "each lane would load for itself";
  EXPECT_EQ(chosen(product(16)), "unroll(1,16) upcast(0,4)");
}

// Axes: head, row, column of the result, column of the scores and of the probabilities; then the
// width, the row's maximum and sum, and the positions of the last product.
// Its sum of products serves each element of a row: vectors are contiguous along it, though some of
// what is loaded once a row is contiguous along rows.
TEST(Opt, RowsWithASumOfProductsAreVectors) {
  constexpr int64_t kRows = 1024, kColumns = 128, kAll = kRows * kColumns;
  AstBuilder b;
  const UOp row = b.loop(kRows), column = b.loop(kColumns), k = b.fold(kColumns);
  const UOp scale = load(3, kRows, row);
  const UOp along = row * kColumns + k, at = row * kColumns + column;
  const UOp sum = reduce_over(Op::Add, load(1, kAll, along) * (load(2, kAll, along) - scale), {k});
  const UOp ast = kernel_of({store(0, kAll, at, load(1, kAll, at) - sum * scale, {row, column})});
  const LinearKernel lowered = lower(ast, builtin_target("c-x86-64"));
  EXPECT_EQ(lowered.opts, "unroll(2,16) vector(1,16)");
  expect_same(ast, lowered, 1e-4, "a row with a sum of products");
}

// Unrolled products that have no sums of their own are multiply-adds, one after the other.
TEST(Opt, UnrolledProductsAreMultiplyAdds) {
  const Target gpu = builtin_target("spirv-generic");
  const UOp ast = matmul_ast(16, 16, 32);
  const auto dots = [](const LinearKernel& k) {
    return std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::Dot; });
  };
  const std::vector<Opt> tile{{OptKind::Upcast, 0, 8}, {OptKind::Upcast, 1, 8},
                              {OptKind::Unroll, 2, 4}};
  const LinearKernel k = lower_with(ast, gpu, tile);
  EXPECT_EQ(dots(k), 1);
  EXPECT_EQ(k.estimate.flops, lower_with(ast, gpu, {}).estimate.flops);
  expect_same(ast, k, 1e-5, "tile");
  EXPECT_EQ(dots(lower_with(ast, gpu, {{OptKind::Unroll, 2, 4}})), 0);  // four sums
  EXPECT_EQ(dots(lower_with(ast, builtin_target("c-x86-64"), tile)), 0);
}

// A CPU's registers do not last for a sum of each unrolled number: those of a vector have one, and
// what other unrolled numbers give is added to it.
TEST(Opt, UnrolledNumbersOfSeveralVectorsAreAddedToOne) {
  const Target t = builtin_target("c-x86-64");
  AstBuilder b;
  const UOp v = b.loop(8), row = b.loop(6), n = b.fold(48);
  const UOp ast = kernel_of(
      {store(0, 48, v * 6 + row,
             reduce_over(Op::Add, load(1, 6 * 48, row * 48 + n) * load(2, 8 * 48, v * 48 + n), {n}),
             {v, row})});
  const std::vector<Opt> opts{{OptKind::Unroll, 2, 4}, {OptKind::Unroll, 2, 4},
                              {OptKind::Upcast, 0, 8}};
  const LinearKernel k = lower_with(ast, t, opts);
  EXPECT_EQ(std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::Dot; }), 1)
      << to_text(k);
  expect_same(ast, k, 1e-5, "several vectors");
}

TEST(Opt, NestedReductionsAreNotBothShared) {
  AstBuilder b;
  const UOp i = b.fold(64), j = b.fold(32);
  const UOp inner = reduce_over(Op::Max, load(1, 2048, i * 32 + j), {j});
  const UOp ast = kernel_of({store(0, 1, index_const(0), reduce_over(Op::Add, inner, {i}), {})});
  const Target gpu = builtin_target("spirv-lavapipe");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 0, 8}, {OptKind::GroupReduce, 1, 8}},
                 "is shared already");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 1, 8}, {OptKind::GroupReduce, 0, 8}},
                 "is shared already");
  for (int axis : {0, 1})
    expect_same(ast, lower_with(ast, gpu, {{OptKind::GroupReduce, axis, 8}}), 1e-5, "one shared");
}

TEST(Opt, EachKeepsTheMeaning) {
  const Target gpu = builtin_target("spirv-lavapipe");
  const UOp ast = matmul_ast(12, 16, 40);
  for (const Opt& o :
       {Opt{OptKind::Split, 0, 3}, Opt{OptKind::Split, 2, 5}, Opt{OptKind::Upcast, 0, 4},
        Opt{OptKind::Upcast, 0, 5}, Opt{OptKind::Vector, 1, 8}, Opt{OptKind::Vector, 0, 8},
        Opt{OptKind::Stage, 0, 0}, Opt{OptKind::Stage, 1, 0}, Opt{OptKind::Stage, 0, 1},
        Opt{OptKind::Unroll, 2, 8}, Opt{OptKind::Unroll, 2, 7}, Opt{OptKind::Group, 0, 0},
        Opt{OptKind::Group, 1, 4}, Opt{OptKind::Group, 1, 5}, Opt{OptKind::Local, 1, 8},
        Opt{OptKind::Local, 1, 5}, Opt{OptKind::GroupReduce, 2, 8},
        Opt{OptKind::GroupReduce, 2, 16}, Opt{OptKind::Swap, 0, 1}}) {
    const LinearKernel k = lower_with(ast, gpu, {o});
    EXPECT_EQ(k.opts, to_string(o));
    expect_same(ast, k, 1e-5, to_string(o));
  }
}

// A workgroup is a grid of outputs and shares of their sums, either along its first axis.
TEST(Opt, WorkgroupsHoldOutputsBesideSharesOfTheirSums) {
  Target gpu = builtin_target("spirv-lavapipe");
  gpu.features.full_subgroups = false;
  const UOp ast = matmul_ast(12, 18, 40);
  const Opt share{OptKind::GroupReduce, 2, 8}, column{OptKind::Local, 1, 4},
      row{OptKind::Local, 0, 6};
  const auto workgroup = [&](std::vector<Opt> opts) {
    const LinearKernel k = lower_with(ast, gpu, opts);
    expect_same(ast, k, 1e-5, to_string(opts));
    return k.local;
  };
  using Sizes = std::array<uint32_t, 3>;
  EXPECT_EQ(workgroup({column, share}), (Sizes{8, 4, 1}));
  EXPECT_EQ(workgroup({share, column}), (Sizes{4, 8, 1}));
  EXPECT_EQ(workgroup({row, column, share}), (Sizes{8, 4, 6}));
  EXPECT_EQ(workgroup({share, row, column}), (Sizes{4, 6, 8}));
  const Opt tile{OptKind::Upcast, 0, 5}, vector{OptKind::Vector, 1, 4},
      steps{OptKind::Unroll, 2, 4};
  EXPECT_EQ(workgroup({tile, steps, share, vector, column}), (Sizes{4, 8, 1}));
  EXPECT_EQ(workgroup({vector, tile, steps, column, share}), (Sizes{8, 4, 1}));
  const UOp softmax = softmax_ast(10, 64);
  const std::vector<Opt> rows{{OptKind::Local, 0, 4}, {OptKind::GroupReduce, 2, 8},
                              {OptKind::GroupReduce, 3, 8}, {OptKind::Local, 1, 8}};
  const LinearKernel k = lower_with(softmax, gpu, rows);
  EXPECT_EQ(k.local, (Sizes{8, 4, 1}));
  expect_same(softmax, k, 1e-5, "rows of a softmax");
}

// Threadblock swizzle: rows of workgroups that follow each other, and all of them, where 1 is what
// stands outside.
TEST(Opt, GroupsOfWhatIsLeftAreInnermostInTheLaunch) {
  const Target gpu = tuff::testing::target_of("amd-rdna3-igpu");
  const std::vector<Opt> tile{{OptKind::Upcast, 0, 2}, {OptKind::Local, 0, 4},
                              {OptKind::Upcast, 1, 2}, {OptKind::Local, 1, 8}};
  const UOp even = matmul_ast(64, 96, 12, false), ragged = matmul_ast(61, 90, 5, false);
  for (const auto& [outside, first] : {std::pair<int64_t, int64_t>{1, 8}, {2, 4}, {3, 3}}) {
    std::vector<Opt> opts = tile;
    opts.insert(opts.end(), {{OptKind::Group, 0, outside}, {OptKind::Group, 0, 0},
                             {OptKind::Group, 1, 0}});
    const LinearKernel k = lower_with(even, gpu, opts);
    EXPECT_EQ(k.groups[0].value(), first) << k.opts;
    for (const UOp& ast : {even, ragged})
      expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
  }
  expect_refused(even, gpu, {{OptKind::Group, 0, 65}}, "1 to 64 is possible");
  expect_refused(even, gpu, {{OptKind::Upcast, 0, 1}}, "2 to 64 is possible");
}

// Random graph 12334 on the emulated sm_90: lanes that have parted at a store of one of them come to
// the next one at other times, and would store beside each other.
TEST(Opt, WhereOneLaneStoresNoOtherDoes) {
  AstBuilder b;
  const UOp i = b.loop(24), j = b.loop(24), k = b.fold(48);
  const UOp x = load(2, 48, k, DType::I32);
  const auto sum = [&](const UOp& v) {
    return make(Op::Reduce, v->dtype, {v, k}, ReduceArg{Op::Add, {}});
  };
  const UOp ast = kernel_of({store(0, 24, i, sum(cast(x, DType::F32)), {i}),
                             store(1, 24, j, sum(cast(x, DType::U16)), {j})});
  const LinearKernel both = lower_with(ast, builtin_target("nvptx-sm_86"),
                                       {{OptKind::GroupReduce, 2, 32}});
  const auto stores = [](const LinearKernel& kernel, bool gated) {
    return std::ranges::count_if(kernel.ops, [&](const UOp& u) {
      const Node* to = u->op == Op::Store ? accessed_memory(u.get()) : nullptr;
      return to && to->op == Op::Param && (u->src(0)->src_count > 2) == gated;
    });
  };
  EXPECT_EQ(stores(both, true), 2) << to_text(both);
  EXPECT_EQ(stores(both, false), 0);
  expect_same(ast, both, 1e-6, to_text(both));
}

// Random graph 60309: the copy of such loads would lie outside of the loop that has the order, and
// its barrier inside.
TEST(Opt, TransposedLoadsOfALoopWithAnOrderStayLoads) {
  constexpr int64_t kSteps = 15, kRows = 3, kColumns = 7;
  AstBuilder b;
  const UOp owner = b.loop(kSteps), step = b.ordered(2), row = b.loop(kRows), column = b.loop(kColumns);
  const UOp to = cast(load(2, 2, step, DType::I32), DType::Index);
  const UOp own = logical_and(ge(to, owner), lt(to, owner + 1));
  const UOp value = load(1, kSteps * kRows * kColumns, (column * kSteps + step + 9) * kRows + row,
                         DType::Bool, own);
  const UOp place = (floormod(to, kSteps) * kRows + row) * kColumns + column;
  const UOp ast = kernel_of(
      {store(0, kSteps * kRows * kColumns, place, value, {owner, step, row, column}, own)});
  for (const char* name : {"nvptx-sm_86", "spirv-lavapipe"}) {
    const LinearKernel k = lower(ast, builtin_target(name));
    EXPECT_TRUE(std::ranges::none_of(k.ops, [](const UOp& u) { return u->op == Op::Barrier; }))
        << to_text(k);
  }
}

// Elements beyond the end, and those that the last tile has in common with the one before, are not
// loaded in their place where another invocation stores them.
TEST(Opt, NoInvocationLoadsWhatAnotherStoresInPlace) {
  constexpr int64_t kCount = 75;
  const auto doubled = [](int32_t from) {
    AstBuilder b;
    const UOp i = b.loop(kCount);
    return kernel_of({store(0, kCount, i, load(from, kCount, i) * constant(DType::F32, 2), {i})});
  };
  const auto loads = [](const LinearKernel& k, bool gated) {
    return std::ranges::count_if(k.ops, [&](const UOp& u) {
      return u->op == Op::Load && u->src(0)->op == Op::Index && (u->src(0)->src_count > 2) == gated;
    });
  };
  const Target gpu = builtin_target("spirv-lavapipe");
  for (const Opts& opts :
       {Opts{{OptKind::Local, 0, 16}, {OptKind::Group, 0, 0}},
        Opts{{OptKind::Upcast, 0, 4}, {OptKind::Local, 0, 8}, {OptKind::Group, 0, 0}},
        Opts{{OptKind::Upcast, 0, 2}}}) {
    const LinearKernel in_place = lower_with(doubled(0), gpu, opts),
                       apart = lower_with(doubled(1), gpu, opts);
    EXPECT_EQ(loads(in_place, false), 0) << to_string(opts);
    EXPECT_EQ(loads(apart, true), 0) << to_string(opts);
    expect_same(doubled(0), in_place, 0, to_string(opts));
    expect_same(doubled(1), apart, 0, to_string(opts));
  }
}

// What depends on the launch group alone is loaded outside the loop, also where that has no
// iteration.
TEST(Opt, GroupsThatNothingIsLeftForLoadNothingBeyond) {
  for (const auto& [name, n, run] : {std::tuple{"c-x86-64", 16, 3}, {"spirv-lavapipe", 200, 64}}) {
    AstBuilder b;
    const UOp i = b.loop(n);
    const UOp value = load(1, (n + run - 1) / run, floordiv(i, run)) + load(2, n, i);
    const UOp ast = kernel_of({store(0, n, i, value, {i})});
    const Opts opts{{OptKind::Spread, 0, 7}};
    expect_same(ast, lower_with(ast, builtin_target(name), opts), 0, name);
  }
}

// Columns of a matrix summed up and taken from what they are the gradient of, beside values of
// their own. Axes: columns, elements; rows.
UOp column_sums_beside_elements(int64_t rows, int64_t columns, int64_t elements) {
  AstBuilder b;
  const UOp c = b.loop(columns), i = b.loop(elements), r = b.fold(rows);
  const UOp sum = reduce_over(Op::Add, load(1, rows * columns, r * columns + c), {r});
  return kernel_of({store(0, columns, c, load(0, columns, c) - sum, {c}),
                    store(2, elements, i, load(3, elements, i) * load(3, elements, i), {i})});
}

TEST(Opt, InvocationsShareSumsOfNestsThatAreSharedOut) {
  const Target gpu = builtin_target("aco-gfx1100");
  const Opt share{OptKind::GroupReduce, 2, 8}, sums{OptKind::Spread, 0, 3},
      elements{OptKind::Spread, 1, 3}, vector{OptKind::Vector, 0, 4},
      unroll{OptKind::Unroll, 2, 2}, beside{OptKind::Vector, 1, 4};
  for (const auto& [rows, columns, n] : {std::tuple{64, 96, 1000}, {37, 50, 700}, {16, 7, 3}}) {
    const UOp ast = column_sums_beside_elements(rows, columns, n);
    for (const Opts& opts :
         std::initializer_list<Opts>{{share, sums, elements},
                                     {share, elements, sums},
                                     {vector, unroll, share, beside, sums, elements},
                                     {share, sums}}) {
      const LinearKernel k = lower_with(ast, gpu, opts);
      EXPECT_EQ(k.local, (std::array<uint32_t, 3>{32, 8, 1})) << to_string(opts);
      expect_same(ast, k, 1e-5, to_string(opts));
    }
  }
  const UOp ast = column_sums_beside_elements(512, 100, 1000);
  LinearKernel k = lower(ast, gpu);
  EXPECT_EQ(k.local, (std::array<uint32_t, 3>{32, 16, 1})) << k.opts;
  expect_same(ast, k, 1e-5, k.opts);
  Target slow_shared = gpu;
  slow_shared.has_fast_shared = false;
  k = lower(ast, slow_shared);
  EXPECT_EQ(k.opts.find("group_reduce"), std::string::npos) << k.opts;
  expect_refused(ast, gpu, {sums, share}, "rows of axes that are shared out");
  expect_refused(ast, gpu, {{OptKind::Local, 0, 8}, share, sums}, "an axis of its own");
  Target small = gpu;
  small.shared_bytes = 2048;
  expect_refused(ast, small, {{OptKind::GroupReduce, 2, 32}, vector, sums}, "2048 bytes of fast");
}

// Each element less a sum that all have in common: invocations of different elements share it too.
TEST(Opt, InvocationsShareASumThatDoesNotDependOnWhatIsSharedOut) {
  AstBuilder b;
  const UOp i = b.loop(100), r = b.fold(64), sum = reduce_over(Op::Add, load(2, 64, r), {r});
  const UOp ast = kernel_of({store(0, 100, i, load(1, 100, i) - sum, {i})});
  const Opts opts{{OptKind::GroupReduce, 1, 8}, {OptKind::Spread, 0, 2}};
  expect_same(ast, lower_with(ast, builtin_target("aco-gfx1100"), opts), 1e-5, "shared out");
}

TEST(Opt, StageRefusesWhatIsIllegalAndSaysWhy) {
  const Target cpu = builtin_target("c-x86-64"), gpu = builtin_target("spirv-lavapipe");
  const UOp ast = matmul_ast(12, 16, 40);
  expect_refused(ast, cpu, {{OptKind::Stage, 2, 0}}, "no such operand");
  expect_refused(ast, cpu, {{OptKind::Stage, 0, -1}}, "0 or more loops");
  expect_refused(ast, cpu, {{OptKind::Stage, 0, 0}, {OptKind::Stage, 0, 1}}, "staged already");
  expect_refused(ast, cpu, {{OptKind::Stage, 0, 0}, {OptKind::Upcast, 0, 2}}, "loops as they are");
  expect_refused(ast, cpu, {{OptKind::Stage, 1, 1}}, "no loop inside reads the copy again");
  expect_refused(ast, cpu, {{OptKind::Group, 1, 0}, {OptKind::Stage, 0, 0}},
                 "reads the copy again");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 2, 8}, {OptKind::Stage, 0, 0}},
                 "shares a reduction");
  expect_refused(ast, gpu, {{OptKind::Spread, 0, 4}, {OptKind::Stage, 0, 0}}, "shared out");
  expect_refused(ast, gpu, {{OptKind::Group, 0, 0}, {OptKind::Local, 1, 8}, {OptKind::Stage, 1, 0}},
                 "reads the copy again");
  expect_refused(sum_ast(4, 16), cpu, {{OptKind::Stage, 0, 0}}, "no such operand");
  Target small = cpu;
  small.shared_bytes = 2048;
  expect_refused(ast, small, {{OptKind::Stage, 1, 0}}, "640 elements exceeds the 1920 bytes");
}

TEST(Opt, AheadRefusesWhatIsIllegalAndSaysWhy) {
  const Target gpu = builtin_target("spirv-lavapipe");
  const UOp ast = matmul_ast(12, 16, 40);
  const Opt ahead{OptKind::Ahead, 0, 1}, local{OptKind::Local, 1, 8}, split{OptKind::Split, 2, 4};
  expect_refused(ast, builtin_target("c-x86-64"), {{OptKind::Stage, 0, 0}, ahead},
                 "one invocation");
  expect_refused(ast, gpu, {local, ahead}, "not staged");
  expect_refused(ast, gpu, {local, split, {OptKind::Stage, 0, 2}, {OptKind::Ahead, 0, 3}},
                 "1 or 2 places");
  expect_refused(ast, gpu, {local, {OptKind::Stage, 0, 0}, ahead}, "makes a next copy");
  expect_refused(ast, gpu, {local, split, {OptKind::Stage, 0, 3}, ahead, ahead}, "ahead already");
  const Opt rows{OptKind::Upcast, 0, 12}, slab{OptKind::Split, 2, 20};
  expect_refused(ast, gpu, {rows, local, slab, {OptKind::Stage, 0, 2}, ahead},
                 "than its registers hold");
  Target small = gpu;
  small.shared_bytes = 1024;
  const Opt few{OptKind::Upcast, 0, 4}, copy{OptKind::Stage, 0, 3};
  Opts once{few, local, split, copy, ahead}, twice = once;
  twice.back().amount = 2;
  ASSERT_EQ(refusal(ast, small, once), "");
  small.shared_bytes = 256;
  expect_refused(ast, small, twice, "of fast memory left");
}

// The largest of sums of products: copies for the sums are made in loops of both.
TEST(Opt, AheadOfReductionsInOneAnother) {
  const Target gpu = builtin_target("spirv-generic");
  AstBuilder b;
  const UOp i = b.loop(4), j = b.loop(8), r = b.fold(5), k = b.fold(6);
  const UOp x = load(1, 4 * 5 * 6, (i * 5 + r) * 6 + k), y = load(2, 8 * 6, j * 6 + k);
  const UOp largest = reduce_over(Op::Max, reduce_over(Op::Add, x * y, {k}), {r});
  const UOp ast = kernel_of({store(0, 4 * 8, i * 8 + j, largest, {i, j})});
  int refused = 0, kept = 0;
  for (int64_t around = 0; around <= 4; around++) {
    for (const bool swapped : {false, true}) {
      std::vector<Opt> opts{{OptKind::Local, 1, 4},
                            {OptKind::Group, 0, 0},
                            {OptKind::Group, 1, 0},
                            {OptKind::Split, 2, 3}};
      if (swapped) opts.push_back({OptKind::Swap, 2, 3});
      opts.insert(opts.end(), {{OptKind::Stage, 0, around}, {OptKind::Ahead, 0, 1}});
      const std::string why = refusal(ast, gpu, opts);
      refused += why.find("makes the next copy another one") != std::string::npos;
      if (!why.empty()) continue;
      kept++;
      expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(kept, 0);
}

// A sum that adds each product several times: the loop that repeats it begins with the first copy.
TEST(Opt, AheadOfAReductionThatRepeatsItsCopies) {
  const Target gpu = builtin_target("spirv-generic");
  AstBuilder b;
  const UOp i = b.loop(4), j = b.loop(8), times = b.fold(3), k = b.fold(12);
  const UOp x = load(1, 4 * 12, i * 12 + k), y = load(2, 8 * 12, j * 12 + k);
  const UOp sum = reduce_over(Op::Add, x * y, {times, k});
  const UOp ast = kernel_of({store(0, 4 * 8, i * 8 + j, sum, {i, j})});
  int kept = 0;
  for (const std::vector<Opt>& before : {std::vector<Opt>{}, {{OptKind::Swap, 2, 3}},
                                         {{OptKind::Unroll, 2, 3}}}) {
    for (int64_t around = 0; around <= 4; around++) {
      std::vector<Opt> opts = before;
      opts.insert(opts.end(), {{OptKind::Local, 1, 4},
                               {OptKind::Group, 0, 0},
                               {OptKind::Group, 1, 0},
                               {OptKind::Split, 3, 4},
                               {OptKind::Stage, 0, around},
                               {OptKind::Ahead, 0, 1}});
      if (!refusal(ast, gpu, opts).empty()) continue;
      kept++;
      expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
    }
  }
  EXPECT_GT(kept, 0);
}

// A workgroup's tiles: of one factor or both, in slabs of the reduction or whole, edges that divide
// nothing, more invocations than elements and fewer, loops of outputs around and inside, copies at
// different places.
TEST(Opt, TilesThatAWorkgroupSharesKeepTheMeaning) {
  const Opt x{OptKind::Local, 1, 4}, y{OptKind::Local, 0, 4}, all_x{OptKind::Group, 1, 0},
      all_y{OptKind::Group, 0, 0}, slab{OptKind::Split, 2, 4}, a{OptKind::Stage, 0, 1},
      b{OptKind::Stage, 1, 1}, next_a{OptKind::Ahead, 0, 1}, next_b{OptKind::Ahead, 1, 1};
  int count = 0;
  for (const char* name : {"spirv-generic", "spirv-lavapipe"}) {
    const Target gpu = builtin_target(name);
    for (const bool transposed : {false, true}) {
      for (const UOp& ast :
           {matmul_ast(13, 21, 8, transposed), matmul_ast(16, 32, 40, transposed)}) {
        for (const std::vector<Opt>& opts : std::vector<std::vector<Opt>>{
                 {x, y, slab, all_x, all_y, a},
                 {x, y, slab, all_x, all_y, b},
                 {x, y, slab, all_x, all_y, a, b},
                 {x, y, slab, all_x, all_y, a, b, next_a},
                 {x, y, slab, all_x, all_y, a, b, next_a, next_b},
                 {{OptKind::Upcast, 1, 2}, x, {OptKind::Upcast, 0, 3}, y, slab, all_x, all_y, a, b},
                 {{OptKind::Upcast, 1, 2},
                  x,
                  y,
                  {OptKind::Unroll, 2, 2},
                  all_x,
                  all_y,
                  a,
                  b,
                  next_b},
                 {{OptKind::Vector, 1, 4},
                  x,
                  y,
                  {OptKind::Unroll, 2, 4},
                  all_x,
                  all_y,
                  a,
                  b,
                  next_a},
                 {x, y, all_x, all_y, {OptKind::Stage, 0, 0}, {OptKind::Stage, 1, 0}},
                 {x, y, slab, all_x, all_y, {OptKind::Stage, 0, 0}, b, next_b},
                 {x,
                  y,
                  {OptKind::Split, 0, 2},
                  slab,
                  {OptKind::Stage, 0, 1},
                  {OptKind::Stage, 1, 3}},
                 {x,
                  y,
                  slab,
                  {OptKind::Swap, 0, 1},
                  {OptKind::Stage, 0, 0},
                  {OptKind::Stage, 1, 1}},
                 {x, {OptKind::Local, 1, 4}, y, slab, all_x, all_y, a, b, next_a, next_b}}) {
          std::optional<LinearKernel> k;
          try {
            k = lower_with(ast, gpu, opts);
          } catch (const InvalidArgument&) {
            continue;  // an axis is too short for it, or is not divided
          }
          count++;
          EXPECT_GT(k->shared_bytes, 0u);
          expect_same(ast, *k, 1e-5, to_string(opts));
        }
      }
    }
  }
  EXPECT_GE(count, 80);
}

// A reduction that no tile divides: what is past its end is 0 in the copies, and products read them
// as they are. A factor that is not copied is masked where it is read.
TEST(Opt, PaddedSumsAreMaskedInTheirCopies) {
  const UOp ast = matmul_ast(8, 12, 15);
  const auto expect_selects = [&](const Target& t, const std::vector<Opt>& opts, int wanted) {
    Tiling tiling(ast_for_opts(ast, t), t);
    for (const Opt& o : opts) apply(tiling, o);
    int selects = 0;
    const UOp built = build(tiling);
    for (const Node* n : toposort(built)) {
      if (n->op != Op::Reduce) continue;
      ASSERT_EQ(n->src(0)->op, Op::Mul);
      for (const UOp& factor : n->src(0)->src()) selects += factor->op == Op::Where;
    }
    EXPECT_EQ(selects, wanted) << to_string(opts);
    expect_same(ast, lower_with(ast, t, opts), 1e-5, to_string(opts));
  };
  const Opt x{OptKind::Local, 1, 4}, y{OptKind::Local, 0, 4}, steps{OptKind::Unroll, 2, 2},
      slab{OptKind::Split, 2, 4}, all_x{OptKind::Group, 1, 0}, all_y{OptKind::Group, 0, 0},
      a{OptKind::Stage, 0, 1}, b{OptKind::Stage, 1, 1}, next{OptKind::Ahead, 1, 1};
  for (const char* name : {"spirv-generic", "spirv-lavapipe"}) {
    const Target gpu = builtin_target(name);
    expect_selects(gpu, {x, y, steps, slab, all_x, all_y}, 2);
    expect_selects(gpu, {x, y, steps, slab, all_x, all_y, a}, 1);
    expect_selects(gpu, {x, y, steps, slab, all_x, all_y, b, next}, 1);
    expect_selects(gpu, {x, y, steps, slab, all_x, all_y, a, b, next}, 0);
  }
  const Target cpu = builtin_target("c-x86-64");
  const Opt rows{OptKind::Upcast, 0, 3};
  expect_selects(cpu, {rows, steps, {OptKind::Stage, 1, 0}}, 1);
  expect_selects(cpu, {rows, steps, {OptKind::Stage, 0, 0}, {OptKind::Stage, 1, 0}}, 0);
}

// Tiles that divide nothing, copies inside none, one or two loops, with lanes and without.
TEST(Opt, StagedTilesKeepTheMeaning) {
  const Target cpu = builtin_target("c-x86-64");
  const std::vector<Opt> tile{{OptKind::Vector, 1, 8}, {OptKind::Upcast, 0, 3}};
  for (const bool transposed : {false, true}) {
    for (const UOp& ast : {matmul_ast(13, 21, 9, transposed), matmul_ast(12, 32, 40, transposed),
                           matmul_ast(7, 37, 5, transposed)}) {
      for (const std::vector<Opt>& more : std::vector<std::vector<Opt>>{
               {{OptKind::Stage, 0, 0}},
               {{OptKind::Stage, 1, 0}},
               {{OptKind::Swap, 0, 1}, {OptKind::Stage, 1, 1}},
               {{OptKind::Swap, 0, 1}, {OptKind::Stage, 0, 0}, {OptKind::Stage, 1, 1}},
               {{OptKind::Unroll, 2, 4}, {OptKind::Stage, 0, 1}},
               {{OptKind::Group, 1, 2}, {OptKind::Stage, 0, 0}, {OptKind::Stage, 1, 0}},
               {{OptKind::Group, 0, 2}, {OptKind::Stage, 1, 0}}}) {
        std::vector<Opt> opts = tile;
        opts.insert(opts.end(), more.begin(), more.end());
        const LinearKernel k = lower_with(ast, cpu, opts);
        EXPECT_GT(k.shared_bytes, 0u);
        expect_same(ast, k, 1e-5, to_string(opts));
      }
    }
  }
}

// Each channel by itself: both axes of the tile are the image's, none is the weights' alone.
UOp depthwise_ast(int64_t channels, int64_t height, int64_t width, int64_t window) {
  AstBuilder b;
  const UOp c = b.loop(channels), y = b.loop(height), x = b.loop(width);
  const UOp dy = b.fold(window), dx = b.fold(window);
  const UOp iy = y + dy - window / 2, ix = x + dx - window / 2;
  const UOp gate = logical_and(logical_and(ge(iy, index_const(0)), lt(iy, index_const(height))),
                               logical_and(ge(ix, index_const(0)), lt(ix, index_const(width))));
  const int64_t count = channels * height * width;
  const UOp image = load(1, count, (c * height + iy) * width + ix, DType::F32, gate);
  const UOp weight = load(2, channels * window * window, (c * window + dy) * window + dx);
  const UOp sum = reduce_over(Op::Add, image * weight, {dy, dx});
  return kernel_of({store(0, count, (c * height + y) * width + x, sum, {c, y, x})});
}

TEST(Opt, TilesWhoseAxesReadTheSameAreSharedOut) {
  for (const char* name : {"spirv-generic", "spirv-lavapipe"}) {
    Target gpu = builtin_target(name);
    gpu.has_fast_shared = true;
    for (const int64_t channels : {1, 16, 240}) {
      for (const int64_t window : {3, 5}) {
        for (const auto& [height, width] : {std::pair(12, 16), {12, 32}, {24, 16}, {24, 32}, {7, 9}}) {
          const UOp ast = depthwise_ast(channels, height, width, window);
          const LinearKernel k = lower(ast, gpu);
          if (channels == 16) expect_same(ast, k, 1e-5, k.opts);
        }
      }
    }
  }
}

// Its columns are channels, which are no neighbours in the result; the weights are copied once for
// all the pixels of a launch group.
TEST(Opt, ConvolutionsPackTheirWeightsForManyPixels) {
  Target t = builtin_target("c-x86-64");
  t.cores = 2;
  t.vector_bytes = 64;
  t.vector_registers = 32;
  const LinearKernel k = lower(conv_ast(64, 32, 12, 64), t);
  EXPECT_NE(k.opts.find("vector(1,"), std::string::npos) << k.opts;
  EXPECT_NE(k.opts.find("stage("), std::string::npos) << k.opts;
  int64_t groups = 1;
  for (const auto& g : k.groups) groups *= g.max();
  EXPECT_LT(groups, 64 * 12) << k.opts;
  EXPECT_GT(groups, 1) << k.opts;
  const UOp small = conv_ast(3, 2, 6, 20);
  const std::vector<Opt> opts{{OptKind::Vector, 1, 16},
                              {OptKind::Upcast, 3, 4},
                              {OptKind::Group, 0, 2},
                              {OptKind::Swap, 0, 1},
                              {OptKind::Stage, 1, 1}};
  expect_same(small, lower_with(small, t, opts), 1e-5, to_string(opts));
}

// Fewer pixels than lanes: partial sums in lanes along the weights, which lie in the order of the
// sum, and a copy of the pixels in that order.
TEST(Opt, FewPixelsAreGatheredForSumsAlongTheWeights) {
  Target t = builtin_target("c-x86-64");
  t.cores = 1;
  t.vector_bytes = 64;
  t.vector_registers = 32;
  EXPECT_EQ(lower(conv_ast(1, 33, 2, 16), t).opts,
            "upcast(2,2) upcast(3,2) upcast(1,4) unroll(4,16) stage(0,0)");
  EXPECT_EQ(lower(conv_ast(2, 33, 1, 16), t).opts,
            "upcast(0,2) upcast(1,8) unroll(4,16) stage(0,0)");
  for (const UOp& ast : {conv_ast(1, 33, 3, 16), conv_ast(1, 33, 2, 2), conv_ast(1, 3, 2, 16)})
    EXPECT_EQ(lower(ast, t).opts.find("stage"), std::string::npos) << lower(ast, t).opts;
  for (const uint32_t bytes : {16, 32, 64}) {
    t.vector_bytes = bytes;
    for (const UOp& ast :
         {conv_ast(1, 5, 2, 6), conv_ast(2, 7, 1, 16), conv_ast(1, 9, 1, 5), conv_ast(2, 4, 2, 7)})
      expect_same(ast, lower(ast, t), 1e-5, lower(ast, t).opts);
  }
}

// An invocation takes what two loads give of several rows, which have the vector in common; with
// many vectors what a word holds is decoded by one invocation for the tiles of its workgroup.
TEST(Opt, PackedWeightsAreDecodedByWords) {
  Target t = tuff::testing::target_of("nvidia-ampere");
  const LinearKernel one = lower(packed_sum_ast(4096, 128), t);
  EXPECT_NE(one.opts.find("upcast(0,4)"), std::string::npos) << one.opts;
  EXPECT_NE(one.opts.find("unroll(1,8) group_reduce(1,32)"), std::string::npos) << one.opts;
  const LinearKernel many = lower(packed_sum_ast(1024, 32, 256), t);
  EXPECT_NE(many.opts.find("stage(0,"), std::string::npos) << many.opts;
  EXPECT_NE(many.opts.find("stage(1,"), std::string::npos) << many.opts;
  const UOp small = packed_sum_ast(32, 4, 32);
  for (const int64_t steps : {8, 16, 32}) {
    const Opts opts = parse_opts(fmt::format(
        "split(2,{}) upcast(0,4) local(0,4) upcast(1,4) local(1,8) group(0,0) group(1,0) "
        "stage(0,1) stage(1,1)",
        steps));
    expect_same(small, lower_with(small, t, opts), 1e-4, to_string(opts));
  }
}

// Comparisons and a mask for every vector of pixels are dear: where several tiles of channels read
// it, it is copied once.
TEST(Opt, PaddedPixelsAreCopiedForTheChannelsThatShareThem) {
  Target t = builtin_target("c-x86-64");
  t.cores = 2;
  t.vector_bytes = 64;
  t.vector_registers = 32;
  const UOp ast = conv_ast(128, 32, 14, 64);
  const LinearKernel k = lower(ast, t);
  EXPECT_NE(k.opts.find("stage(0,"), std::string::npos) << k.opts;
}

// The weights are packed once for all images of a launch group, the pixels once for each row.
TEST(Opt, PackedWeightsStayForTheImagesOfAGroup) {
  Target t = builtin_target("c-x86-64");
  t.cores = 2;
  t.vector_bytes = 32;
  t.vector_registers = 16;
  t.l1_bytes = 32 << 10, t.l2_bytes = 512 << 10;
  const LinearKernel k = lower(conv_ast(8, 64, 56, 64), t);
  EXPECT_NE(k.opts.find("stage(0,1) stage(1,0)"), std::string::npos) << k.opts;
  int64_t groups = 1;
  for (const auto& g : k.groups) groups *= g.max();
  EXPECT_LE(groups, 56) << k.opts;
  for (const UOp& small : {conv_ast(3, 2, 6, 20), conv_ast(2, 3, 8, 32)}) {
    for (const std::vector<Opt>& inner : std::vector<std::vector<Opt>>{
             {{OptKind::Group, 2, 2}, {OptKind::Swap, 1, 2}, {OptKind::Stage, 0, 2}},
             {{OptKind::Group, 2, 0}, {OptKind::Stage, 0, 1}},
             {{OptKind::Group, 2, 2}, {OptKind::Group, 3, 2}, {OptKind::Swap, 1, 2},
              {OptKind::Stage, 0, 2}}}) {
      std::vector<Opt> opts{{OptKind::Vector, 1, 16}, {OptKind::Upcast, 3, 2}};
      opts.insert(opts.end(), inner.begin(), inner.end());
      opts.push_back({OptKind::Stage, 1, 0});
      expect_same(small, lower_with(small, t, opts), 1e-5, to_string(opts));
    }
  }
}

// 16 bytes of the widest element that is walked, if enough invocations are left.
TEST(Opt, AnInvocationTakesAsManyNeighboursAsOneAccess) {
  const Target t = tuff::testing::target_of("amd-rdna3-igpu");
  const auto opts_of = [&](DType from, DType to, int64_t n) {
    AstBuilder b;
    const UOp i = b.loop(n);
    const UOp ast = kernel_of({store(0, n, i, ir::cast(load(1, n, i, from), to), {i})});
    return lower(ast, t).opts;
  };
  constexpr int64_t kMany = 1 << 20;
  const auto takes = [](const std::string& opts, const char* n) {
    EXPECT_TRUE(opts.starts_with(fmt::format("vector(0,{})", n))) << opts;
  };
  takes(opts_of(DType::F16, DType::F16, kMany), "8");
  takes(opts_of(DType::U8, DType::I8, kMany), "16");
  takes(opts_of(DType::F16, DType::F32, kMany), "4");
  takes(opts_of(DType::F32, DType::F16, kMany), "4");
  takes(opts_of(DType::F32, DType::I32, kMany), "4");
  takes(opts_of(DType::F16, DType::F16, 4096), "4");
}

// 8 elements of 16 bits are one access; fewer where some invocations would have none in the last
// turn.
TEST(Opt, NarrowTilesAreCopiedByNeighbours) {
  const Target t = tuff::testing::target_of("amd-rdna3-igpu");
  for (const auto& [k, together] : {std::pair<int64_t, int>{32, 8}, {12, 2}}) {
    const UOp ast = narrow_product_ast({.m = 32, .n = 32, .k = 2 * k});
    const LinearKernel kernel = lower_with(ast, t,
                                           {{OptKind::Split, 2, k},
                                            {OptKind::Upcast, 0, 4},
                                            {OptKind::Local, 0, 8},
                                            {OptKind::Upcast, 1, 4},
                                            {OptKind::Local, 1, 8},
                                            {OptKind::Stage, 0, 1}});
    const auto is_wide = [&](const UOp& r) { return r->src(0)->max == together; };
    EXPECT_TRUE(std::ranges::any_of(kernel.lane_ranges, is_wide)) << to_text(kernel);
    expect_same(ast, kernel, 1e-4, kernel.opts);
  }
}

void expect_within(const LinearKernel& k, const Target& t) {
  uint32_t invocations = 1;
  for (size_t i = 0; i < 3; i++) {
    EXPECT_LE(k.groups[i].max(), int64_t(t.max_groups[i])) << k.opts;
    EXPECT_LE(k.local[i], t.max_local[i]) << k.opts;
    invocations *= k.local[i];
  }
  EXPECT_LE(invocations, t.max_invocations) << k.opts;
  EXPECT_LE(k.shared_bytes, t.shared_bytes) << k.opts;
}

TEST(Opt, LaunchesStayWithinSmallLimits) {
  const Target t = small_gpu();
  for (const UOp& ast :
       {elementwise_ast(67, 31), elementwise_ast(1, 4099), sum_ast(257, 6), sum_ast(3, 4096),
        matmul_ast(40, 36, 17), softmax_ast(37, 64), conv_ast(2, 3, 9, 5), gather_ast(50, 11, 7)}) {
    const LinearKernel k = lower(ast, t);
    expect_within(k, t);
    expect_same(ast, k, 1e-4, k.opts);
  }
}

TEST(Opt, WorkgroupsAreFoldedOverTheirAxes) {
  const Target t = small_gpu();
  EXPECT_EQ(workgroup_shape(16, t), (std::array<uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(workgroup_shape(7, t), (std::array<uint32_t, 3>{7, 1, 1}));
  EXPECT_EQ(workgroup_shape(11, t), std::nullopt);
  EXPECT_EQ(workgroup_shape(32, t), std::nullopt);
  const LinearKernel k = lower_with(elementwise_ast(8, 16), t, {{OptKind::Local, 0, 16}});
  EXPECT_EQ(k.local, (std::array<uint32_t, 3>{8, 2, 1}));
  expect_same(elementwise_ast(8, 16), k, 0, "16 invocations where x takes 8");
  expect_refused(elementwise_ast(8, 22), t, {{OptKind::Local, 1, 11}}, "at most 16 invocations");
  expect_refused(elementwise_ast(13, 5), t, {{OptKind::Group, 0, 0}}, "has room for 12");
}

TEST(Opt, RequiredPassesCannotBeSkipped) {
  const Target t = builtin_target("c-x86-64");
  const std::string required[] = {"reduces"},
                    optional[] = {"merge-axes", "simplify", "simplify-split", "index-order",
                                  "opts"};
  EXPECT_THROW(lower_with(matmul_ast(4, 4, 4), t, {}, required), InvalidArgument);
  const UOp ast = conv_ast(1, 2, 4, 2);
  expect_same(ast, lower_with(ast, t, {}, optional), 1e-5, "without optional passes");
}

TEST(Neighbours, AreLegalDifferOnceAndAreThereOnce) {
  for (const char* name : {"c-x86-64", "spirv-lavapipe"}) {
    const Target target = builtin_target(name);
    const UOp ast = ast_for_opts(matmul_ast(12, 16, 40), target);
    Tiling heuristic(ast, target);
    apply_heuristics(heuristic, ast, target);
    const Opts from = heuristic.applied;
    std::set<std::string> seen;
    size_t more = 0, less = 0, other = 0;
    for (const Opts& o : neighbours(ast, target, from, 256)) {
      EXPECT_TRUE(seen.insert(to_string(o)).second) << to_string(o);
      EXPECT_NE(o, from);
      (o.size() > from.size() ? more : o.size() < from.size() ? less : other)++;
      Tiling t(ast, target);
      for (const Opt& opt : o) EXPECT_NO_THROW(apply(t, opt)) << to_string(o);
      EXPECT_LE(lane_count(t), 256);
      EXPECT_EQ(parse_opts(to_string(o)), o);
    }
    EXPECT_GE(more, 5u) << name;
    EXPECT_GT(less, 0u) << name;
    EXPECT_GT(other, 5u) << name;
    EXPECT_TRUE(neighbours(ast, target, from, 0).empty());
  }
}

TEST(Neighbours, NoOptIsNamed) {
  EXPECT_TRUE(parse_opts("").empty());
  for (const char* text : {"vector", "vector(1)", "vector(1,4", "vector(1,4)x", "fold(1,4)",
                           "vector(a,4)", "vector(1,4)  upcast(0,2)", "vector(1,4,5)"})
    EXPECT_THROW(parse_opts(text), InvalidArgument) << text;
}

}  // namespace
}  // namespace tuff::kernel::testing
