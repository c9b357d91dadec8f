// What is asked for before it is read or written, and that it means nothing else.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/spec.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/random_opts.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

// A CPU whose L2 cache holds so little that small kernels walk memory.
Target small_cache(uint32_t prefetch_bytes = 256) {
  Target t = builtin_target("c-x86-64");
  t.l2_bytes = 1024;
  t.prefetch_bytes = prefetch_bytes;
  return t;
}

// A prefetch: its loop, counted in the order in which loops open, its element in the loop's first
// iteration (all counters and coordinates 0), its slot.
struct Asked {
  int loop;
  int64_t element;
  int32_t slot;
  bool write;
  bool operator==(const Asked&) const = default;
};
void PrintTo(const Asked& a, std::ostream* out) {
  *out << "loop " << a.loop << " element " << a.element << " slot " << a.slot
       << (a.write ? " to write" : " to read");
}

int64_t at_zero(const UOp& x) {
  switch (x->op) {
    case Op::Const: return x->const_int();
    case Op::Add: return at_zero(x->src(0)) + at_zero(x->src(1));
    case Op::Mul: return at_zero(x->src(0)) * at_zero(x->src(1));
    case Op::Range:
    case Op::Special: return 0;
    default: ADD_FAILURE() << name(x->op); return -1;
  }
}

std::vector<Asked> asked(const LinearKernel& k) {
  std::vector<Asked> out;
  std::vector<int> open;
  int loops = 0;
  for (const UOp& u : k.ops) {
    if (u->op == Op::Range && is_loop(kind_of(u.get()))) open.push_back(loops++);
    if (u->op == Op::End) open.pop_back();
    if (u->op != Op::Prefetch) continue;
    const UOp index = u->src(0);
    out.push_back({open.empty() ? -1 : open.back(), at_zero(index->src(1)),
                   index->src(0)->get<ParamArg>().slot, u->get<int64_t>() == 1});
  }
  return out;
}
std::vector<Asked> asked(const UOp& ast, const Target& t) { return asked(lower(ast, t)); }

UOp scaled(int64_t n, int64_t stride = 1, bool gated = false) {
  AstBuilder b;
  const UOp i = b.loop(n);
  const UOp gate = gated ? lt(i, index_const(n - 3)) : UOp();
  return kernel_of({store(
      0, n, i, load(1, n * stride, i * stride, DType::F32, gate) * constant(DType::F32, 2), {i})});
}

TEST(Prefetch, AWalkAsksForWhatLiesAheadOnBothSides) {
  const std::vector<Asked> expected{{0, 64, 0, true}, {0, 64, 1, false}};
  EXPECT_EQ(asked(scaled(4096), small_cache()), expected);
}

TEST(Prefetch, WhatTheCacheHoldsIsNotAskedFor) {
  Target t = small_cache();
  t.l2_bytes = 4096 * 4;
  EXPECT_TRUE(asked(scaled(4096), t).empty());
  EXPECT_FALSE(asked(scaled(4097 * 16), t).empty());
  EXPECT_TRUE(asked(scaled(4096), small_cache(0)).empty());
}

TEST(Prefetch, StepsAndGatesAreNotFollowed) {
  const Target t = small_cache();
  const auto in_vectors = [&](const UOp& ast) {
    return asked(lower_with(ast, t, {{OptKind::Vector, 0, 16}}));
  };
  const std::vector<Asked> both{{0, 64, 0, true}, {0, 64, 1, false}}, output{{0, 64, 0, true}};
  EXPECT_EQ(in_vectors(scaled(4096)), both);
  EXPECT_EQ(in_vectors(scaled(4096, 3)), output);
  EXPECT_EQ(in_vectors(scaled(4096, 1, true)), output);
}

TEST(Prefetch, FactorsOfAProductThatAreReadAgainAreNot) {
  for (const Asked& a : asked(matmul_ast(64, 64, 64), small_cache())) EXPECT_EQ(a.slot, 0);
}

// Loops: rows, greatest element, exponentials, their sum, quotients.
TEST(Prefetch, ARowsExponentialsGiveTimeForTheNextRowAndTheOutput) {
  const std::vector<Asked> expected{{2, 64, 1, false}, {2, 0, 0, true}};
  EXPECT_EQ(asked(softmax_ast(64, 64), small_cache()), expected);
  // Short rows: as many ahead as make the distance.
  const std::vector<Asked> further{{2, 256, 1, false}, {2, 256, 0, true}};
  EXPECT_EQ(asked(softmax_ast(64, 64), small_cache(1000)), further);
}

// Four lines to a vector: the exponentials ask for half of what is read, for the quarter each that
// greatest element and quotients leave, and for the rest of what they write.
TEST(Prefetch, LoopsOfARowShareItsLines) {
  Target t = small_cache();
  t.vector_bytes = 64;
  t.vector_registers = 32;
  t.l2_bytes = 4 * 2048;
  const std::vector<Asked> expected{
      {1, 512, 1, false}, {1, 0, 0, true},   {2, 512 + 128, 1, false}, {2, 512 + 144, 1, false},
      {2, 128, 0, true},  {2, 144, 0, true}, {2, 160, 0, true},        {4, 512 + 384, 1, false}};
  const LinearKernel k = lower(softmax_ast(64, 512), t);
  EXPECT_EQ(asked(k), expected);
  check_linear_spec(k.ops, "prefetch");  // what two loops need of an offset stands before both
}

