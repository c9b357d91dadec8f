// Random small kernels with random legal opts: the lowered list means what the AST means.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <random>

#include "base/random_cases.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/kept_row_opts.h"
#include "kernel/opt/random_opts.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;
using tuff::testing::random_cases;
using tuff::testing::random_hits;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}

  // Of prime numbers too, and of one; sched leaves no loop of none to a kernel.
  UOp ast() {
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 7, 13, 5};
    const int rank = 1 + pick(3);
    std::vector<UOp> loops;
    for (int i = 0; i < rank; i++) loops.push_back(b_.loop(sizes[pick(11)]));
    const UOp value = expression(loops, 3);
    std::vector<UOp> order = loops;
    std::shuffle(order.begin(), order.end(), random_);  // a permuted store
    UOp offset = index_const(0);
    int64_t count = 1;
    for (const UOp& r : order) {
      offset = offset * r->src(0) + r;
      count *= r->src(0)->max;
    }
    UOp gate;
    if (pick(4) == 0)
      gate = lt(loops[0], index_const(std::max<int64_t>(loops[0]->src(0)->max - 1, 1)));
    return kernel_of({store(0, count, offset, value, loops, gate)});
  }
  // Loop nests beside each other, each with its own output; of one element, of prime numbers, long.
  UOp nests() {
    static constexpr int64_t sizes[] = {1, 2, 5, 16, 67, 96, 128, 257, 1024};
    std::vector<UOp> ends;
    const int n = 2 + pick(4);
    for (int i = 0; i < n; i++) {
      std::vector<UOp> loops{b_.loop(sizes[pick(9)])};
      if (pick(5) == 0) loops.push_back(b_.loop(sizes[pick(4)]));
      UOp offset = index_const(0);
      int64_t count = 1;
      for (const UOp& r : loops) {
        offset = offset * r->src(0) + r;
        count *= r->src(0)->max;
      }
      const UOp in = load(next_slot_++, count, offset);
      UOp value = in * in + load(next_slot_++, count, offset) * constant(DType::F32, 0.5);
      if (pick(4) == 0) {  // a sum over columns
        const UOp row = b_.fold(7 + pick(6));
        const UOp column = load(next_slot_++, count * row->src(0)->max, row * count + offset);
        value = value + reduce_over(Op::Add, column, {row});
      }
      ends.push_back(store(next_slot_++, count, offset, value, loops));
      if (pick(3) == 0) ends.push_back(store(next_slot_++, count, offset, value + in, loops));
    }
    return kernel_of(ends);
  }
  // A subgroup of 8 that shares reductions, or loads for a tile.
  std::vector<Opt> subgroup_opts(const UOp& ast, const Target& target) {
    Tiling t(ast_for_opts(ast, target), target);
    const bool reductions = pick(2) == 0;
    const bool beside = reductions && pick(4) == 0;
    if (beside && pick(2)) try_apply(t, {OptKind::Local, 0, 3});
    for (int a = 0; a < int(t.axes.size()); a++) {
      if (t.axes[size_t(a)].reduced && reductions) try_apply(t, {OptKind::GroupReduce, a, 8});
    }
    if (beside && pick(2)) try_apply(t, {OptKind::Local, 0, 3});
    for (int a = 0; a < int(t.axes.size()); a++) {
      if ((local_size(t) == 1 || reductions) && !pick(2))
        try_apply(t, {OptKind::Local, a, 8});
      else if (lane_count(t) <= 8)
        try_apply(t, {OptKind::Upcast, a, pick(3) ? 8 : 2});
    }
    return t.applied;
  }

 private:
  int pick(int n) { return int(random_() % uint32_t(n)); }

  UOp expression(const std::vector<UOp>& open, int depth) {
    switch (depth == 0 ? 0 : pick(7)) {
      case 0: return leaf(open);
      case 1: return expression(open, depth - 1) + expression(open, depth - 1);
      case 2: return expression(open, depth - 1) * leaf(open);
      case 3: return alu(Op::Max, {expression(open, depth - 1), leaf(open)});
      case 4:
        return cast(cast(open[size_t(pick(int(open.size())))] * 3, DType::I32), DType::F32) +
               leaf(open);
      default: return reduction(open, depth);
    }
  }
  UOp reduction(const std::vector<UOp>& open, int depth) {
    static constexpr int64_t sizes[] = {2, 4, 5, 8, 9, 1, 11};
    std::vector<UOp> own{b_.fold(sizes[pick(7)])};
    if (pick(3) == 0) own.push_back(b_.fold(sizes[pick(3)]));
    std::vector<UOp> inside;
    for (const UOp& r : open) {
      if (pick(3)) inside.push_back(r);
    }
    inside.insert(inside.end(), own.begin(), own.end());
    if (pick(2)) return reduce_over(Op::Add, leaf(inside) * leaf(inside), own);
    return reduce_over(pick(3) ? Op::Add : Op::Max, expression(inside, depth - 1), own);
  }
  // A load that walks some of the open ranges, maybe gated, shifted, divided or wrapped.
  UOp leaf(const std::vector<UOp>& open) {
    UOp offset = index_const(0);
    for (const UOp& r : open) {
      if (pick(4)) offset = offset * r->src(0) + r;
    }
    if (pick(5) == 0) offset = floordiv(offset, 3);
    if (pick(5) == 0) offset = floormod(offset, 5);
    UOp gate;
    if (pick(3) == 0) {
      offset = offset - 2;
      gate = ge(offset, index_const(0));
    }
    const int64_t count = std::max<int64_t>(offset->max + 1, 1);
    const UOp x = load(next_slot_++, count, offset, DType::F32, gate);
    return x * constant(DType::F32, 0.25);
  }

  std::mt19937 random_;
  AstBuilder b_;
  int32_t next_slot_ = 1;
};

