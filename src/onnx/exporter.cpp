#include "onnx/exporter.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/check.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "onnx/node.h"
#include "tensor/impl.h"

namespace tuff::onnx {

using io::onnx::Attribute;
using io::onnx::ElementType;
using ir::Dim;
using ir::IntVec;
using ir::Op;
using ir::Shape;
using ir::UOp;

Attribute attribute(std::string name, int64_t value) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::Int, a.ints = {value};
  return a;
}
Attribute attribute(std::string name, std::vector<int64_t> values) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::Ints, a.ints = std::move(values);
  return a;
}
Attribute attribute(std::string name, std::string value) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::String, a.strings = {std::move(value)};
  return a;
}

Attribute attribute(std::string name, float value) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::Float, a.floats = {value};
  return a;
}

ElementType element_type(DType t) {
  const ElementType found = element_of(t == DType::Index ? DType::I64 : t);
  if (found != ElementType::Undefined) return found;
  fail<Unsupported>("ONNX has no element type {}: cast() to one that it has", name(t));
}

void refuse(const ir::Node& n, std::string_view why) {
  fail<Unsupported>("'{}' of {} {} cannot be exported: {}", ir::name(n.op), tuff::name(n.dtype),
                    ir::to_string(n.shape), why);
}

// ---- shapes

std::optional<std::vector<int>> unit_map(const Shape& from, const Shape& to) {
  std::vector<int> out(to.size(), -1);
  size_t f = 0;
  const auto skip = [&] {
    while (f < from.size() && from[f] == 1) f++;
  };
  for (size_t t = 0; t < to.size(); t++) {
    if (to[t] == 1) continue;
    skip();
    if (f == from.size() || !(from[f] == to[t])) return std::nullopt;
    out[t] = int(f++);
  }
  skip();
  if (f != from.size()) return std::nullopt;
  return out;
}

namespace {

Shape mapped(const Shape& shape, const std::vector<int>& map) {
  Shape out;
  for (const int axis : map) out.push_back(axis < 0 ? Dim(1) : shape[size_t(axis)]);
  return out;
}

// With axes of 1 in front, as operators broadcast.
bool equal_behind_ones(const Shape& a, const Shape& b) {
  const auto rest = [](const Shape& s) {
    return std::span<const Dim>(s).subspan(
        size_t(std::ranges::find_if(s, [](const Dim& d) { return !(d == 1); }) - s.begin()));
  };
  return std::ranges::equal(rest(a), rest(b));
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t more = longer.size() - other.size();
  for (size_t i = 0; i < other.size(); i++)
    if (out[more + i] == 1) out[more + i] = other[i];
  return out;
}

std::vector<int64_t> numbers(const Shape& s) {
  std::vector<int64_t> out;
  for (const Dim& d : s) out.push_back(d.value());
  return out;
}

}  // namespace

UOp narrow(const UOp& u) {
  switch (u->op) {
    case Op::Expand: return narrow(u->src(0));
    case Op::Permute: return ir::permute(narrow(u->src(0)), u->get<IntVec>());
    case Op::Reshape: {
      const auto map = unit_map(u->src(0)->shape, u->shape);
      return map ? ir::reshape(narrow(u->src(0)), mapped(narrow(u->src(0))->shape, *map)) : u;
    }
    default: return u;
  }
}

const Scalar* constant_of(const ir::Node* n) {
  while (ir::is_movement(n->op) && n->op != Op::Pad) n = n->src(0).get();
  return n->is_const() ? &n->get<Scalar>() : nullptr;
}

namespace {

// Whether a node is the value of its first source.
bool is_its_source(const ir::Node& n) {
  switch (n.op) {
    case Op::Detach: return n.src_count == 1;
    case Op::Mark:
    case Op::Checkpoint:
    case Op::Again:
    case Op::Ruled:
    case Op::Contiguous:
    case Op::Copy: return true;
    default: return false;
  }
}

}  // namespace

