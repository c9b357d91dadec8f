// What values that were asked for have been computed by, for gradients that are asked for later. The
// node of such a value is a Detach of its memory, with the graph beside it, to which gradients flow.
// Called by realize. Must never decide what is computed.
#pragma once

#include <functional>
#include <span>
#include <unordered_set>
#include <vector>

#include "ir/walk.h"

namespace tuff::detail {

// Nodes of live tensors with requires_grad.
class Leaves {
 public:
  Leaves();
  // One that a gradient of u would reach; null: none.
  const ir::Node* below(const ir::UOp& u) const;

 private:
  std::unordered_set<const ir::Node*> nodes_;
};

ir::UOp with_history(const ir::UOp& memory, const ir::UOp& computed);
// The same where memory that it was computed of is overwritten: a gradient by the leaf is an error.
ir::UOp with_lost_history(const ir::UOp& memory, const ir::Node* leaf);

bool is_history(const ir::Node& n);  // such a node
bool is_lost(const ir::Node& n);     // one whose graph is gone
// Those nodes among these and below, in one walk; none where there has been none so far.
std::vector<ir::UOp> histories_below(std::span<const ir::UOp> graphs);
std::vector<ir::UOp> without_history(std::vector<ir::UOp> graphs);  // memory alone in their places
// By node, what it is once such memory is overwritten.
ir::UOpMap<ir::UOp> lost(std::span<const ir::UOp> histories,
                         const std::function<bool(const ir::Node*)>& overwritten);

}  // namespace tuff::detail
