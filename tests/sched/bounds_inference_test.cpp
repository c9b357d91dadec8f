// Reductions that compute no more than what is read of them: values bit for bit, and how many
// elements are reduced.
#include <gtest/gtest.h>

#include <random>

#include "ir/walk.h"
#include "sched/bounds_inference.h"
#include "sched/host_run.h"
#include "sched/models.h"

namespace tuff::sched::testing {
namespace {

using namespace ir;

int64_t reduced_elements(std::span<const UOp> sinks) {
  int64_t n = 0;
  for (const Node* u : toposort(sinks))
    if (u->op == Op::Reduce) n += element_count(u->src(0)->shape);
  return n;
}

// How many elements are reduced then.
int64_t checked(const std::vector<UOp>& sinks) {
  const std::vector<UOp> got = infer_bounds(sinks);
  EXPECT_EQ(got.size(), sinks.size());
  Contents contents;
  uint32_t seed = 1;
  for (const Node* n : toposort(sinks)) {
    if (n->op != Op::Buffer) continue;
    Values& v = contents[n->get<Ref<Storage>>()->id];
    for (int64_t i = 0; i < element_count(n->shape); i++, seed = seed * 1664525 + 1013904223)
      v.push_back(Scalar::of_double(n->dtype, double(seed >> 8) / double(1 << 24) - 0.5));
  }
  TensorEvaluator values(contents);
  for (size_t k = 0; k < sinks.size(); k++) {
    EXPECT_EQ(got[k]->shape, sinks[k]->shape);
    EXPECT_EQ(values.eval(got[k]), values.eval(sinks[k])) << "sink " << k;
  }
  return reduced_elements(got);
}

UOp row_sums(const UOp& x) { return reduce(Op::Add, x, {int64_t(x->shape.size()) - 1}); }
DimPair all(int64_t n) { return {Dim(0), Dim(n)}; }

TEST(BoundsInference, TheLastRowOfAProductIsAllOfItThatIsMade) {
  const UOp y = relu(matmul(host_buffer({6, 16}), host_buffer({16, 8})));
  const UOp last = shrink(y, {{Dim(5), Dim(6)}, all(8)});
  EXPECT_EQ(checked({row_sums(last)}), 16 * 8 + 8);
}

TEST(BoundsInference, WhatAllReadersTakeTogetherIsMade) {
  const UOp y = matmul(host_buffer({6, 16}), host_buffer({16, 9}));
  std::vector<UOp> parts;
  for (int64_t k = 0; k < 3; k++) parts.push_back(shrink(y, {all(6), {Dim(3 * k), Dim(3 * k + 3)}}));
  EXPECT_EQ(checked(parts), 6 * 16 * 9);
  EXPECT_EQ(checked({parts[0], parts[1]}), 6 * 16 * 6);
  EXPECT_EQ(checked({parts[0], parts[2]}), 6 * 16 * 9);
  EXPECT_EQ(checked({parts[1], y}), 6 * 16 * 9);
}

TEST(BoundsInference, PartsPassMovement) {
  const UOp y = matmul(host_buffer({6, 16}), host_buffer({16, 8}));
  const Pairs part{{Dim(1), Dim(3)}, all(8)};
  const int64_t cut = 2 * 16 * 8;
  EXPECT_EQ(checked({shrink(permute(y, {1, 0}), {all(8), {Dim(1), Dim(3)}})}), cut);
  EXPECT_EQ(checked({shrink(flip(y, {0}), part)}), cut);
  EXPECT_EQ(checked({shrink(reshape(y, {Dim(6), Dim(1), Dim(2), Dim(4)}),
                            {{Dim(1), Dim(3)}, all(1), all(2), all(4)})}),
            cut);
  EXPECT_EQ(checked({shrink(expand(reshape(y, {Dim(6), Dim(1), Dim(8)}), {Dim(6), Dim(5), Dim(8)}),
                            {{Dim(1), Dim(3)}, {Dim(2), Dim(4)}, all(8)})}),
            cut);
  EXPECT_EQ(checked({shrink(pad(y, {{Dim(0), Dim(0)}, {Dim(1), Dim(1)}}),
                            {{Dim(1), Dim(3)}, {Dim(0), Dim(5)}})}),
            cut);
  EXPECT_EQ(checked({shrink(shrink(y, {{Dim(0), Dim(4)}, all(8)}), part)}), cut);
  // Rows of what mixes axes are elements of any row, and so are places that a pad adds.
  const int64_t whole = 6 * 16 * 8;
  EXPECT_EQ(checked({shrink(reshape(y, {Dim(12), Dim(4)}), {{Dim(1), Dim(3)}, all(4)})}), whole);
  EXPECT_EQ(checked({shrink(pad(y, {{Dim(1), Dim(0)}, {Dim(0), Dim(0)}}), {all(2), all(8)})}),
            whole);
}

TEST(BoundsInference, ReductionsOfReductionsAreCutWithThem) {
  const UOp x = host_buffer({6, 5, 4});
  const UOp inner = reduce(Op::Max, x, {2}), outer = reduce(Op::Add, inner, {1});
  EXPECT_EQ(checked({row_sums(shrink(outer, {{Dim(4), Dim(6)}, all(1), all(1)}))}), 2 * 20 + 2 * 5);
}

// A reduction that is cut cuts what it is made of, and that what else is made of it.
TEST(BoundsInference, OtherReadersOfWhatIsCutAreCutWithIt) {
  const UOp x = relu(host_buffer({6, 4}));
  const Pairs rows{{Dim(1), Dim(3)}, all(4)}, sums{{Dim(1), Dim(3)}, all(1)};
  const UOp sum = shrink(row_sums(x), sums), other = shrink(neg(x), rows);
  EXPECT_EQ(checked({sum, other}), 2 * 4);
  // And so on: the square is made of what the other reader is.
  const UOp y = neg(host_buffer({6, 4})), z = add(x, y);
  EXPECT_EQ(checked({sum, shrink(z, rows), shrink(mul(y, y), rows)}), 2 * 4);
}

TEST(BoundsInference, WhereAPartBeginsMayBeAVariable) {
  const UOp first = variable("first", 0, 4);
  const UOp y = matmul(host_buffer({6, 16}), host_buffer({16, 8}));
  const UOp part = shrink(y, {{Dim(first), Dim(first) + Dim(2)}, {Dim(3), Dim(5)}});
  EXPECT_EQ(reduced_elements(infer_bounds(std::vector<UOp>{part})), 6 * 16 * 2);
}

// Of a symbolic axis all is made; another one is cut all the same.
TEST(BoundsInference, LengthsMayBeVariables) {
  const Dim rows = Dim(variable("a", 1, 4)) + Dim(variable("b", 1, 4));
  const UOp x = shrink(host_buffer({8, 16}), {{Dim(0), rows}, all(16)});
  const UOp y = relu(matmul(x, host_buffer({16, 9})));
  const UOp part = shrink(y, {{Dim(0), rows}, {Dim(2), Dim(5)}});
  const std::vector<UOp> sinks{row_sums(part)}, got = infer_bounds(sinks);
  EXPECT_EQ(got[0]->shape, sinks[0]->shape);
  EXPECT_EQ(reduced_elements(got), 8 * 16 * 3 + 8 * 3);
}

class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {
    pool_ = {host_buffer({4, 6}), host_buffer({4, 6})};
    const int steps = 3 + below(8);
    for (int k = 0; k < steps; k++) pool_.push_back(step());
  }
  // Parts of a few values.
  std::vector<UOp> sinks() {
    std::vector<UOp> out;
    for (int k = 1 + below(3); k > 0; k--) out.push_back(part(any()));
    return out;
  }

