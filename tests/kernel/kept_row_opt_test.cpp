// Opts of kernels that keep rows in fast memory (attention fusion): who shares them, and rows that
// are never there as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

TEST(KeptRowOpts, AKeptRowIsOneWorkgroups) {
  const Target cpu = builtin_target("c-x86-64"), gpu = builtin_target("spirv-lavapipe");
  const UOp ast = attention_ast(2, 16, 8);
  for (int axis : {3, 4})
    expect_refused(ast, cpu, {{OptKind::Group, axis, 2}}, "filled by one workgroup");
  expect_refused(ast, gpu, {{OptKind::Spread, 1, 4}}, "rows of their own");
  expect_refused(ast, cpu, {{OptKind::Vector, 1, 4}, {OptKind::Vector, 2, 4}}, "vector axis");
  expect_same(ast, lower_with(ast, gpu, {{OptKind::Local, 1, 4}}), 1e-5, "a row each");
  const UOp wide = attention_ast(1, 4096, 8);
  expect_refused(wide, gpu, {{OptKind::Upcast, 1, 4}}, "exceed 32768 bytes");
}

TEST(KeptRowOpts, InvocationsShareKeptRows) {
  Target gpu = builtin_target("spirv-lavapipe");
  gpu.features.full_subgroups = false;  // shares of sums are in memory
  const UOp ast = attention_ast(2, 16, 8);
  expect_refused(ast, gpu, {{OptKind::Local, 3, 4}, {OptKind::Local, 4, 8}},
                 "by another number of invocations");
  expect_refused(ast, gpu, {{OptKind::Local, 3, 4}, {OptKind::GroupReduce, 6, 8}},
                 "by another number of invocations");
  expect_refused(ast, gpu, {{OptKind::Local, 3, 2}, {OptKind::Local, 3, 2}}, "its columns already");
  expect_refused(ast, gpu, {{OptKind::Local, 3, 4}, {OptKind::GroupReduce, 5, 4}},
                 "depends on the axis");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 8, 4}, {OptKind::Local, 2, 4}},
                 "depends on the axis");
  expect_refused(ast, gpu, {{OptKind::GroupReduce, 6, 4}, {OptKind::Stage, 1, 0}},
                 "no axis says which of the invocations");
  Target small = gpu;
  small.max_invocations = 8;
  expect_refused(ast, small, {{OptKind::Local, 3, 4}, {OptKind::Local, 1, 4}}, "at most 8");
  small = gpu;
  // 16 rows of 16 scores and probabilities, and of 4 partial results; the latter of the former fit.
  small.shared_bytes = 2700;
  expect_refused(ast, small, {{OptKind::Upcast, 1, 16}, {OptKind::GroupReduce, 6, 4}},
                 "exceed 2700 bytes");
  EXPECT_EQ(
      refusal(ast, small,
              {{OptKind::Local, 4, 4}, {OptKind::Upcast, 1, 16}, {OptKind::GroupReduce, 6, 4}}),
      "")
      << "probabilities lie where the scores were";
  const std::vector<Opt> whole{{OptKind::Local, 2, 4},       {OptKind::Local, 3, 4},
                               {OptKind::Local, 4, 4},       {OptKind::GroupReduce, 6, 4},
                               {OptKind::GroupReduce, 8, 4}, {OptKind::Upcast, 1, 2},
                               {OptKind::Local, 1, 4}};
  for (size_t n = 1; n <= whole.size(); n++) {
    const std::vector<Opt> opts(whole.begin(), whole.begin() + ptrdiff_t(n));
    const LinearKernel k = lower_with(ast, gpu, opts);
    expect_same(ast, k, 1e-5, to_string(opts));
    EXPECT_EQ(k.local[0], 4u);
    EXPECT_EQ(k.local[1], n == whole.size() ? 4u : 1u);
    const auto memories =
        std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::Shared; });
    EXPECT_EQ(memories, n < 3 ? 2 : n < 4 ? 1 : n < 5 ? 2 : 3) << to_string(opts);
  }
}

