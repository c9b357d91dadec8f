// Kept rows as subgroups hold them: so many whole rows each, in matrices whose elements no lane
// knows. What lanes know of their rows reaches these by way of workgroup memory. Called by what
// builds such kernels and by the pass one-sweep. Must never know a Target.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::kernel {

struct SubgroupRows {
  ir::UOp row;                    // of the workgroup's rows, the one of this invocation and lane
  std::vector<ir::UOp> lanes;     // along rows
  ir::UOp shares;                 // which of the invocations that share the row
  ir::UOp first;                  // of the subgroup's rows, the first
  ir::UOp fragment;               // which of the subgroup's matrices of rows
  int64_t count = 0;              // of the workgroup's rows
  int64_t matrix_rows = 0;        // of one matrix

  // A matrix of sums with the value of its own row in each element; `value` may depend on rows and
  // loops. `like`: its extents; `number`: of the memory; `around`: the loops that it is made in.
  ir::UOp matrix(const ir::UOp& value, const ir::MatrixArg& like, int32_t number,
                 std::span<const ir::UOp> around) const;
};

}  // namespace tuff::kernel
