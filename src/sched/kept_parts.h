// Kept rows in parts (flash decoding): a kernel for the parts of all rows, and one that combines
// them. A row that one sweep reduces is a tuple, the maximum and the sums that grow with it, and
// such tuples combine in any order: where there are too few rows for a device's cores, parts of a
// row go to cores of their own. Called by keep.cpp, which decides. Knows slots and ASTs, nothing of
// targets. (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., "Flash-Decoding", 2023.)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// The elements of a part of a row: a number that divides its length whatever that is; 0: none of
// `least` elements or more does.
int64_t part_of_row(const ir::UOp& length, int64_t least, int64_t most);

// Ends of two kernels, whose Params carry slots.
struct KeptParts {
  std::vector<ir::UOp> parts, combined;
};
// Of a kernel's Ends, parts of so many elements. Nothing where a row is no such tuple, or has
// numbers stored besides. `new_memory`: the Param of a slot for so many elements.
std::optional<KeptParts> in_kept_parts(
    std::span<const ir::UOp> ends, int64_t length,
    const std::function<ir::UOp(DType, int64_t)>& new_memory);

}  // namespace tuff::sched