// Axes: head, row, columns of both results, columns of two kept rows.
TEST(KeptRowOpts, RowsThatAreReadByElementNeedNotBeWhole) {
  const Target gpu = builtin_target("spirv-lavapipe");
  const UOp ast = attention_factor_gradients_ast(2, 16, 8);
  std::vector<Opt> opts{{OptKind::Local, 2, 8}, {OptKind::Slab, 4, 8}};
  expect_refused(ast, gpu, opts, "not all of them have in common");  // of the other result
  opts.insert(opts.begin(), {OptKind::Local, 3, 8});
  for (const int axis : {0, 2})
    expect_refused(ast, gpu, {{OptKind::Slab, axis, 4}}, "read part by part");
  // A softmax's quotient waits for its whole row, unless it has left it.
  for (const int axis : {3, 4, 6, 8})
    expect_refused(attention_ast(2, 16, 8), gpu, {{OptKind::Slab, axis, 4}}, "read part by part");
  const auto with = [&](std::vector<Opt> more) {
    more.insert(more.begin(), opts.begin(), opts.end());
    return more;
  };
  expect_refused(ast, gpu, with({{OptKind::Slab, 5, 4}}), "split already");
  expect_refused(ast, gpu, with({{OptKind::Upcast, 4, 16}}), "2 to 8 is possible");
  expect_refused(ast, gpu, with({{OptKind::Upcast, 5, 3}}), "3 does not divide 8");
  opts.back().amount = 16;
  expect_refused(ast, gpu, opts, "all of a row");
  for (const int64_t elements : {2, 5, 8, 11}) {  // the last slab of 5 or 11 is masked
    opts.back().amount = elements;
    expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
  }
  // What is kept does not grow with the positions.
  const auto bytes = [&](int64_t positions) {
    return lower_with(attention_factor_gradients_ast(1, positions, 8), gpu, opts).shared_bytes;
  };
  EXPECT_EQ(bytes(4096), bytes(64));
}

// Where rows are reduced too, a growing maximum scales what was summed of the parts before.
TEST(KeptRowOpts, RowsOfASoftmaxNeedNotBeWhole) {
  const Target gpu = builtin_target("spirv-generic");
  const auto slab = [&](const UOp& ast, int64_t elements) {
    const Tiling t(ast_for_opts(ast, gpu), gpu);
    return t.slab_axes.empty() ? Opt{OptKind::Slab, -1, elements}
                                 : Opt{OptKind::Slab, t.slab_axes[0], elements};
  };
  for (const bool causal : {false, true}) {
    const UOp ast = attention_ast(2, 16, 8, causal);
    ASSERT_GE(slab(ast, 4).axis, 0);
    EXPECT_THROW(lower_with(ast, gpu, {slab(ast, 4)}), InvalidArgument);  // a loop over results
    for (const int64_t elements : {2, 4, 6, 8}) {  // the last slab of 6 is masked
      for (const std::vector<Opt>& more : std::vector<std::vector<Opt>>{
               {}, {{OptKind::Local, 1, 4}}, {{OptKind::Upcast, 1, 4}, {OptKind::Local, 1, 2}}}) {
        std::vector<Opt> opts{{OptKind::Local, 2, 8}, slab(ast, elements)};
        opts.insert(opts.end(), more.begin(), more.end());
        expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
      }
    }
  }
  // Each invocation has all rows that it fills: lanes, whose maxima the loop over slabs carries.
  const UOp single = attention_ast(3, 13, 1);
  for (const int64_t lanes : {2, 3}) {
    const std::vector<Opt> opts{slab(single, 4), {OptKind::Upcast, 0, lanes}};
    expect_same(single, lower_with(single, gpu, opts), 1e-5, to_string(opts));
  }
  const auto bytes = [&](int64_t positions) {
    const UOp ast = attention_ast(1, positions, 8);
    return lower_with(ast, gpu, {{OptKind::Local, 2, 8}, slab(ast, 8)}).shared_bytes;
  };
  EXPECT_EQ(bytes(4096), bytes(64));
  // The gradient of queries waits for a sum of the whole row.
  EXPECT_EQ(slab(attention_gradient_ast(2, 16, 8), 4).axis, -1);
}

// Behind what the last row of a workgroup sees there are no slabs: loops as long as its number says.
TEST(KeptRowOpts, SlabsThatAMaskHidesAreNotComputed) {
  const Target gpu = builtin_target("spirv-generic");
  const auto loops_by_group = [&](const UOp& ast, const std::vector<Opt>& opts) {
    const LinearKernel k = lower_with(ast, gpu, opts);
    expect_same(ast, k, 1e-5, to_string(opts));
    return std::ranges::count_if(k.ops, [](const UOp& op) {
      return op->op == Op::Range && !op->src(0)->is_const();
    });
  };
  for (const bool causal : {false, true}) {
    const UOp ast = attention_ast(2, 24, 8, causal);
    const Tiling t(ast_for_opts(ast, gpu), gpu);
    for (const int64_t elements : {4, 7}) {
      std::vector<Opt> opts{{OptKind::Local, 2, 8}, {OptKind::Slab, t.slab_axes[0], elements},
                            {OptKind::Local, 1, 4}, {OptKind::Group, 1, 0}};
      EXPECT_EQ(loops_by_group(ast, opts), causal) << to_string(opts);
      opts.back().amount = 2;  // the last groups have loops of three tiles
      EXPECT_EQ(loops_by_group(ast, opts), causal) << to_string(opts);
      opts.pop_back();  // one workgroup has all rows
      EXPECT_EQ(loops_by_group(ast, opts), 0) << to_string(opts);
    }
  }
}

