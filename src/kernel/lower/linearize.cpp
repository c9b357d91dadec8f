// From a graph of values to a list in execution order: every op at the outermost loop level that
// its sources allow (loop-invariant code leaves loops), loads before arithmetic, loops nested
// properly.
#include <algorithm>
#include <bit>
#include <queue>

#include "ir/walk.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// What is ordered inside one loop body: a single op, or a whole loop nested in it.
struct Item {
  int node = -1;  // position in the topological order
  int loop = LoopTree::kRoot;
  int priority = 0;
  int waits_for = 0;
  std::vector<int> users;  // items
};

int priority_of(const Node* n) {
  switch (n->op) {
    case Op::Const:
    case Op::Param:
    case Op::Variable:
    case Op::Special:
    case Op::Shared:
    case Op::Register:
    case Op::Range: return 0;
    case Op::Index: return 1;
    case Op::Load: return n->src(0)->op == Op::Index ? 1 : 2;
    case Op::Store: return 4;
    default: return n->dtype == DType::I32 || n->dtype == DType::I64 ? 1 : 3;
  }
}

class Linearizer {
 public:
  explicit Linearizer(const UOp& root) : deps_(root), tree_(root, deps_), order_(toposort(root)) {
    level_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); i++) {
      position_[order_[i]] = int(i);
      level_[i] = tree_.deepest(deps_.of(UOp(order_[i])));
    }
    make_items();
    add_edges();
  }

  std::vector<UOp> run() {
    emit_body(LoopTree::kRoot);
    return std::move(out_);
  }

 private:
  // Sinks emit nothing, Ends are emitted by their loop, a serial Range by its opening.
  bool emits(const Node* n) const {
    return n->op != Op::Sink && n->op != Op::End && !(n->op == Op::Range && is_loop(kind_of(n)));
  }
  void make_items() {
    item_of_node_.assign(order_.size(), -1);
    item_of_loop_.assign(64, -1);
    for (size_t i = 0; i < order_.size(); i++) {
      item_of_node_[i] = int(items_.size());
      items_.push_back({int(i), LoopTree::kRoot, priority_of(order_[i]), 0, {}});
      body_[level_[i]].push_back(item_of_node_[i]);
    }
    for (int loop : tree_.loops()) {
      item_of_loop_[loop] = int(items_.size());
      items_.push_back({-1, loop, 5, 0, {}});
      body_[tree_.parent(loop)].push_back(item_of_loop_[loop]);
    }
  }
  // The item that stands for a node inside the body of `level`.
  int item_at(int node, int level) const {
    if (level_[node] == level) return item_of_node_[node];
    return item_of_loop_[tree_.child_towards(level, level_[node])];
  }
  void add_edges() {
    for (size_t user = 0; user < order_.size(); user++) {
      for (const UOp& s : order_[user]->src()) {
        const int source = position_.at(s.get());
        const int level = tree_.nearest_shared(level_[source], level_[user]);
        const int from = item_at(source, level), to = item_at(int(user), level);
        if (from == to) continue;
        items_[from].users.push_back(to);
        items_[to].waits_for++;
      }
    }
  }

  void emit_body(int level) {
    const std::vector<int>& body = body_[level];
    auto later = [&](int a, int b) {
      return std::pair(items_[a].priority, a) > std::pair(items_[b].priority, b);
    };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    for (int i : body) {
      if (items_[i].waits_for == 0) ready.push(i);
    }
    size_t done = 0;
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      done++;
      emit(items_[i]);
      for (int u : items_[i].users) {
        if (--items_[u].waits_for == 0) ready.push(u);
      }
    }
    TUFF_CHECK(done == body.size(), "linearize: {} of {} ops of a loop body wait for each other",
               body.size() - done, body.size());
  }

  void emit(const Item& item) {
    if (item.loop != LoopTree::kRoot) {
      const UOp& r = deps_.ranges()[item.loop];
      out_.push_back(mapped(r));
      emit_body(item.loop);
      out_.push_back(end_of(r));
      return;
    }
    const Node* n = order_[item.node];
    if (emits(n)) out_.push_back(mapped(UOp(n)));
  }

  UOp end_of(const UOp& r) { return make(Op::End, DType::Void, {mapped(r)}); }

  // A node in the list's terms: what waited for an End over stores waits for the loop's end.
  UOp mapped(const UOp& u) {
    if (auto it = mapped_.find(u.get()); it != mapped_.end()) return it->second;
    std::vector<UOp> src;
    for (const UOp& s : u->src()) {
      if (s->op != Op::End) {
        src.push_back(mapped(s));
        continue;
      }
      const auto ranges = s->src().subspan(1);
      const auto loop = std::find_if(ranges.begin(), ranges.end(), [](const UOp& r) {
        return r->op == Op::Range && is_loop(kind_of(r.get()));
      });
      src.push_back(loop == ranges.end() ? mapped(s->src(0)) : end_of(*loop));
    }
    UOp made = with_src(u, src);
    mapped_.emplace(u.get(), made);
    return made;
  }

  RangeDeps deps_;
  LoopTree tree_;
  std::vector<const Node*> order_;
  std::unordered_map<const Node*, int> position_;
  std::vector<int> level_;  // per node: the loop it stands in
  std::vector<Item> items_;
  std::vector<int> item_of_node_, item_of_loop_;
  std::unordered_map<int, std::vector<int>> body_;  // items per loop
  std::unordered_map<const Node*, UOp> mapped_;
  std::vector<UOp> out_;
};

}  // namespace

void pass_linearize(Lowering& l) { l.out.ops = Linearizer(l.ast).run(); }

}  // namespace tuff::kernel