 private:
  int below(int n) { return int(random_() % uint32_t(n)); }
  const UOp& any() { return pool_[size_t(below(int(pool_.size())))]; }
  DimPair interval(int64_t n) {
    const int64_t first = below(int(n));
    return {Dim(first), Dim(first + 1 + below(int(n - first)))};
  }
  UOp part(const UOp& x) { return shrink(x, {interval(4), interval(6)}); }
  // Of 4 rows of 6 again.
  UOp step() {
    const UOp &x = any(), &y = any();
    switch (below(7)) {
      case 0: return neg(x);
      case 1: return add(x, y);
      case 2: return expand(reduce(Op::Add, x, {below(2)}), x->shape);
      case 3: return flip(x, {below(2)});
      case 4: return reshape(relu(reshape(x, {Dim(4), Dim(1), Dim(2), Dim(3)})), x->shape);
      case 5: return reshape(relu(reshape(x, {Dim(2), Dim(12)})), {Dim(4), Dim(6)});
      default: {
        const Pairs p{interval(4), interval(6)};
        return pad(shrink(x, p), {{p[0].a, Dim(4) - p[0].b}, {p[1].a, Dim(6) - p[1].b}});
      }
    }
  }

  std::mt19937 random_;
  std::vector<UOp> pool_;
};

TEST(BoundsInference, DrawnGraphsHaveTheirValues) {
  int cut = 0;
  for (uint32_t seed = 0; seed < 1000; seed++) {
    const std::vector<UOp> sinks = Drawn(seed).sinks();
    cut += checked(sinks) < reduced_elements(sinks);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(cut, 200);
}

// Without a reduction nothing is another node.
TEST(BoundsInference, ElementsAreIndexArithmetic) {
  const UOp x = relu(host_buffer({6, 4}));
  const std::vector<UOp> sinks{shrink(x, {{Dim(1), Dim(3)}, all(4)})};
  EXPECT_EQ(infer_bounds(sinks), sinks);
}

}  // namespace
}  // namespace tuff::sched::testing