// A thread has tiles of rows one after the other: each has slabs of its own, and none behind what it
// sees. What the rows have in common is copied once, as much as the last of them see.
TEST(KeptRowOpts, ThreadsTakeRowsSlabBySlab) {
  const Target cpu = builtin_target("c-x86-64");
  const auto loops_by_row = [&](const UOp& ast, const std::vector<Opt>& opts) {
    const LinearKernel k = lower_with(ast, cpu, opts);
    expect_same(ast, k, 1e-5, to_string(opts));
    return std::ranges::count_if(k.ops, [](const UOp& op) {
      return op->op == Op::Range && !op->src(0)->is_const();
    });
  };
  const auto slab = [&](const UOp& ast, int64_t elements) {
    const Tiling t(ast_for_opts(ast, cpu), cpu);
    return Opt{OptKind::Slab, t.slab_axes.empty() ? -1 : t.slab_axes[0], elements};
  };
  for (const bool causal : {false, true}) {
    const UOp ast = attention_ast(2, 24, 8, causal);
    for (const int64_t elements : {4, 7, 8}) {  // the last slab of 7 is masked
      const std::vector<Opt> first{{OptKind::Vector, 2, 8}, slab(ast, elements)};
      EXPECT_THROW(lower_with(ast, cpu, {slab(ast, elements)}), InvalidArgument);
      for (const std::vector<Opt>& more : std::vector<std::vector<Opt>>{
               {}, {{OptKind::Upcast, 1, 4}}, {{OptKind::Upcast, 1, 5}, {OptKind::Group, 1, 2}}}) {
        std::vector<Opt> opts = first;
        opts.insert(opts.end(), more.begin(), more.end());
        EXPECT_EQ(loops_by_row(ast, opts), causal) << to_string(opts);
        opts.push_back({OptKind::Stage, 1, 0});
        const int64_t copies = causal && more.size() > 1;  // as long as a group says
        EXPECT_EQ(loops_by_row(ast, opts), causal + copies) << to_string(opts);
      }
    }
  }
  const auto bytes = [&](int64_t positions) {
    const UOp ast = attention_ast(1, positions, 8);
    return lower_with(ast, cpu, {{OptKind::Vector, 2, 8}, slab(ast, 8)}).shared_bytes;
  };
  EXPECT_EQ(bytes(4096), bytes(64));
}

// Queries before a key do not see it: slabs of them are taken from the last one backwards.
TEST(KeptRowOpts, SlabsBeforeWhatAMaskShowsAreNotComputed) {
  for (const char* name : {"spirv-generic", "c-x86-64"}) {
    const Target target = builtin_target(name);
    const OptKind lanes = target.has_local ? OptKind::Local : OptKind::Vector,
                  rows = target.has_local ? OptKind::Local : OptKind::Upcast;
    for (const bool causal : {false, true}) {
      const UOp ast = attention_factor_gradients_ast(2, 24, 8, causal);
      for (const int64_t elements : {4, 7}) {  // the last slab of 7 is masked
        std::vector<Opt> opts{{lanes, 3, 8}, {lanes, 2, 8}, {OptKind::Slab, 4, elements},
                              {rows, 1, 4}, {OptKind::Group, 1, 2}};
        for (const bool staged : {false, true}) {
          if (staged) opts.push_back({OptKind::Stage, 0, target.has_local ? 3 : 0});
          const LinearKernel k = lower_with(ast, target, opts);
          expect_same(ast, k, 1e-5, to_string(opts));
          const auto loops = std::ranges::count_if(k.ops, [](const UOp& op) {
            return op->op == Op::Range && !op->src(0)->is_const();
          });
          EXPECT_EQ(loops > 0, causal) << name << " " << to_string(opts);
        }
      }
    }
  }
}

