// Random small kernels with random legal opts: the lowered list means what the AST means.
#include <gtest/gtest.h>

#include <random>

#include "graph/spec.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace graph;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}

  UOp ast() {
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 7};
    const int rank = 1 + pick(3);
    std::vector<UOp> loops;
    for (int i = 0; i < rank; i++) loops.push_back(b_.loop(sizes[pick(9)]));
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
  std::vector<Opt> opts(const UOp& ast, const Target& target) {
    Tiling t(ast_for_opts(ast), target);
    for (int i = 0; i < 6 && !t.axes().empty(); i++) {
      static constexpr int64_t amounts[] = {0, 2, 3, 4, 5, 8, 16};
      const Opt o{OptKind(pick(8)), pick(int(t.axes().size())), amounts[pick(7)]};
      if (t.lane_count() * std::max<int64_t>(o.amount, 1) <= 128) t.try_apply(o);
    }
    return t.applied();
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
    static constexpr int64_t sizes[] = {2, 4, 5, 8, 9};
    std::vector<UOp> own{b_.fold(sizes[pick(5)])};
    if (pick(3) == 0) own.push_back(b_.fold(sizes[pick(3)]));
    std::vector<UOp> inside;
    for (const UOp& r : open) {
      if (pick(3)) inside.push_back(r);
    }
    inside.insert(inside.end(), own.begin(), own.end());
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

TEST(RandomKernels, MeanTheSameLowered) {
  for (const NamedTarget& t : test_targets()) {
    for (uint32_t seed = 0; seed < 120; seed++) {
      RandomKernel r(seed);
      const UOp ast = r.ast();
      const std::string what = fmt::format("seed {} on {}", seed, t.name);
      LinearKernel k;
      ASSERT_NO_THROW(k = lower(ast, t.target)) << what;
      ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what)) << what << "\n" << to_text(k);
      const std::vector<Opt> opts = r.opts(ast, t.target);
      ASSERT_NO_THROW(k = lower_with(ast, t.target, opts)) << what << ": " << to_string(opts);
      ASSERT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << what << ": " << to_string(opts);
      ASSERT_NO_THROW(expect_same(ast, k, 1e-4, what + ": " + to_string(opts)))
          << what << ": " << to_string(opts) << "\n"
          << to_text(k);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tuff::kernel::testing
