// The nest of serial loops that an AST or a lowered graph means: which loop stands inside which.
// Called by the loop limit and by linearize. Knows nothing of targets.
#pragma once

#include <vector>

#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

class LoopTree {
 public:
  LoopTree(const ir::UOp& root, RangeDeps& deps);
  static constexpr int kRoot = -1;
  int parent(int loop) const { return parent_[loop]; }
  int depth(int loop) const { return loop == kRoot ? 0 : depth_[loop]; }
  const std::vector<int>& loops() const {
    return loops_;
  }  // indices into RangeDeps::ranges(), outer first
  int deepest(RangeMask m) const;          // the innermost loop of a mask; kRoot without loops
  int nearest_shared(int a, int b) const;  // innermost loop around both
  int child_towards(int ancestor, int loop) const;  // the loop below ancestor that holds `loop`
  // Iterations one invocation makes in all, nested and successive loops counted like a device does
  // that bounds them; saturates.
  int64_t trips(int loop = kRoot) const;

 private:
  void place(int loop, int parent);
  RangeDeps& deps_;
  std::vector<int> parent_, depth_, loops_;
  RangeMask placed_ = 0;
};

}  // namespace tuff::kernel
