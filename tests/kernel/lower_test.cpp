// Whole lowerings: the same values as the AST on every Target, and the shape of what comes out.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "ir/spec.h"
#include "ir/symbolic.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

struct Case {
  std::string name;
  UOp ast;
};
std::vector<Case> cases() {
  return {{"elementwise", elementwise_ast(6, 32)},
          {"elementwise odd", elementwise_ast(7, 13)},
          {"rows", sum_ast(5, 48)},
          {"one sum", sum_ast(1, 256)},
          {"odd sum", sum_ast(3, 131)},
          {"matmul", matmul_ast(16, 32, 12)},
          {"matmul odd", matmul_ast(7, 10, 9)},
          {"matmul transposed", matmul_ast(8, 12, 32, true)},
          {"softmax", softmax_ast(6, 40)},
          {"softmax wide", softmax_ast(2, 256)},
          {"softmax odd", softmax_ast(3, 131)},
          {"softmax narrow", softmax_ast(9, 10)},
          {"gather", gather_ast(9, 5, 16)},
          {"rows added by index", scatter_ast(9, 5, 16)},
          {"rows added by index, odd", scatter_ast(40, 6, 13)},
          {"elements added by index", scatter_ast(70, 5, 1)},
          {"packed numbers", packed_sum_ast(5, 6)},
          {"packed numbers, several vectors", packed_sum_ast(6, 4, 12)},
          {"convolution", conv_ast(2, 3, 6, 4)}};
}

int64_t trips_of(const LinearKernel& k) {
  std::vector<int64_t> total{0};
  std::vector<int64_t> sizes;
  for (const UOp& u : k.ops) {
    if (u->op == Op::Range && is_loop(kind_of(u.get()))) {
      sizes.push_back(u->src(0)->max);
      total.push_back(0);
    } else if (u->op == Op::End) {
      const int64_t inner = total.back();
      total.pop_back();
      total.back() += sizes.back() * (1 + inner);
      sizes.pop_back();
    }
  }
  return total[0];
}

TEST(Lower, SameValuesOnEveryTarget) {
  for (const NamedTarget& t : test_targets()) {
    for (const Case& c : cases()) {
      for (const bool choose : {true, false}) {
        const std::string what = c.name + " on " + t.name + (choose ? "" : " without opts");
        LinearKernel k;
        ASSERT_NO_THROW(k = lower(c.ast, t.target, {.choose_opts = choose})) << what;
        ASSERT_NO_THROW(check_linear_spec(k.ops, "lower")) << what << "\n" << to_text(k);
        ASSERT_NO_THROW(expect_same(c.ast, k, 1e-5, what)) << what << "\n" << to_text(k);
      }
    }
  }
}

TEST(Lower, IsDeterministic) {
  const Target t = builtin_target("spirv-lavapipe");
  const std::string once = to_text(lower(softmax_ast(6, 40), t));
  EXPECT_EQ(once, to_text(lower(softmax_ast(6, 40), t)));
}

TEST(Lower, LeavesOutWhatIsSkipped) {
  const Target t = builtin_target("c-x86-64");
  const UOp ast = elementwise_ast(6, 32);
  EXPECT_NE(lower(ast, t).opts, "");
  EXPECT_EQ(lower(ast, t, {.skipped = {"opts"}}).opts, "");
  EXPECT_EQ(lower(ast, t, {.choose_opts = false}).opts, "");
  try {
    lower(ast, t, {.skipped = {"linearize"}});
    ADD_FAILURE() << "a required pass was skipped";
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "pass 'linearize' cannot be skipped");
  }
}