UOp Exporter::plain(const UOp& u) {
  const auto is_new = [&](const ir::Node* n) { return !plain_.contains(UOp(n)); };
  for (const ir::Node* n : ir::toposort_gated(std::span(&u, 1), is_new)) {
    const UOp node(n);
    if (plain_.contains(node)) continue;
    std::vector<UOp> src;
    for (const UOp& s : n->src()) src.push_back(plain_.at(s));
    UOp found = is_its_source(*n) ? src[0] : ir::with_src(node, src);
    plain_.emplace(found, found);
    plain_.emplace(node, std::move(found));
  }
  return plain_.at(u);
}

bool Exporter::is(const Tensor& again, const UOp& u) { return plain(detail::uop(again)) == u; }

// ---- values

void Exporter::reserve(const std::string& name) {
  if (name.empty()) fail<InvalidArgument>("an input or output has no name: '' is given");
  if (!names_.insert(name).second)
    fail<InvalidArgument>("two inputs or outputs are named '{}': give each a name of its own",
                          name);
}

void Exporter::add_input(const UOp& place, const std::string& name) {
  io::onnx::ValueInfo info;
  info.name = name;
  info.type.kind = io::onnx::Type::Kind::Tensor;
  info.type.element = element_type(place->dtype);
  info.type.shape.emplace();
  for (size_t i = 0; i < place->shape.size(); i++) {
    const Dim& d = place->shape[i];
    if (d.is_const()) {
      info.type.shape->push_back({d.value(), ""});
      continue;
    }
    const std::string extent = ir::expression(d.uop());
    info.type.shape->push_back({std::nullopt, extent});
    if (d.uop()->op == Op::Variable) variables_.emplace(extent, std::pair(name, int64_t(i)));
  }
  graph_.inputs.push_back(std::move(info));
  values_.emplace(place, Exported{name, place->shape, place->shape});
  plain_.emplace(place, place);
}

void Exporter::name_memory(const Tensor& tensor, const std::string& name) {
  const auto u = detail::uop(tensor);
  const ir::Node* n = u.get();
  while (n->op == Op::Reshape || n->op == Op::Detach) n = n->src(0).get();
  if (n->op != Op::Buffer) return;
  const auto* storage = n->get<Ref<ir::Storage>>().get();
  if (memory_.contains(storage) || n->shape[0].value() != ir::element_count(u->shape)) return;
  memory_.emplace(storage, weights_.size());
  weights_.push_back({unique(name), u->shape, tensor});
}

Exported Exporter::memory(const ir::Node& buffer, const Shape& shape) {
  const auto* storage = buffer.get<Ref<ir::Storage>>().get();
  auto it = memory_.find(storage);
  if (it == memory_.end()) {
    it = memory_.emplace(storage, weights_.size()).first;
    const UOp seen = ir::reshape(UOp(&buffer), shape);
    weights_.push_back({unique("constant"), shape, detail::wrap(seen, storage->device)});
  }
  const Weight& w = weights_[it->second];
  if (unit_map(w.shape, shape)) return {w.name, w.shape, shape};
  return {reshaped(w.name, w.shape, shape), shape, shape};
}

Exporter::Plan Exporter::plan(const UOp& u) {
  if (u->dtype == DType::Index && u->shape.empty())
    return {{}, [this, u](auto) {
              return Exported{node("Squeeze", {expression(u), integers({0})}), {}, {}};
            }};
  if (auto found = pattern_plan(*this, u)) return std::move(*found);
  return row_plan(*this, u);
}

// By hand instead of by recursion: graphs may be deeper than the stack.
Exported Exporter::value(const UOp& wanted) {
  std::vector<UOp> stack{wanted};
  ir::UOpMap<Plan> plans;
  while (!stack.empty()) {
    const UOp u = stack.back();
    if (values_.contains(u)) {
      stack.pop_back();
      continue;
    }
    auto it = plans.find(u);
    if (it == plans.end()) it = plans.emplace(u, plan(u)).first;
    const size_t before = stack.size();
    for (const UOp& s : it->second.from)
      if (!values_.contains(s)) stack.push_back(s);
    if (stack.size() > before) continue;
    std::vector<Exported> from;
    for (const UOp& s : it->second.from) from.push_back(values_.at(s));
    Exported made = it->second.make(from);
    values_.emplace(u, std::move(made));
    plans.erase(u);
    stack.pop_back();
  }
  return values_.at(wanted);
}

