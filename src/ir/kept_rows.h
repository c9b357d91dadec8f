// Kernels that keep rows in fast memory, as the formulas that they mean. Called by whatever runs an
// AST by its direct meaning. Knows nothing of targets.
#pragma once

#include "ir/uop.h"

namespace tuff::ir {

// The End that fills the kept row which `load` reads: load(index(after(shared, end), offset)); null
// where it reads another memory.
const Node* fill_read_by(const Node* load);

// Every load of a kept row is what fills the row there; an AST without any is left as it is.
UOp without_kept_rows(const UOp& ast);

}  // namespace tuff::ir