constexpr int64_t kMostLanes = 128;

// How often each kind was part of a random schedule, of the kernels of one test.
class Histogram {
 public:
  std::vector<Opt> draw(const UOp& ast, const Target& target, uint64_t seed) {
    const OptCounts before = random_opt_counts();
    std::vector<Opt> opts = random_opts(ast_for_opts(ast, target), target, seed, kMostLanes);
    const OptCounts after = random_opt_counts();
    for (const OptKind k : kOptKinds) {
      OptCounts::Row& row = counts_.of(k);
      row.tried += after.of(k).tried - before.of(k).tried;
      row.applied += after.of(k).applied - before.of(k).applied;
    }
    return opts;
  }
  uint64_t applied(OptKind k) const { return counts_.of(k).applied; }
  void print() const { fmt::print("{}\n", to_string(counts_, builtin_target("spirv-lavapipe"))); }

 private:
  OptCounts counts_;
};

void expect_the_same(const UOp& ast, const Target& target, const std::vector<Opt>& opts,
                     double tolerance, const std::string& kernel) {
  const std::string what = kernel + ": " + to_string(opts);
  LinearKernel k;
  ASSERT_NO_THROW(k = lower_with(ast, target, opts)) << what;
  ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what;
  ASSERT_NO_THROW(expect_same(ast, k, tolerance, what)) << what << "\n" << to_text(k);
}

TEST(RandomKernels, MeanTheSameLowered) {
  Histogram histogram;
  const std::vector<NamedTarget> targets = test_targets();
  for (uint32_t seed = 0; seed < random_cases(600); seed++) {
    const UOp ast = RandomKernel(seed).ast();
    for (const NamedTarget& t : targets) {
      const std::string what = fmt::format("seed {} on {}", seed, t.name);
      LinearKernel k;
      ASSERT_NO_THROW(k = lower(ast, t.target)) << what;
      ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what)) << what << "\n" << to_text(k);
      expect_the_same(ast, t.target, histogram.draw(ast, t.target, seed), 1e-4, what);
      if (HasFailure()) return;
    }
  }
  histogram.print();
  for (const OptKind k : kOptKinds) {
    // matrices_test.cpp; ProductsMeanTheSameLowered; RowsThatInvocationsShareMeanTheSame
    if (k == OptKind::Matrix || k == OptKind::Ahead || k == OptKind::Slab) continue;
    EXPECT_GE(histogram.applied(k), random_hits(100)) << name(k);
  }
}

