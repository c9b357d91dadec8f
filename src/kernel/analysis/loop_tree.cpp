#include "kernel/analysis/loop_tree.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "ir/kernel_floor.h"

namespace tuff::kernel {

using namespace ir;

LoopTree::LoopTree(const UOp& root, RangeDeps& deps) : deps_(deps) {
  const std::vector<const Node*> order = toposort(root);
  parent_.assign(64, kRoot);
  depth_.assign(64, 0);
  const RangeMask all = deps.kinds(is_loop);
  const auto own_loops = [](const Node* n) {
    std::vector<UOp> loops;
    for (const UOp& r : closed_ranges(n))
      if (r->op == Op::Range && is_loop(kind_of(r.get()))) loops.push_back(r);
    return loops;
  };
  // Reductions in one loop stand inside all that one of them stands in.
  std::unordered_map<const Node*, RangeMask> around;
  for (const Node* n : order) {
    if (n->op != Op::Reduce || !is_made_besides(n, order, deps)) continue;
    for (const Node* other : order)
      if (other->op == Op::Reduce && std::ranges::equal(closed_ranges(n), closed_ranges(other)))
        for (const UOp& r : own_loops(n)) around[r.get()] |= deps.of(UOp(other));
  }
  // Users first: the loops around a reduction are placed before its own.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* n = *it;
    if (n->op != Op::End && n->op != Op::Reduce) continue;
    RangeMask outside = deps.of(UOp(n)), own = 0;
    for (const UOp& r : own_loops(n)) outside |= around[r.get()], own |= deps.bit(r);
    int inside = deepest(outside & ~own & all);
    for (const UOp& r : own_loops(n)) {
      const int loop = std::countr_zero(deps.bit(r));
      if (!(placed_ >> loop & 1)) place(loop, inside);
      if (depth(loop) > depth(inside)) inside = loop;
    }
  }
}

void LoopTree::place(int loop, int parent) {
  placed_ |= RangeMask(1) << loop;
  parent_[loop] = parent;
  depth_[loop] = depth(parent) + 1;
  loops_.push_back(loop);
}

int LoopTree::deepest(RangeMask m) const {
  int best = kRoot;
  for (int loop : loops_) {
    if ((m >> loop & 1) && depth(loop) > depth(best)) best = loop;
  }
  return best;
}

int LoopTree::nearest_shared(int a, int b) const {
  while (a != b) {
    if (depth(a) >= depth(b)) {
      a = parent_[a];
    } else {
      b = parent_[b];
    }
  }
  return a;
}

int LoopTree::child_towards(int ancestor, int loop) const {
  while (loop != kRoot && parent_[loop] != ancestor) loop = parent_[loop];
  return loop;
}

int64_t LoopTree::trips(int loop) const {
  int64_t total = 0;
  for (int child : loops_) {
    if (parent_[child] != loop) continue;
    int64_t t = 0;
    if (__builtin_mul_overflow(trips(child) + 1, deps_.ranges()[child]->src(0)->max, &t))
      return INT64_MAX / 2;
    total = std::min(total + t, INT64_MAX / 2);
  }
  return total;
}

}  // namespace tuff::kernel