void Exporter::add_output(const UOp& made, const std::string& name) {
  const UOp u = plain(made);
  const std::string from = exact(value(u), u->shape);
  io::onnx::Node last;
  last.name = name, last.op_type = "Identity", last.inputs = {from}, last.outputs = {name};
  graph_.nodes.push_back(std::move(last));
  io::onnx::ValueInfo info;
  info.name = name;
  info.type.kind = io::onnx::Type::Kind::Tensor;
  info.type.element = element_type(u->dtype);
  info.type.shape.emplace();
  for (const Dim& d : u->shape) {
    if (d.is_const())
      info.type.shape->push_back({d.value(), ""});
    else
      info.type.shape->push_back({std::nullopt, ir::expression(d.uop())});
  }
  graph_.outputs.push_back(std::move(info));
}

namespace {

// All that a node reads, and the graphs inside it.
void for_each_input(const io::onnx::Node& n, const std::function<void(const std::string&)>& use) {
  for (const std::string& i : n.inputs) use(i);
  for (const Attribute& a : n.attributes)
    for (const auto& graph : a.graphs)
      for (const io::onnx::Node& inner : graph->nodes) for_each_input(inner, use);
}

// Outputs get their names from the nodes that make them, where one alone asks for it.
void drop_identities(io::onnx::Graph& graph) {
  std::unordered_map<std::string, int> uses;
  for (const io::onnx::Node& n : graph.nodes)
    for_each_input(n, [&](const std::string& i) { uses[i]++; });
  std::unordered_map<std::string, std::string> renamed;
  for (const io::onnx::Node& n : graph.nodes)
    if (n.op_type == "Identity" && uses[n.inputs[0]] == 1)
      renamed.emplace(n.inputs[0], n.outputs[0]);
  std::unordered_set<std::string> dropped;
  for (io::onnx::Node& n : graph.nodes)
    for (std::string& o : n.outputs) {
      const auto it = renamed.find(o);
      if (it == renamed.end()) continue;
      dropped.insert(it->second);
      n.name = o = it->second;
    }
  std::erase_if(graph.nodes, [&](const io::onnx::Node& n) {
    return n.op_type == "Identity" && dropped.contains(n.outputs[0]) &&
           renamed.contains(n.inputs[0]);
  });
}

// Leaves nodes and numbers that outputs need; the names that they use.
std::unordered_set<std::string> prune(io::onnx::Graph& graph) {
  std::unordered_set<std::string> used;
  for (const io::onnx::ValueInfo& o : graph.outputs) used.insert(o.name);
  std::vector<io::onnx::Node> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    io::onnx::Node& n = graph.nodes[i];
    if (std::ranges::none_of(n.outputs, [&](const auto& o) { return used.contains(o); })) continue;
    for_each_input(n, [&](const std::string& name) { used.insert(name); });
    kept.push_back(std::move(n));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers, [&](const auto& t) { return !used.contains(t.name); });
  drop_identities(graph);
  return used;
}

}  // namespace

io::onnx::Graph Exporter::take(std::vector<Weight>& weights) {
  const std::unordered_set<std::string> used = prune(graph_);
  for (Weight& w : weights_)
    if (used.contains(w.name)) weights.push_back(std::move(w));
  return std::move(graph_);
}

// ---- for rows and patterns

std::string Exporter::unique(const std::string& wanted) {
  int& count = counts_[wanted];
  std::string name = wanted;
  while (!names_.insert(name).second) name = fmt::format("{}_{}", wanted, ++count);
  return name;
}

namespace {

std::string text_of(const Attribute& a) {
  return fmt::format("{}={}{}{}", a.name, fmt::join(a.ints, ","), fmt::join(a.floats, ","),
                     fmt::join(a.strings, ","));
}

}  // namespace

std::string Exporter::node(const std::string& op, std::vector<std::string> inputs,
                           AttributeList attributes) {
  return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
}

