// GraphCase: a tensor graph with everything that is needed to run it again: contents of its
// buffers, values of its variables, the seed that it came from. Written and read as text: the IR of
// graph/text.h with the rest in comments. Called by the random graphs of `tuff check` and by tests.
// Must never know what runs it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/scalar_eval.h"

namespace tuff::check {

struct GraphInput {
  Ref<ir::Storage> storage;
  std::vector<std::byte> bytes;
};

struct GraphCase {
  std::vector<ir::UOp> sinks;
  std::vector<GraphInput> inputs;  // every Storage that the sinks use, and maybe more
  ir::VariableValues variables;
  uint64_t seed = 0;
};

// The interpreter's view of the inputs; `c` must outlive it and what it is given to.
ir::Bindings bindings_of(const GraphCase& c);
// Without the inputs that no sink uses.
GraphCase with_used_inputs(GraphCase c);
// The same graph with the Storages that `make_storage` makes of its own (buffers of a device), and
// its placements on that device.
GraphCase placed(const GraphCase& c, const std::string& device,
                 const std::function<Ref<ir::Storage>(const ir::Storage&)>& make_storage);
int64_t node_count(const GraphCase& c);
// Below Reshapes, also those that merge or split axes of symbolic extent.
const ir::Node* without_reshapes(const ir::Node* n);
// The memory beneath Assigns and Reshapes of it.
uint64_t storage_id(const ir::Node* n);

std::string to_text(const GraphCase& c);
// Reads what to_text wrote; InvalidArgument naming line or buffer and what is wrong with it.
GraphCase case_from_text(const std::string& text);

}  // namespace tuff::check