TEST(Lower, LoopLimit) {
  const Target t = builtin_target("spirv-lavapipe");
  ASSERT_EQ(t.max_loop_trips, 65535u);
  for (const bool choose : {true, false}) {
    for (const UOp& ast :
         {sum_ast(1, 100000), sum_ast(8, 100003), sum_ast(4096, 73728), matmul_ast(1000, 100, 100),
          elementwise_ast(1000, 1000), softmax_ast(4, 70000)}) {
      const LinearKernel k = lower(ast, t, {.choose_opts = choose});
      EXPECT_LT(trips_of(k), 65535) << to_text(k);
    }
  }
  AstBuilder b;  // nested reductions of 1000 x 100
  const UOp i = b.fold(1000), j = b.fold(100);
  const UOp inner = reduce_over(Op::Max, load(1, 100000, i * 100 + j), {j});
  const UOp ast = kernel_of({store(0, 1, index_const(0), reduce_over(Op::Add, inner, {i}), {})});
  for (const bool choose : {true, false}) {
    const LinearKernel k = lower(ast, t, {.choose_opts = choose});
    EXPECT_LT(trips_of(k), 65535);
    expect_same(ast, k, 1e-4, "nested reductions");
  }
  EXPECT_THROW(lower(sum_ast(1, int64_t(1) << 40), t), Unsupported);
}

TEST(Lower, ReductionsThatNeedEachOtherGetLoopsOfTheirOwn) {
  AstBuilder b;  // variance with one range for both reductions
  const UOp i = b.loop(4), r = b.fold(10);
  const UOp x = load(1, 40, i * 10 + r);
  const UOp mean = reduce_over(Op::Add, x, {r}) * constant(DType::F32, 0.1);
  const UOp d = x - mean;
  const UOp ast = kernel_of({store(0, 4, i, reduce_over(Op::Add, d * d, {r}), {i})});
  for (const NamedTarget& t : test_targets())
    expect_same(ast, lower(ast, t.target), 1e-5, "variance on " + t.name);
}

TEST(Lower, IndependentReductionsShareALoop) {
  AstBuilder b;
  const UOp i = b.loop(4), r = b.fold(10);
  const UOp x = load(1, 40, i * 10 + r);
  const UOp both = reduce_over(Op::Add, x, {r}) + reduce_over(Op::Add, x * x, {r});
  const UOp ast = kernel_of({store(0, 4, i, both, {i})});
  const LinearKernel k = lower_with(ast, builtin_target("c-x86-64"), {});
  expect_same(ast, k, 1e-5, "two sums");
  EXPECT_EQ(
      std::count_if(k.ops.begin(), k.ops.end(), [](const UOp& u) { return u->op == Op::End; }), 2);
}

TEST(Lower, SeveralOutputsAndHalfPrecision) {
  AstBuilder b;
  const UOp i = b.loop(6), j = b.loop(20), r = b.fold(20);
  const UOp x = load(2, 120, i * 20 + r, DType::F16), y = load(2, 120, i * 20 + j, DType::F16);
  const UOp sum = reduce_over(Op::Add, x, {r});
  const UOp ast =
      kernel_of({store(0, 6, i, sum, {i}),
                 store(1, 120, i * 20 + j, cast(alu(Op::Max, {y * sum, y}), DType::BF16), {i, j})});
  for (const NamedTarget& t : test_targets()) {
    expect_same(ast, lower(ast, t.target), 1e-2, "two outputs on " + t.name);
  }
}

TEST(Lower, SymbolicSizesLaunchSymbolically) {
  const UOp n = variable("n", 1, 64);
  const UOp i = range(n, 0, AxisKind::Loop), j = range(index_const(8), 1, AxisKind::Loop);
  const UOp ast = kernel_of(
      {store(0, 512, i * 8 + j, load(1, 512, i * 8 + j) * constant(DType::F32, 2), {i, j})});
  const LinearKernel k = lower(ast, builtin_target("spirv-lavapipe"));
  EXPECT_TRUE(std::any_of(k.groups.begin(), k.groups.end(), [](const Dim& d) {
    return !d.is_const();
  })) << to_text(k);
}

