// Which reductions run in one loop: none that would then wait for what waits for it.
#include <gtest/gtest.h>

#include <set>

#include "ir/kernel_floor.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "kernel/analysis/ranges.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

size_t loops_of_sums(const UOp& ast) {
  std::set<const Node*> loops;
  for (const Node* n : toposort(ast))
    if (n->op == Op::Reduce)
      for (const UOp& r : closed_ranges(n)) loops.insert(r.get());
  return loops.size();
}

void expect_same_everywhere(const UOp& ast, const std::string& name) {
  for (const NamedTarget& t : test_targets()) {
    for (const uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const std::string what = name + " on " + t.name + ", seed " + std::to_string(seed);
      LinearKernel k;
      ASSERT_NO_THROW(k = lower(ast, t.target, {.random_seed = seed})) << what;
      ASSERT_NO_THROW(check_linear_spec(k.ops, "lower")) << what << "\n" << to_text(k);
      ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what)) << what << "\n" << to_text(k);
    }
  }
}

// Random graph 1812 of `tuff check`: a sum that all outputs of a nest have in common, beside a nest
// whose sums, another one for each output, walk as far.
TEST(SharedLoops, SumsOfAnotherNestHaveTheirOwn) {
  AstBuilder b;
  const UOp i = b.loop(4), r = b.fold(31), j = b.loop(6);
  const UOp same = reduce_over(Op::Add, load(2, 31, r), {r});
  const UOp columns = reduce_over(Op::Add, load(3, 186, r * 6 + j), {r});
  const UOp ast = kernel_of({store(0, 4, i, same, {i}), store(1, 6, j, columns, {j})});
  EXPECT_EQ(loops_of_sums(separate_loops(ast, true)), 2u);
  expect_same_everywhere(ast, "a sum beside sums of columns");
}

// The squares of a vector are summed by the loop of its nest's products, whatever stands beside.
TEST(SharedLoops, ANestJoinsItsOwn) {
  AstBuilder b;
  const UOp i = b.loop(8), r = b.fold(96), j = b.loop(6), k = b.loop(5);
  const UOp x = load(3, 96, r);
  const UOp product = reduce_over(Op::Add, load(4, 768, i * 96 + r) * x, {r});
  const UOp squares = reduce_over(Op::Add, x * x, {r});
  const UOp columns = reduce_over(Op::Add, load(5, 576, r * 6 + j), {r});
  const UOp normed = store(0, 8, i, product * squares, {i});
  const UOp ast = kernel_of({normed, store(1, 6, j, columns, {j})});
  EXPECT_EQ(loops_of_sums(separate_loops(ast, true)), 2u);
  EXPECT_EQ(loops_of_sums(separate_loops(ast, false)), 3u);
  expect_same_everywhere(ast, "a norm beside sums of columns");
  // One that another nest needs as well is made before both.
  const UOp both = kernel_of({normed, store(2, 5, k, squares, {k})});
  EXPECT_EQ(loops_of_sums(separate_loops(both, true)), 2u);
  expect_same_everywhere(both, "a norm whose squares are stored");
}

// Two reductions over the same range that need each other, and sums inside both.
TEST(SharedLoops, SumsInsideOfReductionsThatNeedEachOther) {
  AstBuilder b;
  const UOp i = b.loop(4), r = b.fold(6), k = b.fold(5);
  const UOp row = reduce_over(Op::Add, load(1, 20, i * 5 + k) * load(2, 30, r * 5 + k), {k});
  const UOp most = reduce_over(Op::Max, row, {r});
  const UOp ast = kernel_of({store(0, 4, i, reduce_over(Op::Add, row * row - most, {r}), {i})});
  EXPECT_EQ(loops_of_sums(separate_loops(ast, true)), 4u);
  expect_same_everywhere(ast, "softmax of products");
}

}  // namespace
}  // namespace tuff::kernel::testing
