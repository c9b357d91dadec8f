#include "check/graph_edit.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/walk.h"

namespace tuff::check {

using namespace graph;

bool well_formed(const GraphCase& c) {
  std::set<const Node*> targets;
  for (const Node* n : toposort(c.sinks)) {
    if (n->op != Op::Assign) continue;
    const Node* target = n->src(0).get();
    while (target->op == Op::Reshape) target = target->src(0).get();
    if (target->op != Op::Buffer && target->op != Op::Assign) return false;
    if (!targets.insert(target).second) return false;
  }
  return !c.sinks.empty() && std::all_of(c.sinks.begin(), c.sinks.end(), [](const UOp& s) {
    return s->device && (s->src_count > 0 || s->op == Op::Buffer);
  });
}

namespace {

// The case with every node rebuilt by `rule` (which gets a node with new sources; empty keeps it).
std::optional<GraphCase> rebuilt(const GraphCase& c, const std::function<UOp(const UOp&)>& rule) {
  GraphCase out = c;
  try {
    const UOp all = map_bottom_up(sink(c.sinks), rule);
    out.sinks.assign(all->src().begin(), all->src().end());
  } catch (const Error&) {
    return std::nullopt;  // shapes or dtypes do not fit
  }
  return out;
}

}  // namespace

std::optional<GraphCase> with_replaced(const GraphCase& c, const UOp& from, const UOp& to,
                                       std::vector<GraphInput> inputs) {
  if (from == to || to->dtype != from->dtype || !(to->shape == from->shape)) return std::nullopt;
  GraphCase out = c;
  try {
    out.sinks = substitute(c.sinks, {{from, to}});
  } catch (const Error&) {
    return std::nullopt;
  }
  out.inputs.insert(out.inputs.end(), inputs.begin(), inputs.end());
  return with_used_inputs(std::move(out));
}

std::optional<GraphCase> with_stored(const GraphCase& c, const UOp& from, Expectation& values,
                                     const std::string& device) {
  const bool constant = std::all_of(from->shape.begin(), from->shape.end(),
                                    [](const Dim& d) { return d.is_const(); });
  if (!constant || from->dtype == DType::Index || from->dtype == DType::Void) return std::nullopt;
  GraphInput in{make_ref<Storage>(device, from->dtype, element_count(from->shape)),
                values.value(from).bytes};
  const UOp memory = reshape(buffer(in.storage), from->shape);
  return with_replaced(c, from, memory, {in});
}

namespace {

// Rebuilding with other extents. Shapes follow from their sources; only leaves, Expands, Shrinks
// and Reshapes say extents of their own.
class Resizer {
 public:
  Resizer(const GraphCase& c, int64_t from, int64_t to, Keep keep)
      : from_(from), to_(to), keep_(keep), inputs_(c.inputs) {}

  UOp operator()(const UOp& u) {
    switch (u->op) {
      case Op::Buffer: return resized_buffer(u);
      case Op::Iota: return iota(mapped(u->shape[0]), u->dtype);
      case Op::Reshape: return reshaped(u);
      case Op::Expand: return expanded(u);
      case Op::Shrink: return shrunk(u);
      default: return {};
    }
  }
  std::vector<GraphInput> inputs_of(const GraphCase& c) const {
    std::vector<GraphInput> out = c.inputs;
    for (const auto& [old, in] : made_) out.push_back(in);
    return out;
  }

 private:
  Dim mapped(const Dim& d) const { return d.is_const() && d.value() == from_ ? Dim(to_) : d; }