// On every target with workgroups, with opts drawn by the seed.
void expect_the_same_in_workgroups(const UOp& ast, Histogram& histogram, uint32_t seed) {
  for (const NamedTarget& t : test_targets()) {
    if (!t.target.has_local) continue;
    const std::string what = fmt::format("seed {} on {}", seed, t.name);
    expect_the_same(ast, t.target, histogram.draw(ast, t.target, seed), 1e-4, what);
    if (::testing::Test::HasFailure()) return;
  }
}

// Tiles that workgroups copy, of sizes that opts seldom divide.
TEST(RandomKernels, ProductsMeanTheSameLowered) {
  Histogram histogram;
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<int64_t> sizes) {
    return sizes.begin()[random() % sizes.size()];
  };
  for (uint32_t seed = 0; seed < random_cases(450); seed++) {
    const int64_t n = one_of({1, 5, 8, 13, 16, 31}), m = one_of({1, 4, 7, 16, 24, 37}),
                  k = one_of({1, 3, 8, 12, 17, 32});
    const UOp ast = random() % 3 ? matmul_ast(n, m, k, random() % 2) : conv_ast(2, 3, 6, 5);
    expect_the_same_in_workgroups(ast, histogram, seed);
    if (HasFailure()) return;
  }
  histogram.print();
  EXPECT_GE(histogram.applied(OptKind::Stage), random_hits(200));
  EXPECT_GE(histogram.applied(OptKind::Ahead), random_hits(100));
}

// Loads across what is stored, which workgroups copy too.
TEST(RandomKernels, PermutationsMeanTheSameLowered) {
  Histogram histogram;
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < random_cases(300); seed++) {
    std::vector<int64_t> sizes(2 + random() % 3), order(sizes.size());
    for (int64_t& n : sizes) n = std::array<int64_t, 7>{1, 2, 5, 8, 13, 16, 24}[random() % 7];
    std::iota(order.begin(), order.end(), int64_t(0));
    std::shuffle(order.begin(), order.end(), random);
    const DType in = random() % 2 ? DType::F32 : DType::F16, out = random() % 2 ? DType::F32 : in;
    const UOp ast = permute_ast(sizes, order, in, out, random() % 2);
    expect_the_same_in_workgroups(ast, histogram, seed);
    if (HasFailure()) return;
  }
  histogram.print();
  EXPECT_GE(histogram.applied(OptKind::Stage), random_hits(150));
}

TEST(RandomKernels, OfSeveralNestsMeanTheSameLowered) {
  Histogram histogram;
  uint32_t spread = 0;
  const std::vector<NamedTarget> targets = test_targets();
  for (uint32_t seed = 0; seed < random_cases(30); seed++) {
    const UOp ast = RandomKernel(1000 + seed).nests();
    for (const NamedTarget& t : targets) {
      const auto nodes = toposort(ast);
      const bool sums = std::any_of(nodes.begin(), nodes.end(),
                                    [](const Node* n) { return n->op == Op::Reduce; });
      const double tolerance = sums ? 1e-5 : 0;  // of sums in another order; else bit for bit
      const std::string what = fmt::format("seed {} on {}", seed, t.name);
      const LinearKernel k = lower(ast, t.target);
      ASSERT_NO_THROW(expect_same(ast, k, tolerance, what)) << what << "\n" << to_text(k);
      expect_the_same(ast, t.target, histogram.draw(ast, t.target, seed), tolerance, what);
      spread += k.opts.find("spread") != std::string::npos;
      if (HasFailure()) return;
    }
  }
  histogram.print();
  EXPECT_GT(spread, random_hits(25));
  EXPECT_GT(histogram.applied(OptKind::Spread), random_hits(25));
}

