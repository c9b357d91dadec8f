// How loads and stores walk memory: the step of every offset per range. Called by the heuristics
// and by the merging of axes. Knows nothing of targets.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/uop.h"
#include "kernel/lower/ranges.h"

namespace tuff::kernel {

struct Access {
  graph::UOp index;
  bool store = false;
  std::vector<std::pair<graph::UOp, int64_t>> steps;  // ranges the offset is affine in
  RangeMask irregular = 0;                            // ranges it depends on in another way
  RangeMask gate = 0;                                 // ranges its gate depends on
  int64_t step(const graph::UOp& range) const;        // 0: independent or irregular
};

std::vector<Access> accesses(const graph::UOp& ast, RangeDeps& deps);

}  // namespace tuff::kernel
