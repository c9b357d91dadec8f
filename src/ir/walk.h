// Walking and rebuilding DAGs: topological order, substitution, memoized bottom-up maps.
// All are iterative: graphs may be deeper than the stack. Called by every pass.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// Exclusive use of Node::mark and Node::mark_order for one traversal: a node is seen iff
// mark == epoch(). Short scopes only; no other walk may run on this thread inside one.
class MarkScope {
 public:
  MarkScope();
  ~MarkScope();
  MarkScope(const MarkScope&) = delete;
  uint64_t epoch() const { return epoch_; }
  bool visit(const Node* n) const { return n->mark != epoch_ && (n->mark = epoch_, true); }

 private:
  uint64_t epoch_;
};

// What the casts of it are made of.
inline const Node* through_casts(const Node* n) {
  while (n->op == Op::Cast) n = n->src(0).get();
  return n;
}

// Every node below the roots once, sources before users; order is a function of the graph alone.
std::vector<const Node*> toposort(std::span<const UOp> roots);
std::vector<const Node*> toposort(const UOp& root);
// As toposort, but does not go below nodes for which enter(node) is false (they are included).
std::vector<const Node*> toposort_gated(std::span<const UOp> roots,
                                        const std::function<bool(const Node*)>& enter);

// Replaces nodes by others wherever they occur (keys are not looked into once replaced).
UOp substitute(const UOp& root, const UOpMap<UOp>& map);
std::vector<UOp> substitute(std::span<const UOp> roots, const UOpMap<UOp>& map);

// Rebuilds bottom-up: fn gets the node with already mapped sources and returns what replaces it
// (an empty UOp keeps it). Applied once per distinct node; no fixpoint.
UOp map_bottom_up(const UOp& root, const std::function<UOp(const UOp&)>& fn);

// What a chain of one binary op joins, left to right: a, b, c of (a op b) op c or of a op (b op c).
std::vector<UOp> chain_operands(Op op, const UOp& root);

bool depends_on(const UOp& root, const UOp& leaf);

// x without the Afters around it.
const Node* without_after(const Node* x);

}  // namespace tuff::ir
