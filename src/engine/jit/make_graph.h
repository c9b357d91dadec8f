// Bound calls as a CommandGraph: operands in inputs become slots, what kernels take of variables
// slots of the graph's SlotProgram. Called by the strategies of a captured graph.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// A call, or a copy between a buffer and its staging span.
using SegmentItem = std::variant<const BoundCall*, hcq::Transfer>;

// What replays give values of: `variables`, then how many bytes of each input there are.
std::vector<ir::UOp> given_values(const std::vector<ir::UOp>& variables,
                                  std::span<const Ref<Buffer>> inputs);
// `sizes_vary`: inputs may be smaller than these.
std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const SegmentItem> items,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given, bool sizes_vary,
                                              hcq::GraphPlace place = {});
std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const BoundCall> calls,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given, bool sizes_vary);

}  // namespace tuff::engine