// A sum of the scores themselves has to be made before probabilities take their place.
TEST(KeptRowOpts, ASumOfScoresIsMadeBesideTheirSoftmax) {
  const Target gpu = builtin_target("spirv-generic");
  constexpr int64_t kRows = 8, kColumns = 32, kWidth = 8;
  AstBuilder b;
  const UOp i = b.loop(kRows), d = b.loop(kWidth), s = b.loop(kColumns), p = b.loop(kColumns);
  const UOp e = b.fold(4), r1 = b.fold(kColumns), r2 = b.fold(kColumns), r3 = b.fold(kColumns),
            j = b.fold(kColumns);
  const UOp product = load(1, kRows * 4, i * 4 + e) * load(2, kColumns * 4, s * 4 + e);
  const UOp scores = kept_row(0, s, reduce_over(Op::Add, product, {e}));
  const UOp max = reduce_over(Op::Max, element(scores, r1), {r1});
  const auto exponential = [&](const UOp& x) { return alu(Op::Exp2, {element(scores, x) - max}); };
  const UOp sum = reduce_over(Op::Add, exponential(r2), {r2});
  const UOp weights = kept_row(1, p, exponential(p) * alu(Op::Recip, {sum}));
  const UOp value = load(3, kColumns * kWidth, j * kWidth + d);
  const UOp y = reduce_over(Op::Add, element(weights, j) * value, {j});
  const UOp total = reduce_over(Op::Add, element(scores, r3), {r3});
  const UOp ast = kernel_of({store(0, kRows * kWidth, i * kWidth + d, y + total, {i, d})});
  const Tiling t(ast_for_opts(ast, gpu), gpu);
  ASSERT_FALSE(t.slab_axes.empty());
  for (const int64_t elements : {8, 16}) {
    for (const int64_t rows : {1, 2, 4}) {
      std::vector<Opt> opts{{OptKind::Local, 1, 8}, {OptKind::Slab, t.slab_axes[0], elements}};
      for (int a = 0; a < int(t.axes.size()); a++)
        if (t.axes[size_t(a)].kept) opts.push_back({OptKind::Local, a, 8});
      if (rows > 1) opts.push_back({OptKind::Local, 0, rows});
      const LinearKernel k = lower_with(ast, gpu, opts);
      expect_same(ast, k, 1e-5, to_string(opts));
      Tiling applied(ast_for_opts(ast, gpu), gpu);
      for (const Opt& o : opts) apply(applied, o);
      EXPECT_LE(int64_t(k.shared_bytes), (kept_bytes(applied) + 63) / 64 * 64 + 64)
          << to_string(opts);
    }
  }
}

// Of a row whose first part is masked by -infinity that part counts nothing; of one that is masked
// as a whole there is no mean.
TEST(KeptRowOpts, PartsThatAreMaskedByInfinityCountNothing) {
  const Target gpu = builtin_target("spirv-generic");
  constexpr int64_t kRows = 4, kColumns = 32, kWidth = 8;
  AstBuilder b;
  const UOp i = b.loop(kRows), d = b.loop(kWidth), s = b.loop(kColumns), p = b.loop(kColumns);
  const UOp e = b.fold(1), r1 = b.fold(kColumns), r2 = b.fold(kColumns), j = b.fold(kColumns);
  const UOp score = load(1, kRows * kColumns, i * kColumns + s) * load(2, 1, e);
  const UOp masked = where(lt(s, i * 12), constant(DType::F32, -INFINITY),
                           reduce_over(Op::Add, score, {e}));
  const UOp scores = kept_row(0, s, masked);
  const UOp max = reduce_over(Op::Max, element(scores, r1), {r1});
  const auto exponential = [&](const UOp& x) { return alu(Op::Exp2, {element(scores, x) - max}); };
  const UOp sum = reduce_over(Op::Add, exponential(r2), {r2});
  const UOp weights = kept_row(1, p, exponential(p) * alu(Op::Recip, {sum}));
  const UOp value = load(3, kColumns * kWidth, j * kWidth + d);
  const UOp y = reduce_over(Op::Add, element(weights, j) * value, {j});
  const UOp ast = kernel_of({store(0, kRows * kWidth, i * kWidth + d, y, {i, d})});
  const Tiling t(ast_for_opts(ast, gpu), gpu);
  ASSERT_FALSE(t.slab_axes.empty());
  for (const int64_t elements : {2, 8, 16}) {
    const std::vector<Opt> opts{{OptKind::Local, 1, 8},
                                {OptKind::Slab, t.slab_axes[0], elements}};
    expect_same(ast, lower_with(ast, gpu, opts), 1e-5, to_string(opts));
  }
}

}  // namespace
}  // namespace tuff::kernel::testing
