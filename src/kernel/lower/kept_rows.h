// Which kept rows may lie where others do. Called by the pass that widens kept rows and by the
// Tiling, which counts their memory. Knows nothing of targets.
#pragma once

#include <cstdint>
#include <map>

#include "graph/uop.h"

namespace tuff::kernel {

// Rows each element of which is made of the same element of another row, which nothing else needs
// but reductions and rows that are complete by then: a softmax's quotients, of its scores. Numbers
// of Shared memory: what is filled, and what it may overwrite. No row is named twice.
std::map<int32_t, int32_t> overwritten_rows(const graph::UOp& ast);

// Rows of a workgroup begin in different banks of its memory: elements from one to the next.
int64_t row_pitch(const graph::UOp& memory);

}  // namespace tuff::kernel