std::vector<std::string> Exporter::nodes(const std::string& op, std::vector<std::string> inputs,
                                         AttributeList attributes, size_t outputs) {
  std::string key = op;
  for (const std::string& i : inputs) key += '\0' + i;
  for (const Attribute& a : attributes) key += '\1' + text_of(a);
  const bool differs = op == "RandomUniform" ||
                       std::ranges::any_of(attributes, [](const Attribute& a) {
                         return !a.graphs.empty();
                       });
  const auto known = made_.find(key);
  if (known != made_.end() && !differs) return known->second;
  std::string base;
  for (const char c : op) base += char(std::tolower(static_cast<unsigned char>(c)));
  io::onnx::Node n;
  for (size_t i = 0; i < outputs; i++) n.outputs.push_back(unique(base));
  n.name = n.outputs[0], n.op_type = op, n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  graph_.nodes.push_back(n);
  made_.insert_or_assign(std::move(key), n.outputs);
  return n.outputs;
}

// By a copy, which knows the names and values around and whose nodes are the graph's alone.
std::shared_ptr<const io::onnx::Graph> Exporter::inner(const Inner& g) {
  Exporter e(*this);
  e.graph_ = {};
  e.graph_.name = "step";
  for (const UOp& place : g.inputs) e.add_input(place, e.unique("given"));
  for (const auto& [place, value] : g.around) {
    e.values_.insert_or_assign(place, value);
    e.plain_.emplace(place, place);
  }
  for (const UOp& u : g.outputs) e.add_output(u, e.unique("made"));
  prune(e.graph_);
  names_ = std::move(e.names_), counts_ = std::move(e.counts_);
  weights_ = std::move(e.weights_), memory_ = std::move(e.memory_);
  return std::make_shared<const io::onnx::Graph>(std::move(e.graph_));
}

std::string Exporter::constant(DType t, const std::vector<int64_t>& dims,
                               std::vector<uint8_t> bytes) {
  std::string key = fmt::format("\2{} {} ", int(t), fmt::join(dims, ","));
  key.append(bytes.begin(), bytes.end());
  const auto known = made_.find(key);
  if (known != made_.end()) return known->second[0];
  const std::string own = unique(dims.empty() ? "number" : "numbers");
  made_.emplace(std::move(key), std::vector{own});
  io::onnx::TensorData data;
  data.name = own, data.type = element_type(t), data.dims = dims, data.bytes = std::move(bytes);
  graph_.initializers.push_back(std::move(data));
  return own;
}

Exported Exporter::number(const Scalar& v) {
  const DType t = v.dtype == DType::Index ? DType::I64 : v.dtype;
  std::vector<uint8_t> bytes(size_bytes(t));
  store_scalar(Scalar{t, v.bits}, reinterpret_cast<std::byte*>(bytes.data()));
  return {constant(t, {}, std::move(bytes)), {}, {}};
}

std::string Exporter::integers(const std::vector<int64_t>& values) {
  std::vector<uint8_t> bytes(values.size() * 8);
  for (size_t i = 0; i < values.size(); i++)
    for (size_t k = 0; k < 8; k++) bytes[8 * i + k] = uint8_t(uint64_t(values[i]) >> (8 * k));
  return constant(DType::I64, {int64_t(values.size())}, std::move(bytes));
}

// Counts and extents: of what is not negative.
std::string Exporter::expression(const UOp& x) {
  if (x->is_const()) return integers({x->const_int()});
  const auto known = extents_.find(x);
  if (known != extents_.end()) return known->second;
  std::string out;
  if (x->op == Op::Variable) {
    const auto it = variables_.find(x->get<ir::VariableArg>().name);
    TUFF_CHECK(it != variables_.end(), "{} is of no input", x->get<ir::VariableArg>().name);
    const auto& [input, axis] = it->second;
    out = node("Shape", {input}, {attribute("start", axis), attribute("end", axis + 1)});
  } else {
    static const std::map<Op, const char*> kOps{
        {Op::Add, "Add"},      {Op::Sub, "Sub"},      {Op::Mul, "Mul"}, {Op::FloorDiv, "Div"},
        {Op::FloorMod, "Mod"}, {Op::IDiv, "Div"},     {Op::Max, "Max"}, {Op::CmpLt, "Less"},
        {Op::CmpEq, "Equal"},  {Op::Where, "Where"}};
    const auto op = kOps.find(x->op);
    if (op == kOps.end() || (x->op != Op::Where && x->src_count != 2))
      refuse(*x, "no extents are reckoned by it");
    std::vector<std::string> in;
    for (const UOp& s : x->src()) in.push_back(expression(s));
    out = node(op->second, std::move(in));
  }
  extents_.emplace(x, out);
  return out;
}

