// Edits of a GraphCase that the reduction tries: each gives a smaller graph of the same kind, or
// none where the edit does not fit. Called by reduce_graph alone. Must never know why a graph
// fails.
#pragma once

#include <optional>

#include "check/expectation.h"
#include "check/graph_case.h"

namespace tuff::check {

// Whether the scheduler may be given it: every sink is computed and has a device, every Storage has
// one chain of Assigns.
bool well_formed(const GraphCase& c);

// Every use of `from` becomes `to` (same dtype and shape), whose own Storages are `inputs`.
std::optional<GraphCase> with_replaced(const GraphCase& c, const ir::UOp& from,
                                       const ir::UOp& to, std::vector<GraphInput> inputs = {});
// A Buffer that holds what the node has; the case's inputs gain it.
std::optional<GraphCase> with_stored(const GraphCase& c, const ir::UOp& from,
                                     Expectation& values, const std::string& device);
// Every extent `from` that is not derived from another becomes `to`. Contents are cut: what stands
// first stays, or what is not 0.
enum class Keep : uint8_t { First, Nonzero };
std::optional<GraphCase> with_extent(const GraphCase& c, int64_t from, int64_t to, Keep keep);
// Symbolic extents become the numbers that the case's variables give them.
std::optional<GraphCase> with_constant_extents(const GraphCase& c);
// The amounts of one Pad become these.
std::optional<GraphCase> with_padding(const GraphCase& c, const ir::UOp& pad,
                                      const ir::Pairs& pairs);

}  // namespace tuff::check
