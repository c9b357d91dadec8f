#include "onnx/check.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "onnx/importer.h"
#include "onnx/operators.h"

namespace tuff::onnx {

using io::onnx::Attribute;
using io::onnx::ElementType;
using io::onnx::Graph;
using io::onnx::Type;

namespace {

constexpr size_t kMostNamed = 8;

bool is_function(const io::onnx::Model& model, const io::onnx::Node& node) {
  return std::ranges::any_of(model.functions, [&](const io::onnx::Function& f) {
    return f.name == node.op_type && f.overload == node.overload &&
           plain_domain(f.domain) == plain_domain(node.domain);
  });
}

std::string why_missing(const std::string& domain, const std::string& op, int64_t version) {
  if (domain.empty() && version > kNewestOpset)
    return fmt::format("version {} of the operators is newer than {}", version, kNewestOpset);
  if (find_operator(domain, op, version)) return "";
  if (knows_operator(domain, op))
    return fmt::format("not in version {} of the operators", version);
  return "not supported";
}

void collect(const io::onnx::Model& model, const std::vector<io::onnx::Node>& nodes,
             const io::onnx::Opsets& opsets, Uses& into) {
  for (const io::onnx::Node& node : nodes) {
    for (const Attribute& a : node.attributes)
      for (const auto& graph : a.graphs) collect(model, graph->nodes, opsets, into);
    if (is_function(model, node)) continue;
    const std::string domain(plain_domain(node.domain));
    const int64_t version = version_of(opsets, domain);
    Use& use = into[{domain, node.op_type, version}];
    use.version = version;
    if (use.count++ == 0) use.missing = why_missing(domain, node.op_type, version);
    if (use.nodes.size() < kMostNamed) use.nodes.push_back(shown_name(node));
  }
}

// The tensors that a graph holds, those of its nodes' attributes and inner graphs too.
void missing_types(const Graph& graph, std::vector<std::string>& into) {
  const auto note = [&](const io::onnx::TensorData& t, const std::string& where) {
    if (dtype_of(t.type) == DType::Void)
      into.push_back(fmt::format("elements of type {} in {}", io::onnx::name(t.type), where));
  };
  for (const io::onnx::TensorData& t : graph.initializers) note(t, "'" + t.name + "'");
  for (const io::onnx::SparseTensorData& t : graph.sparse_initializers)
    note(t.values, "'" + t.values.name + "'");
  for (const io::onnx::Node& node : graph.nodes)
    for (const Attribute& a : node.attributes) {
      for (const io::onnx::TensorData& t : a.tensors) note(t, "node " + shown_name(node));
      for (const auto& inner : a.graphs) missing_types(*inner, into);
    }
}

using Names = std::unordered_set<std::string>;

void require_order_of(const std::vector<io::onnx::Node>& nodes, Names known);

void require_order_of(const Graph& graph, Names known) {
  for (const io::onnx::ValueInfo& v : graph.inputs) known.insert(v.name);
  for (const io::onnx::TensorData& t : graph.initializers) known.insert(t.name);
  for (const io::onnx::SparseTensorData& t : graph.sparse_initializers)
    known.insert(t.values.name);
  require_order_of(graph.nodes, std::move(known));
}

void require_order_of(const std::vector<io::onnx::Node>& nodes, Names known) {
  for (const io::onnx::Node& node : nodes) {
    for (const std::string& name : node.inputs)
      if (!name.empty() && !known.contains(name))
        fail<IoError>("node {} ({}) reads '{}', which nothing before it gives",
                      io::shown(shown_name(node)), io::shown(node.op_type), io::shown(name));
    for (const Attribute& a : node.attributes)
      for (const auto& graph : a.graphs) require_order_of(*graph, known);
    known.insert(node.outputs.begin(), node.outputs.end());
  }
}

// "FLOAT (batch, 3)", "sequence of FLOAT (?)"
std::string declared(const Type& type) {
  const Type* tensor = &type;
  while (tensor->inner) tensor = tensor->inner.get();
  if (!tensor->shape) return type_text(type);
  std::string out = type_text(type) + " (";
  for (size_t i = 0; i < tensor->shape->size(); i++) {
    const io::onnx::Dimension& d = (*tensor->shape)[i];
    out += i ? ", " : "";
    out += d.value ? std::to_string(*d.value) : d.name.empty() ? "?" : d.name;
  }
  return out + ")";
}

// Extents of dimensions that have a name, which all inputs share. ("?" is what Paddle's exporter
// writes where it knows nothing.)
using Extents = std::map<std::string, std::pair<Size, std::string>>;

// `where`: "input 'x'", as errors name it.
void check_shape(const std::string& where, const Type& type, const Sizes& sizes, Extents& named) {
  if (!type.shape) return;
  const std::vector<io::onnx::Dimension>& shape = *type.shape;
  bool fits = shape.size() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); i++)
    fits = !shape[i].value || sizes[i] == Size(*shape[i].value);
  if (!fits)
    fail<InvalidArgument>("{} has the shape {}, the model declares {}", where, shape_text(sizes),
                          declared(type));
  for (size_t i = 0; i < sizes.size(); i++) {
    if (shape[i].value || shape[i].name.empty() || shape[i].name == "?") continue;
    const auto [at, added] = named.emplace(shape[i].name, std::pair(sizes[i], where));
    if (!added && at->second.first != sizes[i])
      fail<InvalidArgument>("'{}' is {} of {} and {} of {}", shape[i].name,
                            at->second.first.str(), at->second.second, sizes[i].str(), where);
  }
}

