#include "ir/history.h"

#include <unordered_set>

#include "base/check.h"
#include "ir/gradient.h"

namespace tuff::ir {
namespace {

std::vector<UOp> row_of_history(const UOp&, const UOp& gradient) { return {UOp(), gradient}; }
std::vector<UOp> row_of_lost(const UOp&, const UOp&) {
  fail<InvalidArgument>(
      "backward: a value that this was made of was asked for earlier, and what it had been computed "
      "of, such as weights, is overwritten: ask for gradients before values and before "
      "optimizer.step(), or detach() that value");
}
constexpr GradientRule kHistory{"history", row_of_history}, kLost{"lost history", row_of_lost};

UOp value(const UOp& memory, UOp computed, const UOp& leaf) {
  return make(Op::Detach, memory->dtype, {memory},
              Ref<History>(make_ref<History>(std::move(computed), leaf)));
}

}  // namespace

UOp with_history(const UOp& memory, const UOp& computed, const UOp& leaf) {
  return value(memory, computed, leaf);
}
UOp with_lost_history(const UOp& memory, const UOp& leaf) { return value(memory, {}, leaf); }

const History* history_of(const Node& n) {
  const auto* history = std::get_if<Ref<History>>(&n.arg);
  return history ? history->get() : nullptr;
}

std::vector<UOp> values_with_history(std::span<const UOp> graphs) {
  std::vector<UOp> out;
  if (graphs.empty()) return out;
  for (const Node* n : toposort(graphs))
    if (history_of(*n)) out.emplace_back(n);
  return out;
}

bool any_below(const UOp& u, const std::function<bool(const Node*)>& wanted) {
  std::unordered_set<const Node*> seen;
  std::vector<UOp> work{u};
  while (!work.empty()) {
    const UOp graph = std::move(work.back());
    work.pop_back();
    for (const Node* n : toposort(graph)) {
      if (wanted(n)) return true;
      const History* h = history_of(*n);
      if (h && seen.insert(n).second) work.push_back(h->computed ? h->computed : h->leaf);
    }
  }
  return false;
}

// From what was computed first on, without recursion.
OpenHistories::OpenHistories(const UOp& root) {
  std::vector<UOp> work = values_with_history(std::span(&root, 1));
  std::unordered_set<const Node*> entered;
  while (!work.empty()) {
    const UOp n = work.back();
    const History& h = *history_of(*n);
    if (h.computed && entered.insert(n.get()).second) {
      for (UOp& inner : values_with_history(std::span(&h.computed, 1)))
        if (!open_.count(inner)) work.push_back(std::move(inner));
      continue;
    }
    work.pop_back();
    if (open_.count(n)) continue;
    const UOp source = h.computed ? open(h.computed) : h.leaf;
    const UOp opened =
        make(Op::Detach, n->dtype, {n->src(0), source}, h.computed ? &kHistory : &kLost);
    open_.emplace(n, opened);
    closed_.emplace(opened, n);
  }
}

}  // namespace tuff::ir
