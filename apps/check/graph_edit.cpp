#include "check/graph_edit.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/spec.h"
#include "ir/walk.h"

namespace tuff::check {

using namespace ir;

namespace {

// Its sources fit its body, and nothing asks for what is between its states.
bool fits(const Node& loop, const GraphCase& c) {
  const auto is_loop = [&](const UOp& s) { return without_reshapes(s.get()) == &loop; };
  if (std::ranges::any_of(c.sinks, is_loop)) return false;
  try {
    check_spec(UOp(&loop), kFloorTensor, "an edit");
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

bool well_formed(const GraphCase& c) {
  std::set<const Node*> targets;
  for (const Node* n : toposort(c.sinks)) {
    if (n->op == Op::Loop && !fits(*n, c)) return false;
    if (n->op != Op::Assign) continue;
    const Node* target = without_reshapes(n->src(0).get());
    if (target->op != Op::Buffer && target->op != Op::Assign) return false;
    if (!targets.insert(target).second) return false;
  }
  return !c.sinks.empty() && std::all_of(c.sinks.begin(), c.sinks.end(), [](const UOp& s) {
    return s->device && (s->src_count > 0 || s->op == Op::Buffer);
  });
}

namespace {

using Sources = std::span<const UOp>;
// What stands for a node, given what stands for its sources; empty: the same op on those.
using Rule = std::function<UOp(const Node&, Sources)>;

std::optional<GraphCase> rebuilt(const GraphCase& c, const Rule& rule) {
  GraphCase out = c;
  std::unordered_map<const Node*, UOp> to;
  try {
    for (const Node* n : toposort(c.sinks)) {
      std::vector<UOp> src;
      for (const UOp& s : n->src()) src.push_back(to.at(s.get()));
      const UOp u = rule(*n, src);
      to.emplace(n, u ? u : make(n->op, n->dtype, src, n->arg));
    }
  } catch (const Error&) {
    return std::nullopt;  // shapes or dtypes do not fit
  }
  for (UOp& s : out.sinks) s = to.at(s.get());
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

  UOp operator()(const Node& n, Sources src) {
    switch (n.op) {
      case Op::Buffer: return n.shape[0] == from_ ? smaller(UOp(&n), to_) : UOp();
      case Op::Iota: return iota(mapped(n.shape[0]), n.dtype);
      case Op::Reshape: return reshaped(n, src[0]);
      case Op::Expand: return expanded(n, src[0]);
      case Op::Shrink: return shrunk(n, src[0]);
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
  UOp reshaped(const Node& n, const UOp& x) {
    Shape shape;
    for (const Dim& d : n.get<Shape>()) shape.push_back(mapped(d));
    const int64_t have = element_count(x->shape), want = element_count(shape);
    if (have == want) return make(Op::Reshape, n.dtype, {x}, shape);
    if (x->op == Op::Buffer && want < have)
      return make(Op::Reshape, n.dtype, {smaller(x, want)}, shape);
    // Axes that were merged or split: the largest takes what is left.
    auto largest = std::max_element(shape.begin(), shape.end(),
                                    [](const Dim& a, const Dim& b) { return a.max() < b.max(); });
    if (largest == shape.end() || !largest->is_const() || largest->value() == 0) return {};
    const int64_t others = want / largest->value();
    if (others > 0 && have % others == 0) *largest = Dim(have / others);
    return make(Op::Reshape, n.dtype, {x}, shape);
  }
  UOp expanded(const Node& n, const UOp& x) {
    Shape shape = n.get<Shape>();
    for (size_t i = 0; i < shape.size(); i++)
      shape[i] = x->shape[i] == 1 ? mapped(shape[i]) : x->shape[i];
    return make(Op::Expand, n.dtype, {x}, shape);
  }
  UOp shrunk(const Node& n, const UOp& x) {
    Pairs pairs = n.get<Pairs>();
    for (size_t i = 0; i < pairs.size(); i++) {
      const Dim& d = x->shape[i];
      if (!pairs[i].a.is_const() || !pairs[i].b.is_const() || !d.is_const()) continue;
      const int64_t size = mapped(pairs[i].b - pairs[i].a).value(), extent = d.value();
      const int64_t begin = std::max<int64_t>(std::min(pairs[i].a.value(), extent - size), 0);
      pairs[i] = {Dim(begin), Dim(std::min(begin + size, extent))};
    }
    return make(Op::Shrink, n.dtype, {x}, pairs);
  }

  int64_t from_, to_;
  Keep keep_;
  const std::vector<GraphInput>& inputs_;
  std::map<std::pair<uint64_t, int64_t>, GraphInput> made_;
};

}  // namespace

std::optional<GraphCase> with_extent(const GraphCase& c, int64_t from, int64_t to, Keep keep) {
  Resizer resizer(c, from, to, keep);
  std::optional<GraphCase> out =
      rebuilt(c, [&](const Node& n, Sources src) { return resizer(n, src); });
  if (!out) return out;
  out->inputs = resizer.inputs_of(c);
  return with_used_inputs(std::move(*out));
}

std::optional<GraphCase> with_constant_extents(const GraphCase& c) {
  const auto number = [&](const Dim& d) {
    return d.is_const() ? d : Dim(evaluate_index(d.uop(), c.variables));
  };
  return rebuilt(c, [&](const Node& n, Sources src) -> UOp {
    Arg arg = n.arg;
    if (auto* shape = std::get_if<Shape>(&arg)) {
      for (Dim& d : *shape) d = number(d);
    } else if (auto* pairs = std::get_if<Pairs>(&arg)) {
      for (DimPair& p : *pairs) p = {number(p.a), number(p.b)};
    } else {
      return {};
    }
    return make(n.op, n.dtype, src, std::move(arg));
  });
}

std::optional<GraphCase> with_padding(const GraphCase& c, const UOp& pad, const Pairs& pairs) {
  const Node* old = pad.get();
  return rebuilt(
      c, [&](const Node& n, Sources src) { return &n == old ? ir::pad(src[0], pairs) : UOp(); });
}

}  // namespace tuff::check
