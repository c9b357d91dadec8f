// Bound calls as a CommandGraph: operands in inputs become slots, what kernels take of variables
// slots of the graph's SlotProgram. Called by the strategies of a captured graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/jit/size_expressions.h"
#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// What replays give values of: `variables`, then how many bytes of each input there are.
std::vector<ir::UOp> given_values(const std::vector<ir::UOp>& variables,
                                  std::span<const Ref<Buffer>> inputs);

class GraphMaker {
 public:
  // `sizes_vary`: inputs may be smaller than these.
  GraphMaker(Device& device, std::span<const Ref<Buffer>> inputs,
             const std::vector<ir::UOp>& given, bool sizes_vary)
      : device_(device), inputs_(inputs), sizes_(given), sizes_vary_(sizes_vary) {}
  void add(const BoundCall& call);
  void add(const hcq::Transfer& copy) { nodes_.emplace_back(copy); }  // of fixed memory
  std::shared_ptr<hcq::CommandGraph> make(hcq::GraphPlace place = {});

 private:
  ir::UOp present_bytes(const Buffer& b) const;
  hcq::Launch copy_by_kernel(const BoundCopy& copy);

  Device& device_;
  std::span<const Ref<Buffer>> inputs_;
  SizeExpressions sizes_;
  const bool sizes_vary_;
  std::vector<hcq::GraphNode> nodes_;
};

}  // namespace tuff::engine