// A counter that the kernel counts up in place: workgroups that do not store it do not read it, as
// one that runs later would find it stored.
TEST(Lower, WhatIsStoredIsReadWhereItIsStoredAlone) {
  const UOp i = range(index_const(8192), 0, AxisKind::Loop), none = index_const(0);
  const UOp ast = kernel_of({store(0, 8192, i, load(1, 8192, i) * constant(DType::F32, 2), {i}),
                             store(2, 1, none, load(2, 1, none) + constant(DType::F32, 1), {})});
  const LinearKernel k = lower_with(ast, builtin_target("spirv-lavapipe"),
                                    {{OptKind::Local, 0, 64}, {OptKind::Group, 0, 0}});
  ASSERT_GT(k.groups[0].max(), 1) << to_text(k);
  int loads = 0, stores = 0;
  const Node* gate = nullptr;
  for (const UOp& u : k.ops) {
    const Node* memory = ir::accessed_memory(u.get());
    if (!memory || memory->op != Op::Param || memory->src_count != 0) continue;
    if (std::get<ParamArg>(memory->arg).slot != 2) continue;
    ASSERT_EQ(u->src(0)->src_count, 3u) << to_text(k);
    gate = gate ? gate : u->src(0)->src(2).get();
    EXPECT_EQ(u->src(0)->src(2).get(), gate) << to_text(k);
    ++(u->op == Op::Load ? loads : stores);
  }
  EXPECT_EQ(loads, 1) << to_text(k);
  EXPECT_EQ(stores, 1) << to_text(k);
  expect_same(ast, k, 1e-5, "a counter beside a sweep");
}

// Blocks of rows, whose workgroups follow each other column by column.
TEST(Lower, GroupsInsideOfGroupsAreInnermostInTheLaunch) {
  const UOp ast = matmul_ast(64, 24, 8);
  const LinearKernel k = lower_with(ast, builtin_target("spirv-generic"),
                                    {{OptKind::Local, 0, 4},
                                     {OptKind::Group, 0, 4},
                                     {OptKind::Group, 0, 0},
                                     {OptKind::Group, 1, 0}});
  EXPECT_EQ(k.groups[0].value(), 4);
  EXPECT_EQ(k.groups[1].value(), 24);
  EXPECT_EQ(k.groups[2].value(), 4);
  expect_same(ast, k, 1e-4, "blocks");
}

// More workgroups than one axis of the grid takes.
// A position that is loaded as 64 bits makes no loop and no other offset wide.
TEST(Lower, OnlyNumbersBeyond32BitsTake64) {
  AstBuilder b;
  const UOp i = b.loop(20), r = b.fold(20);
  const UOp row = cast(load(1, 20, r, DType::I64), DType::Index) - 1;
  const UOp inside = logical_and(ge(row, index_const(0)), lt(row, index_const(21)));
  const UOp value = load(2, 21 * 20, floormod(row, index_const(21)) * 20 + i, DType::F32, inside);
  const UOp ast = kernel_of({store(0, 20, i, reduce_over(Op::Add, value, {r}), {i})});
  for (const char* target : {"spirv-lavapipe", "c-x86-64", "amdgpu-gfx1100"}) {
    const LinearKernel k = lower(ast, builtin_target(target));
    expect_same(ast, k, 1e-5, target);
    int wide = 0;
    for (const UOp& u : k.ops) {
      wide += u->op == Op::CmpLt && u->src(0)->dtype == DType::I64;
      const bool loop = u->op == Op::Range || u->op == Op::Special;
      EXPECT_TRUE(!loop || u->dtype == DType::I32) << target;
    }
    EXPECT_GT(wide, 0) << target;  // the loaded number is compared as it is
  }
}

TEST(Lower, SymbolicAxesAreSplitIntoPiecesOfWhichTheLastIsMasked) {
  const UOp n = variable("n", 1, 64), i = range(n, 0, AxisKind::Loop);
  const UOp ast = kernel_of({store(0, 64, i, load(1, 64, i) * constant(DType::F32, 2), {i})});
  const Target t = builtin_target("c-x86-64");
  const LinearKernel k = lower_with(ast, t, {{OptKind::Vector, 0, 8}, {OptKind::Group, 0, 0}});
  for (const int64_t extent : {1, 8, 9, 64})
    EXPECT_EQ(ir::evaluate_index(k.groups[0].uop(), {{"n", extent}}), (extent + 7) / 8);
  int masked = 0;
  for (const UOp& u : k.ops) masked += u->op == Op::CmpLt && u->src(1)->op == Op::Variable;
  EXPECT_GT(masked, 0) << to_text(k);
  expect_refused(ast, t, {{OptKind::Group, 0, 4}},
                 "the axis has a symbolic size: 0 gives each of its pieces a group");
  expect_refused(ast, t, {{OptKind::Split, 0, 4}}, "the axis has a symbolic size");
}