constexpr std::initializer_list<int64_t> kPositions{1, 2, 5, 8, 13, 16, 17, 32},
    kWidths{1, 3, 4, 7, 8, 16};

// Kept rows are widened by lanes and invocations, whatever those are.
TEST(RandomKernels, RowsThatAreKeptMeanTheSame) {
  Histogram histogram;
  const std::vector<NamedTarget> targets = test_targets();
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < random_cases(200); seed++) {
    const UOp ast = random_attention(random, std::max(int(seed % 4) - 1, 0), kPositions, kWidths);
    for (const NamedTarget& t : targets) {
      const std::string what = fmt::format("seed {} on {}", seed, t.name);
      const bool fits = t.target.shared_bytes >= 1024;
      if (!fits) continue;
      if (!t.target.has_local) {
        LinearKernel k;
        ASSERT_NO_THROW(k = lower(ast, t.target)) << what;
        ASSERT_NO_THROW(check_linear_spec(k.ops, "lower")) << what << "\n" << to_text(k);
        ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what)) << what << "\n" << to_text(k);
      }
      expect_the_same(ast, t.target, histogram.draw(ast, t.target, seed), 1e-4, what);
      if (HasFailure()) return;
    }
  }
  histogram.print();
  for (const OptKind k : {OptKind::Upcast, OptKind::Vector, OptKind::Unroll, OptKind::Local,
                          OptKind::Stage, OptKind::Group, OptKind::Swap})
    EXPECT_GE(histogram.applied(k), random_hits(20)) << name(k);
}

TEST(RandomKernels, RowsThatInvocationsShareMeanTheSame) {
  std::map<OptKind, uint32_t> applied;
  std::mt19937 random(9);
  const std::vector<NamedTarget> targets = test_targets();
  for (uint32_t seed = 0; seed < random_cases(480); seed++) {
    const UOp ast = random_attention(random, int(seed % 3), kPositions, kWidths);
    for (const NamedTarget& t : targets) {
      if (!t.target.has_local || t.target.shared_bytes < 1024) continue;
      const std::string what = fmt::format("seed {} on {}", seed, t.name);
      const std::vector<Opt> opts = kept_row_opts(ast, t.target, random);
      for (const Opt& o : opts) applied[o.kind]++;
      expect_the_same(ast, t.target, opts, 1e-4, what);
      if (HasFailure()) return;
    }
  }
  for (const OptKind k :
       {OptKind::Upcast, OptKind::Unroll, OptKind::Local, OptKind::GroupReduce, OptKind::Stage,
        OptKind::Ahead, OptKind::Group, OptKind::Split, OptKind::Slab})
    EXPECT_GE(applied[k], random_hits(30)) << name(k);
}

TEST(RandomKernels, LanesThatShareKeepTheMeaning) {
  const Target t = builtin_target("spirv-lavapipe");
  uint32_t sharing = 0;
  for (uint32_t seed = 0; seed < random_cases(3000); seed++) {
    RandomKernel r(seed);
    const UOp ast = r.ast();
    const std::vector<Opt> opts = r.subgroup_opts(ast, t);
    const std::string what = fmt::format("seed {}: {}", seed, to_string(opts));
    LinearKernel k;
    ASSERT_NO_THROW(k = lower_with(ast, t, opts)) << what;
    const bool shares =
        std::any_of(k.ops.begin(), k.ops.end(), [](const UOp& u) { return u->op == Op::Shuffle; });
    if (!shares) continue;
    sharing++;
    ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what;
    ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what)) << what << "\n" << to_text(k);
    if (HasFailure()) return;
  }
  EXPECT_GE(sharing, random_hits(200));
}

}  // namespace
}  // namespace tuff::kernel::testing
