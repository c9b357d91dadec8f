#include "ir/walk.h"

#include <mutex>

namespace tuff::ir {
namespace {

std::mutex& mark_mutex() {
  static std::mutex m;
  return m;
}
uint64_t last_epoch = 0;  // guarded by mark_mutex

struct Frame {
  const Node* node;
  uint32_t next;
};

// Depth-first, sources in order; `enter` decides whether a node's sources are visited.
template <class Enter>
std::vector<const Node*> depth_first(std::span<const UOp> roots, const MarkScope& scope,
                                     Enter enter) {
  std::vector<const Node*> order;
  std::vector<Frame> stack;
  auto push = [&](const Node* n) {
    if (scope.visit(n)) stack.push_back({n, enter(n) ? 0 : n->src_count});
  };
  for (const UOp& root : roots) {
    push(root.get());
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.node->src_count) {
        push(f.node->src_begin[f.next++].get());
      } else {
        f.node->mark_order = uint32_t(order.size());
        order.push_back(f.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

// The order with each node's sources as positions in it, so that the marks can be given up before
// callbacks run.
struct IndexedOrder {
  std::vector<const Node*> nodes;
  std::vector<uint32_t> src_positions;
  std::vector<uint32_t> root_positions;
};

template <class Enter>
IndexedOrder indexed_order(std::span<const UOp> roots, Enter enter) {
  MarkScope scope;
  IndexedOrder o;
  o.nodes = depth_first(roots, scope, enter);
  for (const Node* n : o.nodes) {
    if (!enter(n)) continue;
    for (const UOp& s : n->src()) o.src_positions.push_back(s->mark_order);
  }
  for (const UOp& r : roots) o.root_positions.push_back(r->mark_order);
  return o;
}

}  // namespace

MarkScope::MarkScope() {
  mark_mutex().lock();
  epoch_ = ++last_epoch;
}
MarkScope::~MarkScope() { mark_mutex().unlock(); }

std::vector<const Node*> toposort(std::span<const UOp> roots) {
  MarkScope scope;
  return depth_first(roots, scope, [](const Node*) { return true; });
}
std::vector<const Node*> toposort(const UOp& root) {
  return toposort(std::span<const UOp>(&root, 1));
}

std::vector<const Node*> toposort_gated(std::span<const UOp> roots,
                                        const std::function<bool(const Node*)>& enter) {
  MarkScope scope;
  return depth_first(roots, scope, enter);
}

std::vector<UOp> substitute(std::span<const UOp> roots, const UOpMap<UOp>& map) {
  auto is_key = [&](const Node* n) {
    for (auto it = map.begin(); map.size() <= 2 && it != map.end(); ++it) {
      if (it->first.get() == n) return true;
    }
    return map.size() > 2 && map.find(UOp(n)) != map.end();
  };
  const IndexedOrder order = indexed_order(roots, [&](const Node* n) { return !is_key(n); });
  std::vector<UOp> mapped;
  mapped.reserve(order.nodes.size());
  std::vector<UOp> src;
  size_t next = 0;
  for (const Node* n : order.nodes) {
    const UOp u(n);
    if (auto it = map.find(u); it != map.end()) {
      mapped.push_back(it->second);
      continue;
    }
    src.clear();
    for (uint32_t i = 0; i < n->src_count; i++) src.push_back(mapped[order.src_positions[next++]]);
    mapped.push_back(with_src(u, src));
  }
  std::vector<UOp> out;
  for (uint32_t p : order.root_positions) out.push_back(mapped[p]);
  return out;
}
UOp substitute(const UOp& root, const UOpMap<UOp>& map) {
  return substitute(std::span<const UOp>(&root, 1), map)[0];
}

UOp map_bottom_up(const UOp& root, const std::function<UOp(const UOp&)>& fn) {
  const IndexedOrder order =
      indexed_order(std::span<const UOp>(&root, 1), [](const Node*) { return true; });
  std::vector<UOp> mapped;
  mapped.reserve(order.nodes.size());
  std::vector<UOp> src;
  size_t next = 0;
  for (const Node* n : order.nodes) {
    src.clear();
    for (uint32_t i = 0; i < n->src_count; i++) src.push_back(mapped[order.src_positions[next++]]);
    const UOp rebuilt = with_src(UOp(n), src);
    UOp result = fn(rebuilt);
    mapped.push_back(result ? std::move(result) : rebuilt);
  }
  return mapped.back();
}

std::vector<UOp> chain_operands(Op op, const UOp& root) {
  std::vector<UOp> out, work{root};
  while (!work.empty()) {
    const UOp u = work.back();
    work.pop_back();
    if (u->op != op) {
      out.push_back(u);
      continue;
    }
    for (size_t i = u->src_count; i-- > 0;) work.push_back(u->src(i));
  }
  return out;
}

bool depends_on(const UOp& root, const UOp& leaf) {
  MarkScope scope;
  std::vector<const Node*> stack{root.get()};
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (n == leaf.get()) return true;
    if (!scope.visit(n)) continue;
    for (const UOp& s : n->src()) stack.push_back(s.get());
  }
  return false;
}

const Node* without_after(const Node* x) {
  while (x->op == Op::After) x = x->src(0).get();
  return x;
}

}  // namespace tuff::ir