TEST(Lower, LongSymbolicLaunchesTakeTwoAxes) {
  Target t = builtin_target("spirv-lavapipe");
  t.max_groups = {40, 50, 1};
  const auto lowered = [&](int64_t most) {
    const UOp n = variable("n", 0, most), i = range(n, 0, AxisKind::Loop);
    return lower_with(kernel_of({store(0, most, i, load(1, most, i), {i})}), t,
                      {{OptKind::Group, 0, 0}});
  };
  const LinearKernel k = lowered(1000);
  ASSERT_TRUE(k.groups[0].is_const()) << to_text(k);
  for (int64_t n : {0, 1, 39, 40, 41, 799, 1000}) {
    const int64_t rows = ir::evaluate_index(k.groups[1].uop(), {{"n", n}});
    EXPECT_GE(k.groups[0].value() * rows, n);
    EXPECT_LT(k.groups[0].value() * (rows - 1), std::max<int64_t>(n, 1));
    EXPECT_EQ(rows == 0, n == 0);
  }
  EXPECT_NO_THROW(lowered(2000));
}

TEST(Lower, MatmulTiles) {
  Target avx = builtin_target("c-x86-64");
  avx.vector_bytes = 32;
  const LinearKernel cpu = lower(matmul_ast(512, 512, 512), avx);
  ASSERT_EQ(cpu.lane_ranges.size(), 2u) << to_text(cpu);
  int64_t lanes = 1;
  for (const UOp& r : cpu.lane_ranges) lanes *= r->src(0)->max;
  EXPECT_GE(lanes, 64);
  EXPECT_LE(lanes, 16 * 8);
  EXPECT_EQ(cpu.estimate.flops, uint64_t(2) * 512 * 512 * 512);
  EXPECT_EQ(cpu.estimate.bytes, uint64_t(3) * 512 * 512 * 4);
  Target slow_shared = builtin_target("spirv-lavapipe");
  slow_shared.has_fast_shared = false;
  const LinearKernel gpu = lower(matmul_ast(512, 512, 512), slow_shared);
  ASSERT_GE(gpu.lane_ranges.size(), 2u) << to_text(gpu);
  int64_t covered = int64_t(gpu.local[0]) * gpu.local[1] * gpu.groups[0].max() *
                    gpu.groups[1].max();
  for (const UOp& r : gpu.lane_ranges)
    covered *= kind_of(r.get()) == AxisKind::Lane ? r->src(0)->max : 1;
  EXPECT_EQ(covered, 512 * 512) << to_text(gpu);
}

