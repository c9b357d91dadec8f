#include "tensor/history.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "ir/gradient.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::detail {
namespace {

using ir::Node;
using ir::Op;
using ir::UOp;

std::vector<UOp> row_of_history(const UOp&, const UOp& gradient) { return {UOp(), gradient}; }
std::vector<UOp> row_of_lost(const UOp&, const UOp&) {
  fail<InvalidArgument>(
      "backward: a value that this was made of was asked for earlier, and what it had been computed "
      "of, weights or the state of random numbers, is overwritten: ask for gradients before values "
      "and before optimizer.step(), or detach() that value");
}
constexpr ir::GradientRule kHistory{"history", row_of_history}, kLost{"lost history", row_of_lost};

// There are none in processes that run models, or that train by a Jit.
std::atomic<bool> any{false};

UOp with_rule(const UOp& memory, const UOp& source, const ir::GradientRule& rule) {
  any.store(true, std::memory_order_relaxed);
  return ir::make(Op::Detach, memory->dtype, {memory, source}, &rule);
}

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

const Node* Leaves::below(const UOp& u) const {
  if (nodes_.empty()) return nullptr;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> work{u.get()};
  while (!work.empty()) {
    const Node* n = work.back();
    work.pop_back();
    if (!seen.insert(n).second) continue;
    if (nodes_.count(n)) return n;
    for (const UOp& s : n->src().subspan(n->op == Op::Detach)) work.push_back(s.get());
  }
  return nullptr;
}

UOp with_history(const UOp& memory, const UOp& computed) {
  return with_rule(memory, computed, kHistory);
}
UOp with_lost_history(const UOp& memory, const Node* leaf) {
  return with_rule(memory, UOp(leaf), kLost);
}

bool is_history(const ir::Node& n) {
  if (n.op != Op::Detach) return false;
  const auto* rule = std::get_if<const ir::GradientRule*>(&n.arg);
  return rule && (*rule == &kHistory || *rule == &kLost);
}

bool is_lost(const ir::Node& n) {
  const auto* rule = std::get_if<const ir::GradientRule*>(&n.arg);
  return rule && *rule == &kLost;
}

std::vector<UOp> histories_below(std::span<const UOp> graphs) {
  std::vector<UOp> out;
  if (!any.load(std::memory_order_relaxed) || graphs.empty()) return out;
  for (const Node* n : ir::toposort(graphs))
    if (is_history(*n)) out.emplace_back(n);
  return out;
}

std::vector<UOp> without_history(std::vector<UOp> graphs) {
  ir::UOpMap<UOp> memory;
  for (const UOp& n : histories_below(graphs)) memory.emplace(n, n->src(0));
  return memory.empty() ? graphs : ir::substitute(graphs, memory);
}

ir::UOpMap<UOp> lost(std::span<const UOp> histories,
                     const std::function<bool(const Node*)>& overwritten) {
  ir::UOpMap<UOp> out;
  if (histories.empty()) return out;
  const Leaves leaves;
  for (const UOp& n : histories) {
    if (!std::ranges::any_of(ir::toposort(n->src(1)), overwritten)) continue;
    const Node* leaf = leaves.below(n->src(1));
    out.emplace(n, leaf ? with_lost_history(n->src(0), leaf) : n->src(0));
  }
  return out;
}

}  // namespace tuff::detail