// Rows of records of so many bytes, of which the last `used` ones are multiplied by x and added.
UOp records_ast(int64_t rows, int64_t count, int64_t bytes, int64_t used) {
  AstBuilder b;
  const UOp row = b.loop(rows), r = b.fold(count), n = b.fold(used);
  const UOp at = (row * count + r) * bytes + n + (bytes - used);
  const UOp x = load(2, count * used, r * used + n);
  return kernel_of({store(0, rows, row,
                          reduce_over(Op::Add, cast(load(1, rows * count * bytes, at, DType::U8),
                                                    DType::F32) * x, {r, n}), {row})});
}

// Packed weights: each block is read by loads of a part of it, whatever lies between.
TEST(Prefetch, RecordsAreAskedForWhole) {
  const Target t = small_cache();
  const auto unrolled = [&](int64_t bytes, std::vector<Opt> rows) {
    rows.insert(rows.begin(), {OptKind::Unroll, 2, 32});
    std::vector<Asked> of_records;
    for (const Asked& a : asked(lower_with(records_ast(8, 64, bytes, 32), t, rows)))
      if (a.slot == 1) of_records.push_back(a);
    return of_records;
  };
  const std::vector<Asked> one_line{{1, 256 + 2, 1, false}};
  EXPECT_EQ(unrolled(34, {}), one_line);
  // A record is longer than a line, and half of it is read.
  EXPECT_TRUE(unrolled(68, {}).empty());
  // One load takes all of it: four rows are four walks.
  const LinearKernel walks = lower_with(records_ast(8, 64, 32, 32), t,
                                        {{OptKind::Unroll, 1, 32}, {OptKind::Upcast, 0, 4}});
  for (const Asked& a : asked(walks)) EXPECT_NE(a.slot, 1) << to_text(walks);
  // Four rows beside each other, each of them longer than twice the distance.
  const std::vector<Asked> each_row{{1, 258, 1, false},
                                    {1, 258 + 34 * 64, 1, false},
                                    {1, 258 + 2 * 34 * 64, 1, false},
                                    {1, 258 + 3 * 34 * 64, 1, false}};
  EXPECT_EQ(unrolled(34, {{OptKind::Upcast, 0, 4}}), each_row);
  // Shorter: those that the next iteration of the loop around begins with.
  Target far = small_cache(2048);
  const std::vector<Asked> next_rows = [&] {
    std::vector<Asked> out;
    for (int64_t r = 0; r < 2; r++) out.push_back({1, 2 + (2 + r) * 34 * 64, 1, false});
    return out;
  }();
  std::vector<Asked> got;
  for (const Asked& a : asked(lower_with(records_ast(8, 64, 34, 32), far,
                                         {{OptKind::Unroll, 2, 32}, {OptKind::Upcast, 0, 2}})))
    if (a.slot == 1) got.push_back(a);
  EXPECT_EQ(got, next_rows);
}

TEST(Prefetch, ItIsSkippedByNameAndLeftOutWhereAccessesAreChecked) {
  const Target t = small_cache();
  const std::vector<std::string> skipped{"prefetch"};
  EXPECT_TRUE(asked(lower_with(scaled(4096), t, {{OptKind::Vector, 0, 16}}, skipped)).empty());
  EXPECT_TRUE(asked(lower(scaled(4096), t, {.check_bounds = true})).empty());
}

// Every schedule means what it means without.
TEST(Prefetch, ChangesNoResult) {
  const UOp asts[] = {softmax_ast(12, 64),    softmax_ast(6, 96),      sum_ast(4, 256),
                      elementwise_ast(8, 64), elementwise_ast(2, 509), transpose_ast(32, 32),
                      scaled(1024),           scaled(1024, 1, true),   records_ast(8, 64, 34, 32)};
  const Target t = small_cache();
  int asking = 0;
  for (const UOp& ast : asts) {
    const LinearKernel by_heuristics = lower(ast, t);
    check_linear_spec(by_heuristics.ops, "prefetch");
    expect_same(ast, by_heuristics, 1e-5, "heuristics");
    for (uint64_t seed = 1; seed <= 200; seed++) {
      const LinearKernel k = lower_with(ast, t, random_opts(ast_for_opts(ast, t), t, seed, 32));
      check_linear_spec(k.ops, "prefetch");
      expect_same(ast, k, 1e-5, fmt::format("seed {}", seed));
      asking += std::any_of(k.ops.begin(), k.ops.end(),
                            [](const UOp& u) { return u->op == Op::Prefetch; });
    }
  }
  EXPECT_GE(asking, 40) << "too few schedules ask for memory";
}

}  // namespace
}  // namespace tuff::kernel::testing
