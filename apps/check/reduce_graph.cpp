#include "check/reduce_graph.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "check/graph_edit.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

namespace {

// What is made smaller: nodes first, then symbolic shapes, elements, padding, values that are not
// 0.
using Size = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

Size size_of(const GraphCase& c) {
  int64_t symbolic = 0, elements = 0, padding = 0, values = 0;
  for (const Node* n : toposort(c.sinks)) {
    elements += element_count(n->shape);
    for (const Dim& d : n->shape) symbolic += !d.is_const();
    if (n->op != Op::Pad) continue;
    for (const DimPair& p : n->get<Pairs>()) padding += p.a.max() + p.b.max();
  }
  for (const GraphInput& in : c.inputs) {
    const size_t size = size_bytes(in.storage->dtype);
    for (size_t at = 0; at < in.bytes.size(); at += size)
      values += load_scalar(in.storage->dtype, in.bytes.data() + at).as_bool();
  }
  return {node_count(c) + int64_t(c.sinks.size()), symbolic, elements, padding, values};
}

class Reducer {
 public:
  Reducer(const GraphCase& c, const Fails& fails, int max_tries)
      : best_(with_used_inputs(c)), fails_(fails), max_tries_(max_tries) {}

  Reduction run() {
    bool progress = true;
    while (progress && tries_left()) {
      progress = drop_sinks();
      progress |= raise_sinks();
      progress |= attempt(with_constant_extents(best_));
      progress |= replace_nodes();
      progress |= shrink_extents();
      progress |= shrink_padding();
      progress |= plainer_values();
    }
    return {best_, tried_, tries_left()};
  }

 private:
  bool tries_left() const { return tried_ < max_tries_; }

  // Takes the candidate over if it is smaller and fails.
  bool attempt(const std::optional<GraphCase>& candidate) {
    if (!candidate || !tries_left()) return false;
    if (!well_formed(*candidate) || !(size_of(*candidate) < size_of(best_))) return false;
    tried_++;
    if (!fails_(*candidate)) return false;
    best_ = *candidate;
    return true;
  }

  bool drop_sinks() {
    bool progress = false;
    for (size_t i = best_.sinks.size(); i-- > 0 && best_.sinks.size() > 1;) {
      GraphCase c = best_;
      c.sinks.erase(c.sinks.begin() + std::ptrdiff_t(i));
      progress |= attempt(with_used_inputs(std::move(c)));
    }
    return progress;
  }

  // What a sink is made of in its place.
  bool raise_sinks() {
    bool progress = false;
    for (size_t i = 0; i < best_.sinks.size(); i++) {
      const UOp sink = best_.sinks[i];
      for (const UOp& s : sink->src()) {
        GraphCase c = best_;
        c.sinks[i] = s;
        if (!attempt(with_used_inputs(std::move(c)))) continue;
        progress = true;
        i--;  // and what that is made of
        break;
      }
    }
    return progress;
  }

  // From the sinks downwards: what is cut high takes most with it.
  bool replace_nodes() {
    bool progress = false, again = true;
    while (again && tries_left()) {
      again = false;
      std::vector<const Node*> order = toposort(best_.sinks);
      for (auto it = order.rbegin(); it != order.rend() && !again; ++it)
        again = replace_node(UOp(*it));
      progress |= again;
    }
    return progress;
  }

  bool replace_node(const UOp& u) {
    if (u->src_count == 0 && u->op != Op::Iota && u->op != Op::Buffer) return false;
    for (const UOp& s : u->src()) {
      if (attempt(with_replaced(best_, u, s))) return true;
    }
    for (const UOp& s : u->src()) {
      if (s->dtype == u->dtype || s->dtype == DType::Index || s->dtype == DType::Void) continue;
      if (s->shape == u->shape && u->op != Op::Cast &&
          attempt(with_replaced(best_, u, cast(s, u->dtype))))
        return true;
    }
    if (u->dtype == DType::Index || u->dtype == DType::Void) return false;
    const Bindings bindings = bindings_of(best_);
    Expectation values(bindings);
    if (without_reshapes(u.get())->op != Op::Buffer &&
        attempt(with_stored(best_, u, values, u->device ? *u->device : *best_.sinks[0]->device)))
      return true;
    const UOp zero = constant(Scalar::of_int(u->dtype, 0));
    return attempt(with_replaced(best_, u, u->shape.empty() ? zero : filled(zero, u->shape)));
  }
  static UOp filled(const UOp& scalar, const Shape& shape) {
    return expand(reshape(scalar, Shape(shape.size(), Dim(1))), shape);
  }

  bool shrink_extents() {
    bool progress = false;
    std::set<int64_t, std::greater<>> extents;
    for (const Node* n : toposort(best_.sinks)) {
      for (const Dim& d : n->shape) {
        if (d.is_const() && d.value() > 1) extents.insert(d.value());
      }
    }
    for (int64_t e : extents) {
      for (int64_t to : {int64_t(1), int64_t(2), e / 2, e - 1}) {
        if (to < 1 || to >= e) continue;
        if (!attempt(with_extent(best_, e, to, Keep::First)) &&
            !attempt(with_extent(best_, e, to, Keep::Nonzero)))
          continue;
        progress = true;
        break;
      }
    }
    return progress;
  }

  bool shrink_padding() {
    bool progress = false;
    std::vector<UOp> pads;
    for (const Node* n : toposort(best_.sinks)) {
      if (n->op == Op::Pad) pads.push_back(UOp(n));
    }
    for (const UOp& p : pads) {
      const Pairs& pairs = p->get<Pairs>();
      for (size_t i = 0; i < 2 * pairs.size(); i++) {
        for (int64_t to : {0, 1}) {
          Pairs less = pairs;
          Dim& amount = i % 2 ? less[i / 2].b : less[i / 2].a;
          if (!amount.is_const() || amount.value() <= to) continue;
          amount = Dim(to);
          if (attempt(with_padding(best_, p, less))) return true;
        }
      }
    }
    return progress;
  }

  bool plainer_values() {
    bool progress = false;
    for (size_t i = 0; i < best_.inputs.size(); i++) {
      GraphCase c = best_;
      std::fill(c.inputs[i].bytes.begin(), c.inputs[i].bytes.end(), std::byte{0});
      if (attempt(c)) {
        progress = true;
        continue;
      }
      progress |= zero_single_elements(i);
    }
    return progress;
  }
  bool zero_single_elements(size_t input) {
    bool progress = false;
    const size_t size = size_bytes(best_.inputs[input].storage->dtype);
    const size_t count = best_.inputs[input].bytes.size() / size;
    for (size_t k = 0; k < std::min<size_t>(count, 64); k++) {
      GraphCase c = best_;
      const auto begin = c.inputs[input].bytes.begin() + std::ptrdiff_t(k * size);
      std::fill(begin, begin + std::ptrdiff_t(size), std::byte{0});
      progress |= attempt(c);
    }
    return progress;
  }

  GraphCase best_;
  const Fails& fails_;
  int tried_ = 0;
  const int max_tries_;
};

}  // namespace

Reduction reduce_graph(const GraphCase& c, const Fails& fails, int max_tries) {
  return Reducer(c, fails, max_tries).run();
}

}  // namespace tuff::check
