#include "tensor/leaves.h"

#include <vector>

#include "tensor/impl.h"

namespace tuff::detail {
namespace {

using ir::Node;
using ir::Op;
using ir::UOp;

// Also while what is assigned to it waits.
const Node* memory_of_leaf(const UOp& u) {
  const Node* n = u.get();
  while (n->op == Op::Reshape || n->op == Op::Assign) n = n->src(0).get();
  return n;
}

}  // namespace

Leaves::Leaves() {
  for_each_live([this](TensorImpl& t) {
    if (t.requires_grad) nodes_.insert(memory_of_leaf(t.uop));
  });
}

UOp Leaves::below(const UOp& u) const {
  if (nodes_.empty()) return {};
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> work{u.get()};
  while (!work.empty()) {
    const Node* n = work.back();
    work.pop_back();
    if (!seen.insert(n).second) continue;
    if (nodes_.count(n)) return UOp(n);
    if (const ir::History* h = ir::history_of(*n)) return h->leaf;
    for (const UOp& s : n->src().subspan(n->op == Op::Detach)) work.push_back(s.get());
  }
  return {};
}

}  // namespace tuff::detail