  // A Buffer of one axis; a Reshape above it says which shape it really has.
  UOp resized_buffer(const UOp& u) { return u->shape[0] == from_ ? smaller(u, to_) : u; }
  UOp smaller(const UOp& u, int64_t count) {
    const Ref<Storage>& s = u->get<Ref<Storage>>();
    if (count == s->count) return u;
    const auto [it, fresh] = made_.try_emplace({s->id, count});
    if (fresh) {
      it->second.storage = make_ref<Storage>(s->device, s->dtype, count);
      for (const GraphInput& in : inputs_) {
        if (in.storage->id == s->id) it->second.bytes = in.bytes;
      }
      if (keep_ == Keep::Nonzero) bring_nonzero_forward(it->second);
      it->second.bytes.resize(size_t(count) * size_bytes(s->dtype));
    }
    return buffer(it->second.storage);
  }
  static void bring_nonzero_forward(GraphInput& in) {
    const size_t size = size_bytes(in.storage->dtype);
    std::vector<std::byte> zeros, out;
    for (size_t at = 0; at < in.bytes.size(); at += size) {
      const std::byte* p = in.bytes.data() + at;
      std::vector<std::byte>& to = load_scalar(in.storage->dtype, p).as_bool() ? out : zeros;
      to.insert(to.end(), p, p + size);
    }
    out.insert(out.end(), zeros.begin(), zeros.end());
    in.bytes = std::move(out);
  }
  UOp reshaped(const UOp& u) {
    Shape shape;
    for (const Dim& d : u->get<Shape>()) shape.push_back(mapped(d));
    const UOp& x = u->src(0);
    const int64_t have = element_count(x->shape), want = element_count(shape);
    if (have == want) return make(Op::Reshape, u->dtype, {x}, shape);
    if (x->op == Op::Buffer && want < have)
      return make(Op::Reshape, u->dtype, {smaller(x, want)}, shape);
    // Axes that were merged or split: the largest takes what is left.
    auto largest = std::max_element(shape.begin(), shape.end(),
                                    [](const Dim& a, const Dim& b) { return a.max() < b.max(); });
    if (largest == shape.end() || !largest->is_const() || largest->value() == 0) return {};
    const int64_t others = want / largest->value();
    if (others > 0 && have % others == 0) *largest = Dim(have / others);
    return make(Op::Reshape, u->dtype, {x}, shape);
  }
  UOp expanded(const UOp& u) {
    Shape shape = u->get<Shape>();
    const Shape& x = u->src(0)->shape;
    for (size_t i = 0; i < shape.size(); i++) shape[i] = x[i] == 1 ? mapped(shape[i]) : x[i];
    return make(Op::Expand, u->dtype, {u->src(0)}, shape);
  }
  UOp shrunk(const UOp& u) {
    Pairs pairs = u->get<Pairs>();
    const Shape& x = u->src(0)->shape;
    for (size_t i = 0; i < pairs.size(); i++) {
      if (!pairs[i].a.is_const() || !pairs[i].b.is_const() || !x[i].is_const()) continue;
      const int64_t size = mapped(pairs[i].b - pairs[i].a).value(), extent = x[i].value();
      const int64_t begin = std::max<int64_t>(std::min(pairs[i].a.value(), extent - size), 0);
      pairs[i] = {Dim(begin), Dim(std::min(begin + size, extent))};
    }
    return make(Op::Shrink, u->dtype, {u->src(0)}, pairs);
  }

  int64_t from_, to_;
  Keep keep_;
  const std::vector<GraphInput>& inputs_;
  std::map<std::pair<uint64_t, int64_t>, GraphInput> made_;
};

}  // namespace

std::optional<GraphCase> with_extent(const GraphCase& c, int64_t from, int64_t to, Keep keep) {
  Resizer resizer(c, from, to, keep);
  std::optional<GraphCase> out = rebuilt(c, [&](const UOp& u) { return resizer(u); });
  if (!out) return out;
  out->inputs = resizer.inputs_of(c);
  return with_used_inputs(std::move(*out));
}

std::optional<GraphCase> with_constant_extents(const GraphCase& c) {
  const auto number = [&](const Dim& d) {
    return d.is_const() ? d : Dim(evaluate_index(d.uop(), c.variables));
  };
  return rebuilt(c, [&](const UOp& u) -> UOp {
    Arg arg = u->arg;
    if (auto* shape = std::get_if<Shape>(&arg)) {
      for (Dim& d : *shape) d = number(d);
    } else if (auto* pairs = std::get_if<Pairs>(&arg)) {
      for (DimPair& p : *pairs) p = {number(p.a), number(p.b)};
    } else {
      return {};
    }
    return make(u->op, u->dtype, u->src(), std::move(arg));
  });
}

std::optional<GraphCase> with_padding(const GraphCase& c, const UOp& pad, const Pairs& pairs) {
  const Node* old = pad.get();
  return rebuilt(
      c, [&](const UOp& u) { return u.get() == old ? graph::pad(u->src(0), pairs) : UOp(); });
}

}  // namespace tuff::check
