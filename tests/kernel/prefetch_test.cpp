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
                      scaled(1024),           scaled(1024, 1, true)};
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
