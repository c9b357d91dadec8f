// Runs a kernel's AST by its direct meaning: what the tests of sched and of kernel hold their
// results against. Knows ranges and values; memory belongs to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "ir/uop.h"

namespace tuff::ir::testing {

// The place of an element that an Index names, whose gate is open.
using Place = std::function<std::byte*(const Node& index, int64_t element, bool write)>;

// Every End's ranges outermost first. Kept rows are read as the formulas that they stand for.
// Sums of narrow floats are kept in their accumulator.
void run_direct(const UOp& ast, const Place& place);

}  // namespace tuff::ir::testing
