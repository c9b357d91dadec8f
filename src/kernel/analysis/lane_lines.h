// Lines of memory that the accesses of an AST touch under a mapping of its ranges to the lanes of a
// subgroup: what schedules choose by, before there is a launch. analysis/coalescing.h counts what
// became of it. Called by the heuristics. Must never know a device's name.
#pragma once

#include <span>
#include <vector>

#include "kernel/analysis/access.h"

namespace tuff::kernel {

// What the lanes of a subgroup load and store at once.
struct LaneWalk {
  // Lanes are neighbours along all of these: those of reductions and outputs that a workgroup walks
  // one after the other.
  std::span<const ir::UOp> ranges;
  int64_t lanes = 1;
  int64_t each = 1;                     // so many neighbouring steps to a lane, unrolled
  std::span<const ir::UOp> whole = {};  // what each lane walks whole, unrolled
  int64_t vector_bytes = 1;             // of a lane's widest access
  // Outputs of a sum, beside each other in the launch, that load again what does not depend on
  // them: the loads beneath it, and how many outputs there are along each range.
  const ir::Node* sum = nullptr;
  std::span<const std::pair<ir::UOp, int64_t>> outputs = {};
};

// In lines of kMemoryLineBytes: each element that an access walks is fetched once for each output
// of a sum, with the elements that other lanes fetch with it. Elements at offsets that memory holds
// lie anywhere.
double lines_touched(const std::vector<Access>& all, RangeDeps& deps, const LaneWalk& walk);

// Steps of a range that read the same word of packed numbers, each word after the one before, and
// how long it is; of the load with most of them.
struct PackedWords {
  int64_t steps = 1, bytes = 0;  // 1: there is none
};
PackedWords words_of(const std::vector<Access>& all, RangeDeps& deps, const ir::UOp& range);

}  // namespace tuff::kernel
