// How loads and stores walk memory: the step of every offset per range. Called by the heuristics
// and by copies of tiles. Knows nothing of targets.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/uop.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

struct Access {
  ir::UOp index;
  bool store = false;
  std::vector<std::pair<ir::UOp, int64_t>> steps;  // ranges the offset is affine in
  RangeMask irregular = 0;                         // ranges it depends on in another way
  // Irregular ranges of which a power of two of neighbours have the same element, the next so many
  // the next element.
  RangeMask repeated = 0;
  // Irregular ranges that are walked in pieces: so many neighbours, a power of two, all read the
  // same element or each the next one.
  struct Piece {
    ir::UOp range;
    int64_t length = 0;
    bool walked = false;  // each the next one
  };
  std::vector<Piece> pieces;
  RangeMask gate = 0;                        // ranges its gate depends on
  int64_t step(const ir::UOp& range) const;  // 0: independent or irregular
};

// The Params that stores write to, and whether a value is of what is loaded from one of these.
std::set<const ir::Node*> stored_params(const ir::UOp& ast);
bool reads_any(const ir::UOp& value, const std::set<const ir::Node*>& memory);

std::vector<Access> accesses(const ir::UOp& ast, RangeDeps& deps);

// The longest step of these accesses along a range; none where one is irregular in it.
std::optional<int64_t> longest_step(const std::vector<Access>& all, RangeDeps& deps,
                                    const ir::UOp& r);
// About how far apart in memory successive iterations of a range are: of what is irregular in it,
// as a row that is clamped, from the bounds of the offset.
int64_t typical_step(const std::vector<Access>& all, RangeDeps& deps, const ir::UOp& r);

}  // namespace tuff::kernel
