// Stage: one factor of a sum of products copied into fast memory, laid out as the loops inside read
// it. Called by Tiling. Must never know a Target: what is worth a copy is the heuristics' business.
#pragma once

#include <span>
#include <vector>

#include "kernel/opt/opt.h"

namespace tuff::kernel {

class RangeDeps;

std::vector<Tiling::Factor> factors_of(const ir::UOp& ast, RangeDeps& deps, const Tiling& t);

// Loads of a copy of `value`: Shared memory `number`, filled by a nest of loops of its own over
// those of `ranges` that the value depends on (outermost first, also in memory; lanes stay the
// lanes they are), wherever the other ranges of the value allow. Everything that `value` is, the
// gates of its loads, conversions, arithmetic, is done once per element of the copy. The nest walks
// the original as it lies in memory; where its vectors would gather, it turns tiles of `turned`
// steps (0: it does not).
ir::UOp stage_tile(const ir::UOp& value, std::span<const ir::UOp> ranges, int32_t number,
                      int32_t& next_id, int64_t turned);

}  // namespace tuff::kernel
