// Values that were asked for before gradients are. Such a value is a Detach of its memory, with
// what computed it as a History beside it, into which no walk comes: a chain of them costs each
// realization what its own step does. Called by the walk of gradients and by tensor's realize.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/walk.h"

namespace tuff::ir {

UOp with_history(const UOp& memory, const UOp& computed, const UOp& leaf);
// The same where memory that it was computed of is overwritten: a gradient by the leaf is an error.
UOp with_lost_history(const UOp& memory, const UOp& leaf);
const History* history_of(const Node& n);  // null: n is no such node

// Such nodes of graphs, without those inside of histories.
std::vector<UOp> values_with_history(std::span<const UOp> graphs);
// Whether there is such a node below u, also in histories; asked of each until one is.
bool any_below(const UOp& u, const std::function<bool(const Node*)>& wanted);

// A graph with histories as sources, of rules that pass gradients on to them.
class OpenHistories {
 public:
  explicit OpenHistories(const UOp& root);
  UOp open(const UOp& u) const { return open_.empty() ? u : substitute(u, open_); }
  UOp close(const UOp& u) const { return closed_.empty() ? u : substitute(u, closed_); }

 private:
  UOpMap<UOp> open_, closed_;
};

}  // namespace tuff::ir
