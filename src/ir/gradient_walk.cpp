// The walk from a root back to the targets. Two ops say how it goes on: what a Checkpoint stands
// around is computed again before gradients are made of it, and a Rule has gradients of its own.
#include <algorithm>
#include <unordered_map>

#include "ir/gradient.h"
#include "ir/gradient_rows.h"
#include "ir/history.h"
#include "ir/rule.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

// The sources that gradients may flow to.
std::span<const UOp> led_to(const Node& n) {
  switch (n.op) {
    case Op::Detach: return n.src().subspan(1);
    case Op::Checkpoint:
    case Op::Again: return n.src().first(1);
    case Op::Ruled: return n.src().last(1);
    case Op::Rule: return arguments_of(n);
    default: return n.src();
  }
}

class GradientWalk {
 public:
  GradientWalk(const UOp& root, std::span<const UOp> targets) : order_(toposort(root)) {
    for (size_t i = 0; i < order_.size(); i++) {
      const Node* n = order_[i];
      position_[n] = i;
      const auto is_n = [n](const UOp& t) { return t.get() == n; };
      const bool reached = std::ranges::any_of(targets, is_n) || leads_on(*n);
      flows_.push_back(reached && (is_float(n->dtype) || n->op == Op::Rule));
    }
    grads_.resize(order_.size());
  }

  void run(const UOp& seed) {
    grads_.back() = gradient_like(seed, UOp(order_.back()));
    for (size_t i = order_.size(); i-- > 0;) {
      const Node& n = *order_[i];
      if (!flows_[i] || n.src_count == 0 || !leads_on(n)) continue;
      if (n.op == Op::Rule) {
        pass_by_rule(n);
      } else if (grads_[i]) {
        pass_on(n, grads_[i]);
      }
    }
  }

  UOp gradient_of(const UOp& target) const {
    const auto it = position_.find(target.get());
    return it == position_.end() ? UOp() : grads_[it->second];
  }

 private:
  bool leads_on(const Node& n) const {
    return std::ranges::any_of(led_to(n),
                               [&](const UOp& s) { return flows_[position_.at(s.get())]; });
  }

  // The node whose value gradients are made of.
  UOp computed(const Node& n) const {
    UOp u(&n);
    for (auto it = again_.find(u); it != again_.end(); it = again_.find(u)) u = it->second;
    return u;
  }

  void add_to(const UOp& source, const UOp& g) {
    const size_t p = position_.at(source.get());
    if (!g || !flows_[p]) return;
    grads_[p] = grads_[p] ? alu(Op::Add, {grads_[p], g}) : g;
  }

  void pass_on(const Node& n, const UOp& g) {
    const UOp u = computed(n);
    if (n.op == Op::Ruled) {
      of_values_[n.src(1).get()].emplace_back(n.get<int64_t>(), g);
      return;
    }
    if (n.op == Op::Checkpoint) compute_again(u, g);
    const std::vector<UOp> of_src = gradients_of_sources(u, g);
    for (size_t s = 0; s < of_src.size(); s++) add_to(n.src(s), of_src[s]);
  }

  void pass_by_rule(const Node& n) {
    const auto given = of_values_.find(&n);
    if (given == of_values_.end()) return;
    const UOp rule = computed(n);
    std::vector<UOp> of_values(size_t(n.get<IntVec>()[0]));
    for (const auto& [value, g] : given->second) of_values[size_t(value)] = g;
    const std::vector<UOp> of_arguments = gradients_by_rule(rule, of_values);
    const auto arguments = arguments_of(n);
    for (size_t k = 0; k < arguments.size(); k++) add_to(arguments[k], of_arguments[k]);
  }

  // All that is between the value and memory or the arguments. Gradients of one function are made
  // of what is computed again once, however many values it has.
  void compute_again(const UOp& checkpoint, const UOp& g) {
    const UOp& arguments = checkpoint->src(1);
    const UOp& earlier = earlier_.try_emplace(arguments, g).first->second;
    std::unordered_map<const Node*, bool> is_argument;
    for (const UOp& x : arguments->src()) is_argument[x.get()] = true;
    const auto enter = [&](const Node* n) {
      return !is_argument.contains(n) && n->op != Op::Assign && n->op != Op::Copy;
    };
    UOpMap<UOp> read;
    std::vector<UOp> src;
    for (const Node* n : toposort_gated(checkpoint->src(), enter)) {
      const UOp u(n);
      const bool is_read = n->op == Op::Buffer || is_argument.contains(n);
      if (is_read && n->device) read[u] = make(Op::Again, n->dtype, {u, earlier});
      if (is_read || !enter(n) || n == arguments.get()) continue;
      src.clear();
      for (const UOp& s : n->src()) {
        const auto it = read.find(s);
        src.push_back(it == read.end() ? s : it->second);
      }
      const UOp other = with_src(u, src);
      if (!(other == u)) read[u] = again_[u] = other;
    }
  }

  std::vector<const Node*> order_;
  std::unordered_map<const Node*, size_t> position_;
  std::vector<bool> flows_;  // on a path from the root to a target
  std::vector<UOp> grads_;
  UOpMap<UOp> again_;  // a node inside of a Checkpoint and the one that computes the same later
  UOpMap<UOp> earlier_;  // by a Checkpoint's arguments, what has to be there first
  std::unordered_map<const Node*, std::vector<std::pair<int64_t, UOp>>> of_values_;  // by Rule
};

}  // namespace

std::vector<UOp> gradients(const UOp& root, const UOp& seed, std::span<const UOp> targets) {
  const OpenHistories histories(root);
  const UOp open_root = histories.open(root);
  std::vector<UOp> opened;
  for (const UOp& t : targets) opened.push_back(histories.open(t));
  GradientWalk walk(open_root, opened);
  walk.run(seed);
  std::vector<UOp> out;
  for (const UOp& t : opened) {
    const UOp g = walk.gradient_of(t);
    out.push_back(g ? histories.close(g) : g);
  }
  return out;
}

}  // namespace tuff::ir