void check_tensor(const std::string& where, const Type& type, const Value& value, Extents& named) {
  const DType wanted = dtype_of(type.element);
  if (wanted == DType::Void)
    fail<Unsupported>("{} is of type {}, which is not supported", where,
                      io::onnx::name(type.element));
  if (value.is_sequence() || value.absent() || value.dtype() != wanted)
    fail<InvalidArgument>("{} is {}, the model declares {}", where, value.str(), declared(type));
  check_shape(where, type, value.sizes(), named);
}

void check_value(const std::string& where, const Type& type, const Value& value, Extents& named) {
  switch (type.kind) {
    case Type::Kind::Tensor: check_tensor(where, type, value, named); break;
    case Type::Kind::Optional:
      if (type.inner && !value.absent()) check_value(where, *type.inner, value, named);
      break;
    case Type::Kind::Sequence:
      if (!value.is_sequence())
        fail<InvalidArgument>("{} is {}, the model declares {}", where, value.str(),
                              declared(type));
      for (size_t i = 0; type.inner && i < value.sequence().size(); i++) {
        Extents own;  // each element may have others
        check_value(fmt::format("element {} of {}", i, where), *type.inner, value.sequence()[i],
                    own);
      }
      break;
    default: break;
  }
}

}  // namespace

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string shown_name(const io::onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& output : node.outputs)
    if (!output.empty()) return "of '" + output + "'";
  return "without a name";
}

Uses operator_uses(const io::onnx::Model& model) {
  Uses out;
  collect(model, model.graph.nodes, model.opsets, out);
  for (const io::onnx::Function& f : model.functions) collect(model, f.nodes, f.opsets, out);
  return out;
}

void require_supported(const io::onnx::Model& model) {
  std::vector<std::string> missing;
  for (const auto& [key, use] : operator_uses(model)) {
    if (use.missing.empty()) continue;
    const auto& [domain, op, version] = key;
    std::string nodes;
    for (const std::string& n : use.nodes) nodes += (nodes.empty() ? "" : ", ") + io::shown(n);
    if (use.count > int64_t(use.nodes.size())) nodes += ", ...";
    missing.push_back(fmt::format("{}{}{}-{}: {} ({} nodes: {})", io::shown(domain),
                                  domain.empty() ? "" : ".", io::shown(op), version, use.missing,
                                  use.count, nodes));
  }
  missing_types(model.graph, missing);
  if (missing.empty()) return;
  std::string text = "the model cannot be run:";
  for (const std::string& m : missing) text += "\n  " + m;
  throw Unsupported(text);
}

void require_order(const io::onnx::Model& model) {
  require_order_of(model.graph, {});
  for (const io::onnx::Function& f : model.functions)
    require_order_of(f.nodes, Names(f.inputs.begin(), f.inputs.end()));
}

bool is_initializer(const Graph& graph, const std::string& name) {
  return std::ranges::any_of(graph.initializers, [&](const auto& t) { return t.name == name; }) ||
         std::ranges::any_of(graph.sparse_initializers,
                             [&](const auto& t) { return t.values.name == name; });
}

void check_inputs(const Graph& graph, const std::map<std::string, Value>& inputs) {
  Extents named;
  for (const io::onnx::ValueInfo& v : graph.inputs) {
    const auto given = inputs.find(v.name);
    if (given != inputs.end())
      check_value(fmt::format("input '{}'", v.name), v.type, given->second, named);
    if (given == inputs.end() && v.type.kind != Type::Kind::Optional &&
        !is_initializer(graph, v.name))
      fail<InvalidArgument>("input '{}' is missing, the model declares {}", v.name,
                            declared(v.type));
  }
  for (const auto& [name, value] : inputs)
    if (std::ranges::none_of(graph.inputs, [&](const auto& v) { return v.name == name; }))
      fail<InvalidArgument>("the model has no input '{}'", name);
}

std::string type_text(const Type& type) {
  const std::string inner = type.inner ? type_text(*type.inner) : "?";
  switch (type.kind) {
    case Type::Kind::Tensor: return io::onnx::name(type.element);
    case Type::Kind::SparseTensor: return "sparse " + io::onnx::name(type.element);
    case Type::Kind::Sequence: return "sequence of " + inner;
    case Type::Kind::Map: return "map of " + io::onnx::name(type.element) + " to " + inner;
    case Type::Kind::Optional: return "optional " + inner;
    case Type::Kind::Unknown: break;
  }
  return "?";
}

}  // namespace tuff::onnx