std::string Exporter::extent(const Dim& d) { return expression(d.uop()); }

std::string Exporter::extents(const Shape& shape) {
  if (!ir::is_symbolic(shape)) return integers(numbers(shape));
  std::vector<std::string> parts;
  for (const Dim& d : shape) parts.push_back(extent(d));
  if (parts.size() == 1) return parts[0];
  return node("Concat", std::move(parts), {attribute("axis", int64_t{0})});
}

namespace {

// 0 is the extent that the input has there, -1 what is left.
std::optional<std::vector<int64_t>> reshape_numbers(const Shape& from, const Shape& to) {
  std::vector<int64_t> out;
  bool open = false;
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] == 0) return std::nullopt;
    if (to[i].is_const()) {
      out.push_back(to[i].value());
    } else if (i < from.size() && from[i] == to[i]) {
      out.push_back(0);
    } else if (!std::exchange(open, true)) {
      out.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::string Exporter::reshaped(const std::string& name, const Shape& from, const Shape& to) {
  if (from == to) return name;
  const auto origin = origins_.find(name);
  if (origin != origins_.end()) {
    const Origin known = origin->second;
    return reshaped(known.name, known.shape, to);
  }
  const auto wanted = reshape_numbers(from, to);
  const bool empty = std::ranges::any_of(to, [](const Dim& d) { return d == 0; });
  AttributeList attributes;
  if (empty) attributes.push_back(attribute("allowzero", int64_t{1}));
  std::string out =
      node("Reshape", {name, wanted ? integers(*wanted) : extents(to)}, std::move(attributes));
  origins_.emplace(out, Origin{name, from});
  return out;
}

std::string viewed(Exporter& e, const Exported& x) {
  return e.reshaped(x.name, x.stored, x.shape);
}

std::string Exporter::exact(const Exported& e, const Shape& shape) {
  if (e.shape == shape) return viewed(*this, e);
  const bool fits = equal_behind_ones(e.stored, e.shape);
  return node("Expand", {fits ? e.name : viewed(*this, e), extents(shape)});
}

Exported Exporter::elementwise(const std::string& op, std::span<const Exported> operands,
                               AttributeList attributes) {
  std::vector<std::string> names;
  Exported out;
  for (const Exported& e : operands) {
    const bool fits = equal_behind_ones(e.stored, e.shape);
    names.push_back(fits ? e.name : viewed(*this, e));
    out.stored = broadcast(out.stored, fits ? e.stored : e.shape);
    out.shape = broadcast(out.shape, e.shape);
  }
  out.name = node(op, std::move(names), std::move(attributes));
  return out;
}

Exported Exporter::cast(const Exported& e, DType to) {
  return {node("Cast", {e.name}, {attribute("to", int64_t(element_type(to)))}), e.stored, e.shape};
}

Exported random_uniform(Exporter& e, const UOp& u, DType t, double high) {
  const AttributeList attributes{attribute("dtype", int64_t(element_type(t))),
                                 attribute("high", float(high)), attribute("low", 0.0f),
                                 attribute("shape", numbers(u->shape))};
  return {e.node("RandomUniform", {}, attributes), u->shape, u->shape};
}

Exported permuted(Exporter& e, const Exported& x, const IntVec& axes) {
  if (x.shape.empty()) return x;
  Shape shape;
  IntVec moved;  // without axes of 1
  for (const int64_t a : axes) {
    shape.push_back(x.shape[size_t(a)]);
    if (!(shape.back() == 1)) moved.push_back(a);
  }
  if (std::ranges::is_sorted(moved)) return {x.name, x.stored, shape};
  return {e.node("Transpose", {viewed(e, x)}, {attribute("perm", axes)}), shape, shape};
}

}  // namespace tuff::onnx
