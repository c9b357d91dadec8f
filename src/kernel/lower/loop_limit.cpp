// Keeps the iterations of one invocation below Target::max_loop_trips: some devices end loops
// silently there. Loops go to the launch grid where every reduction is inside them; others are
// unrolled.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "ir/walk.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kMaxUnroll = 1024;

struct Limiter {
  RangeDeps deps;
  LoopTree tree;
  RangeMask shared_by_reduces = ~RangeMask(0);  // ranges that every reduction depends on

  explicit Limiter(const UOp& ast) : deps(ast), tree(ast, deps) {
    for (const Node* n : toposort(ast)) {
      if (n->op == Op::Reduce) shared_by_reduces &= deps.of(UOp(n));
    }
  }
  const UOp& range_of(int loop) const { return deps.ranges()[loop]; }
  bool is_output(int loop) const { return kind_of(range_of(loop).get()) == AxisKind::Loop; }

  bool sized_by_group(int loop) { return deps.of(range_of(loop)->src(0)) != 0; }

  // An outermost loop that may become a launch axis without repeating a reduction; kRoot: none.
  int grid_candidate() {
    int best = LoopTree::kRoot;
    for (int loop : tree.loops()) {
      if (tree.parent(loop) != LoopTree::kRoot || !is_output(loop)) continue;
      if (!(shared_by_reduces >> loop & 1) || sized_by_group(loop)) continue;
      if (best == LoopTree::kRoot || range_of(loop)->src(0)->max > range_of(best)->src(0)->max)
        best = loop;
    }
    return best;
  }
  // The innermost loop of the longest nest.
  int unroll_candidate() const {
    int at = LoopTree::kRoot;
    for (;;) {
      int best = LoopTree::kRoot;
      int64_t most = 0;
      for (int loop : tree.loops()) {
        const int64_t t = range_of(loop)->src(0)->max * (tree.trips(loop) + 1);
        if (tree.parent(loop) == at && t > most) most = t, best = loop;
      }
      if (best == LoopTree::kRoot) return at;
      at = best;
    }
  }
};

int64_t unroll_amount(int64_t size, int64_t wanted) {
  wanted = std::clamp<int64_t>(wanted, 2, size);
  for (int64_t f = wanted; f <= std::min(size, wanted * 4); f++) {
    if (size % f == 0) return f;
  }
  return wanted;
}

Opt next_opt(Limiter& s, const Tiling& t, int64_t limit) {
  if (const int loop = s.grid_candidate(); loop != LoopTree::kRoot && groups_left(t) > 1) {
    const UOp& size = s.range_of(loop)->src(0);
    const bool whole = size->max <= groups_left(t) || !size->is_const();
    return {OptKind::Group, axis_of(t, s.range_of(loop).get()), whole ? 0 : groups_left(t)};
  }
  const int loop = s.unroll_candidate();
  const UOp& r = s.range_of(loop);
  const int axis = axis_of(t, r.get());
  const int64_t wanted = s.tree.trips() / limit + 1;
  if (wanted > kMaxUnroll || !r->src(0)->is_const()) {
    fail<Unsupported>(
        "a kernel of {} loop iterations per invocation on a device that ends loops after {}: "
        "split the reduction",
        s.tree.trips(), limit);
  }
  const int64_t amount = unroll_amount(r->src(0)->max, wanted);
  if (!s.is_output(loop)) return {OptKind::Unroll, axis, amount};
  if (r->src(0)->max % amount == 0) return {OptKind::Upcast, axis, amount};
  return {OptKind::Group, axis, 0};
}

}  // namespace

void pass_loop_limit(Lowering& l) {
  const int64_t limit = int64_t(l.target.max_loop_trips) - 1;
  if (limit <= 0) return;
  for (int round = 0; round < 64; round++) {
    Limiter s(l.ast);
    if (s.tree.trips() <= limit) return;
    Tiling t(l.ast, l.target);
    apply(t, next_opt(s, t, limit));
    l.out.opts += (l.out.opts.empty() ? "limit:" : " limit:") + to_string(t.applied);
    l.ast = build(t);
  }
  TUFF_CHECK(false, "the loop limit of {} was not reached in 64 steps", limit);
}

}  // namespace tuff::kernel
