// Stage: a factor of a sum of products, or a load, copied into fast memory, laid out as the loops
// inside read it. Called by Tiling. Must never know a Target: what is worth a copy is the
// heuristics' business.
#pragma once

#include <span>
#include <vector>

#include "kernel/opt/rules.h"

namespace tuff::kernel {

class RangeDeps;

std::vector<Tiling::Operand> factors_of(const ir::UOp& ast, RangeDeps& deps, const Tiling& t);
// Loads of a kernel that reduces nothing which walk an axis with step 1 that is not the one which
// all of its stores walk so: by tiles a workgroup has whole lines of both. Those whose walk along
// either is irregular are none.
std::vector<Tiling::Operand> transposed_loads(const ir::UOp& ast, RangeDeps& deps,
                                              const Tiling& t);

// Loads of a copy of `value`: Shared memory `number`, filled by a nest of loops of its own over
// those of `ranges` that the value depends on (outermost first, also in memory; lanes stay the
// lanes they are), wherever the other ranges of the value allow. Everything that `value` is, the
// gates of its loads, conversions, arithmetic, is done once per element of the copy. The nest walks
// the original as it lies in memory; where its vectors, of `vector_lanes`, would gather, it loads
// tiles across them and transposes these.
ir::UOp stage_tile(const ir::UOp& value, std::span<const ir::UOp> ranges, int32_t number,
                   int32_t& next_id, int64_t vector_lanes);
// Steps of a loop of that extent that such a tile has; 0: the loop is not taken in tiles.
int64_t transposed_steps(int64_t extent, int64_t vector_lanes);

}  // namespace tuff::kernel
