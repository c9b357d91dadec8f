// The leaves that gradients of a value would reach. Called by realize, and by what computes gradients
// before they are asked for. Must never decide what a gradient is.
#pragma once

#include <unordered_set>

#include "ir/history.h"

namespace tuff::detail {

// Nodes of live tensors with requires_grad.
class Leaves {
 public:
  Leaves();
  ir::UOp below(const ir::UOp& u) const;  // one of them; empty: none

 private:
  std::unordered_set<const ir::Node*> nodes_;
};

}  // namespace tuff::detail