// Sizes that nothing divides get tiles all the same on GPUs, whether workgroup memory is fast or not.
TEST(Lower, ProductsOfOddSizesAreTiled) {
  Target cheap = builtin_target("spirv-generic");
  cheap.vector_registers = 128;
  int padded = 0;
  std::mt19937 random(7);
  for (int i = 0; i < 12; i++) {
    const int64_t m = 41 + random() % 30, n = 41 + random() % 30, k = 1 + random() % 70;
    const bool transposed = random() % 2;
    const UOp ast = matmul_ast(m, n, k, transposed);
    for (const Target& t : {cheap, builtin_target("spirv-lavapipe"), small_gpu()}) {
      const LinearKernel list = lower(ast, t);
      padded += list.opts.find("upcast") != std::string::npos && m % 2 && n % 2;
      expect_same(ast, list, 1e-5, fmt::format("{}x{}x{} {}", m, n, k, list.opts));
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(padded, 3);
}

// What is past the end of a reduction is neither a product with infinity nor with NaN.
TEST(Lower, PaddedStepsOfAProductAddZero) {
  const UOp ast = matmul_ast(8, 8, 7);
  const LinearKernel k =
      lower_with(ast, builtin_target("spirv-lavapipe"),
                 {{OptKind::Upcast, 0, 4}, {OptKind::Upcast, 1, 4}, {OptKind::Unroll, 2, 4}});
  Buffers buffers = random_buffers(ast, 1);
  const auto floats = [&](size_t slot) { return reinterpret_cast<float*>(buffers[slot].data()); };
  for (int i = 0; i < 8; i++) floats(1)[i * 7 + 6] = float(i + 1);
  floats(2)[6 * 8 + 3] = INFINITY;
  floats(2)[6 * 8 + 4] = NAN;
  run_linear(k, buffers);
  for (int i = 0; i < 8; i++) {
    EXPECT_EQ(floats(0)[i * 8 + 3], INFINITY) << i;
    EXPECT_TRUE(std::isnan(floats(0)[i * 8 + 4])) << i;
    EXPECT_TRUE(std::isfinite(floats(0)[i * 8 + 5])) << i;
  }
}

// A matrix by a vector, rows of any length: lanes go along the rows, not across them.
TEST(Lower, ProductsWithAVectorWalkTheRowsOfTheMatrix) {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64;
  const int64_t lanes = t.vector_bytes / 4;
  for (const auto& [rows, length] : {std::pair{40, 515}, {31, 515}, {31, 512}, {8, 2999}}) {
    AstBuilder b;
    const UOp r = b.loop(rows), c = b.fold(length);
    const UOp ast = kernel_of({store(
        0, rows, r,
        reduce_over(Op::Add, load(1, rows * length, r * length + c) * load(2, length, c), {c}),
        {r})});
    const LinearKernel k = lower(ast, t);
    EXPECT_LE(trips_of(k), rows * (1 + (length + lanes - 1) / lanes)) << k.opts << to_text(k);
    expect_same(ast, k, 1e-4, k.opts);
  }
}

TEST(Lower, SoftmaxSharesItsReductionsAcrossAWorkgroup) {
  Target t = builtin_target("spirv-lavapipe");
  t.features.subgroup_shuffle = false;
  const LinearKernel k = lower(softmax_ast(4, 1024), t);
  EXPECT_GT(k.local[0], 1u);
  EXPECT_GT(k.shared_bytes, 0u);
  EXPECT_TRUE(
      std::any_of(k.ops.begin(), k.ops.end(), [](const UOp& u) { return u->op == Op::Barrier; }));
}

// The parts of 2^x that are its scale are made with two left shifts.
int64_t exponentials(const LinearKernel& k) {
  return std::count_if(k.ops.begin(), k.ops.end(), [](const UOp& u) { return u->op == Op::Shl; }) /
         2;
}

TEST(Lower, DearValuesOfARowAreComputedOnceWhereTheCacheHoldsThem) {
  Target t = builtin_target("c-x86-64");
  const UOp ast = softmax_ast(6, 1024);
  const LinearKernel once = lower(ast, t);
  EXPECT_EQ(exponentials(once), 1) << to_text(once);
  expect_same(ast, once, 1e-5, "with a row buffer");
  const std::string skipped[] = {"row-buffers"};
  EXPECT_EQ(exponentials(lower_with(ast, t, {}, skipped)), 2);
  t.l2_bytes = 4096;
  EXPECT_EQ(exponentials(lower(ast, t)), 2);  // half of it is less than a row
}

// Of rows whose length varies there is room for the longest.
TEST(Lower, DearValuesOfASymbolicRowAreComputedOnce) {
  Target t = builtin_target("c-x86-64");
  const auto softmax = [](int64_t most) {
    const UOp n = variable("n", 1, most), columns = n * 32;
    const auto axis = [&](int32_t id, AxisKind kind) { return range(columns, id, kind); };
    const UOp i = range(index_const(6), 0, AxisKind::Loop), j = axis(1, AxisKind::Loop),
              r1 = axis(2, AxisKind::Reduce), r2 = axis(3, AxisKind::Reduce);
    const int64_t count = 6 * 32 * most;
    const auto x = [&](const UOp& c) { return load(1, count, i * (32 * most) + c); };
    const UOp max = reduce_over(Op::Max, x(r1), {r1});
    const auto exponential = [&](const UOp& c) { return alu(Op::Exp2, {x(c) - max}); };
    const UOp sum = reduce_over(Op::Add, exponential(r2), {r2});
    return kernel_of({store(0, count, i * (32 * most) + j,
                            exponential(j) * alu(Op::Recip, {sum}), {i, j})});
  };
  const LinearKernel once = lower(softmax(32), t);
  EXPECT_EQ(exponentials(once), 1) << to_text(once);
  EXPECT_EQ(exponentials(lower(softmax(1 << 20), t)), 2);
}

// Vectors pad where a CPU masks the last of a row, not where each lane would be a load of its own.
TEST(Lower, RowsThatNoVectorDividesAreMaskedOnACpu) {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 32;
  const int64_t lanes = t.vector_bytes / 4;
  for (const int64_t n : {10, 65, 1000, 1021}) {
    const UOp ast = softmax_ast(6, n);
    const LinearKernel k = lower(ast, t);
    EXPECT_LE(trips_of(k), 6 * (1 + 4 * ((n + lanes - 1) / lanes))) << to_text(k);
    expect_same(ast, k, 1e-5, std::to_string(n));
  }
  for (const int64_t step : {2, 4, 5}) {
    AstBuilder b;
    const UOp i = b.loop(50), j = b.loop(13);
    const UOp apart = load(1, 650 * step, i * (13 * step) + j * step);
    const UOp ast = kernel_of({store(0, 650, i * 13 + j, apart * apart, {i, j})});
    const bool vectors = lower(ast, t).opts.find("vector") != std::string::npos;
    EXPECT_EQ(vectors, step < 5) << lower(ast, t).opts;
  }
}

// The images' gradient of a convolution with a stride of 2, one axis of it: out[x] is the sum over
// the taps of x's phase.
TEST(Lower, PhasesOfAStrideAreAxes) {
  AstBuilder b;
  const UOp c = b.loop(4), x = b.loop(32), a = b.fold(2);
  const UOp block = floordiv(x + 1, index_const(2)), phase = floormod(x + 1, index_const(2));
  const UOp tap = lt(a * 2 + phase, index_const(3));
  const UOp gate = logical_and(logical_and(lt(a, block + 1), lt(block, a + 16)), tap);
  const UOp product = load(1, 64, c * 16 + block - a, DType::F32, gate) *
                      load(2, 12, c * 3 + a * 2 + phase, DType::F32, tap);
  const UOp ast = kernel_of({store(0, 128, c * 32 + x, reduce_over(Op::Add, product, {a}), {c, x})});
  const UOp seen = ast_for_opts(ast, builtin_target("c-x86-64"));
  int loops = 0;
  for (const Node* n : toposort(seen)) {
    EXPECT_TRUE(n->op != Op::FloorDiv && n->op != Op::FloorMod) << ir::to_text(seen);
    loops += n->op == Op::Range && n->get<RangeArg>().kind == AxisKind::Loop;
  }
  EXPECT_EQ(loops, 3) << ir::to_text(seen);
  for (const char* name : {"c-x86-64", "spirv-generic"})
    expect_same(ast, lower(ast, builtin_target(name)), 1e-5, name);
}

// The bytes that the last load of a slot reads, in the order of the reduction, for the first output.
std::vector<int64_t> read_in_order(const UOp& ast, int32_t slot, int64_t count) {
  std::vector<int64_t> out;
  for (const Node* n : toposort(ast)) {
    const bool reads = n->op == Op::Index && n->src(0)->op == Op::Param &&
                       n->src(0)->get<ParamArg>().slot == slot;
    if (!reads) continue;
    UOp walked;
    UOpMap<UOp> at;
    const RangeDeps deps(n->src(1));
    for (const UOp& r : deps.ranges()) {
      at.emplace(r, index_const(0));
      if (kind_of(r.get()) == AxisKind::Reduce) walked = r;
    }
    out.clear();
    for (int64_t step = 0; walked && step < count; step++) {
      at[walked] = index_const(step);
      out.push_back(simplify(substitute(n->src(1), at))->const_int());
    }
  }
  return out;
}

// What a word holds is neighbours in the sum; on a CPU vectors of numbers are.
TEST(Lower, PackedNumbersAreSummedWordByWord) {
  const UOp ast = packed_sum_ast(3, 4);
  const auto numbers = [&](const char* target) {
    return read_in_order(ast_for_opts(ast, builtin_target(target)), 1, 12);
  };
  EXPECT_EQ(numbers("spirv-generic"),
            (std::vector<int64_t>{2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7}));
  EXPECT_EQ(numbers("c-x86-64"), (std::vector<int64_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
}

// exp2(x) / sum(exp2(x)) by rows, or with `sums` the exponentials and their sums beside each other.
UOp shares_ast(int64_t rows, int64_t columns, DType out, bool sums, bool gated = false) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(columns), r = b.fold(columns);
  const int64_t n = rows * columns;
  const auto power = [&](const UOp& at) { return alu(Op::Exp2, {load(2, n, i * columns + at)}); };
  const UOp sum = reduce_over(Op::Add, power(r), {r});
  const UOp gate = gated ? lt(j, index_const(columns - 3)) : UOp();
  if (!sums) {
    const UOp y = power(j) * alu(Op::Recip, {sum});
    return kernel_of({store(0, n, i * columns + j, cast(y, out), {i, j}, gate)});
  }
  return kernel_of({store(0, n, i * columns + j, power(j) + constant(DType::F32, 1), {i, j}),
                    store(1, rows, i, sum, {i})});
}

// The row of the output holds them until what becomes of them is stored there.
TEST(Lower, DearValuesOfARowStandInTheOutputWhereNothingElseIs) {
  const Target t = builtin_target("c-x86-64");
  const LinearKernel k = lower(shares_ast(6, 512, DType::F32, false), t);
  EXPECT_EQ(exponentials(k), 1) << to_text(k);
  EXPECT_EQ(k.shared_bytes, 0u);
  ASSERT_EQ(k.buffers.size(), 3u);
  EXPECT_TRUE(k.buffers[0].written && k.buffers[0].read);
}

TEST(Lower, DearValuesOfARowStandInScratchMemoryWhereTheOutputIsOfAnotherUse) {
  const Target t = builtin_target("c-x86-64");
  const auto in_scratch = [&](const UOp& ast, std::string_view what) {
    const LinearKernel k = lower(ast, t);
    EXPECT_EQ(exponentials(k), 1) << what << '\n' << to_text(k);
    EXPECT_EQ(k.shared_bytes, 2048u) << what;
    expect_same(ast, k, 1e-3, std::string(what));
  };
  in_scratch(shares_ast(6, 512, DType::F16, false), "another dtype");
  in_scratch(shares_ast(6, 512, DType::F32, true), "stored before the sum is known");
  in_scratch(shares_ast(6, 512, DType::F32, false, true), "not every element is stored");
  // Columns outside rows: the row is filled again for each of its elements.
  const LinearKernel k = lower_with(softmax_ast(6, 512), t, {{OptKind::Swap, 0, 1}});
  EXPECT_EQ(k.shared_bytes, 2048u);
  expect_same(softmax_ast(6, 512), k, 1e-5, "columns outside");
}

// What is stored for a row stands beside the loop of its columns: not inside it.
TEST(Lower, LoopsThatAnotherStoreIsOutsideOfStayInside) {
  for (const auto& [name, t] : test_targets()) {
    const UOp ast = shares_ast(6, 64, DType::F32, true);
    EXPECT_THROW(lower_with(ast, t, {{OptKind::Swap, 0, 1}}), InvalidArgument) << name;
    EXPECT_THROW(lower_with(ast, t, {{OptKind::Swap, 1, 0}}), InvalidArgument) << name;
  }
}

// Both products of attention have register tiles; scores and probabilities of a tile's rows lie in
// scratch memory.
// Products whose multiply-adds have this many lanes.
int product_tiles(const LinearKernel& k, int64_t least_lanes) {
  int tiles = 0;
  for (size_t i = 0; i < k.ops.size(); i++) {
    if (k.ops[i]->op != Op::MulAdd) continue;
    int64_t lanes = 1;
    for (size_t bit = 0; bit < k.lane_ranges.size(); bit++)
      lanes *= k.lanes[i] >> bit & 1 ? k.lane_ranges[bit]->src(0)->max : 1;
    tiles += lanes >= least_lanes;
  }
  return tiles;
}
TEST(Lower, KeptRowsLeaveProductsTheirTiles) {
  const UOp ast = attention_ast(2, 32, 16, true);
  const LinearKernel k = lower(ast, builtin_target("c-x86-64"));
  expect_same(ast, k, 1e-5, "attention");
  EXPECT_EQ(product_tiles(k, 32), 2) << to_text(k);
  EXPECT_LT(k.shared_bytes, 64u << 10);
  EXPECT_EQ(exponentials(k), 1) << "each row has its exponentials computed once\n" << to_text(k);
}

// What rows are reduced to is stored where the rows are walked: nothing is computed for it again,
// and the tiles stay what they are.
// Random graph 100227 of `tuff check`: a quotient by 0 is one as well, when it is decomposed.
TEST(Lower, TheLargerOfAConstantAndWhatBecomesOne) {
  AstBuilder b;
  const UOp i = b.loop(4), zero = int_const(DType::I16, 0);
  const UOp quotient = make(Op::IDiv, DType::I16, {load(1, 4, i, DType::I16), zero});
  const UOp ast =
      kernel_of({store(0, 4, i, make(Op::Max, DType::I16, {quotient, zero}), {i})});
  for (const char* name : {"c-x86-64", "spirv-lavapipe"}) {
    const LinearKernel k = lower(ast, builtin_target(name));
    expect_same(ast, k, 0, name);
  }
}

TEST(Lower, ValuesOfKeptRowsAreStoredRowByRow) {
  const UOp ast = attention_gradient_ast(2, 32, 16);
  const LinearKernel k = lower(ast, builtin_target("c-x86-64"));
  expect_same(ast, k, 1e-5, "gradient");
  EXPECT_EQ(product_tiles(k, 32), 3) << to_text(k);
  EXPECT_EQ(exponentials(k), 1) << to_text(k);
  for (size_t i = 0; i < k.ops.size(); i++) {
    const bool stores = k.ops[i]->op == Op::Store && k.ops[i]->src(0)->op == Op::Index &&
                        k.ops[i]->src(0)->src(0)->op == Op::Param;
    if (!stores || k.ops[i]->src(0)->src(0)->get<ParamArg>().slot == 0) continue;
    EXPECT_EQ(k.lanes[i], 0u) << to_text(k);
  }
}

// Nests beside each other share their vector lanes: what one has in a row is not the other's.
TEST(Lower, NestsBesideEachOtherHaveNoRowInCommon) {
  AstBuilder b;
  const UOp i = b.loop(64), j = b.loop(64);
  const auto sine = [](const UOp& at) { return alu(Op::Sin, {load(2, 64, at)}); };
  const UOp ast =
      kernel_of({store(0, 64, i, sine(i), {i}), store(1, 64, j, sine(j) + sine(j), {j})});
  const LinearKernel k = lower(ast, builtin_target("c-x86-64"));
  EXPECT_EQ(k.shared_bytes, 0u) << to_text(k);
  expect_same(ast, k, 1e-5, "two nests");
}

TEST(Lower, TimePerKernel) {
  for (const NamedTarget& t : test_targets()) {
    for (const Case& c : cases()) lower(c.ast, t.target);
    const auto begin = std::chrono::steady_clock::now();
    constexpr int rounds = 5;
    for (int i = 0; i < rounds; i++) {
      for (const Case& c : cases()) lower(c.ast, t.target);
    }
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::printf("lower: %.0f us per kernel on %s\n", us / rounds / double(cases().size()),
                t.name.c_str());
  }
  for (const PassTime& p : pass_times())
    std::printf("  %-16s %8.1f us\n", p.name,
                double(p.total_ns) / 1e3 / double(std::max<uint64_t>(p.calls, 1)));
}

}  // namespace
}  // namespace tuff::kernel::testing
