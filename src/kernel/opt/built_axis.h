// An axis of a Tiling as the rebuilt AST sees it. Called by what rebuilds it (build.cpp,
// build_row_matrices.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/uop.h"

namespace tuff::kernel {

struct BuiltAxis {
  ir::UOp value;                // replaces the range
  ir::UOp base;                 // the same where a matrix begins
  ir::UOp first;                // ... and its own elements; empty: where it begins. In granules
  int64_t granule = 1;          // a power of two; a matrix begins and ends with one
  ir::UOp slab, within;         // the loop over slabs, and the place in one
  ir::UOp valid;                // empty: always
  bool gates = false;           // loads are gated by `valid`; else `value` stays inside the range
  std::vector<ir::UOp> ranges;  // outermost first
};

}  // namespace tuff::kernel
