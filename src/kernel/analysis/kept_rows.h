// Which kept rows may lie where others do. Called by the pass that widens kept rows and by the
// Tiling, which counts their memory. Knows nothing of targets.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

// Rows each element of which is made of the same element of another row, which nothing else needs
// but reductions and rows that are complete by then: a softmax's quotients, of its scores. Numbers
// of Shared memory: what is filled, and what it may overwrite. No row is named twice.
std::map<int32_t, int32_t> overwritten_rows(const ir::UOp& ast);

// The memory that an End of stores fills, and whether that is a row.
const ir::Node* filled_memory(const ir::Node* end);
bool fills_row(const ir::Node* n);
// Nodes below a value, what fills rows left out.
std::vector<const ir::Node*> nodes_of(const ir::UOp& value);
// The End that fills the row of that number; empty: none.
ir::UOp fill_of(const ir::UOp& ast, int32_t number);
// What reads elements of `row` and is complete for all of a row's elements at once, before `end`
// begins: reductions, and other rows.
std::vector<ir::UOp> complete_before(const ir::UOp& ast, const ir::UOp& end, const ir::Node* row,
                                     RangeDeps& deps);

// Rows of a workgroup begin in different banks of its memory: elements from one to the next.
int64_t row_pitch(const ir::UOp& memory);

}  // namespace tuff::kernel
