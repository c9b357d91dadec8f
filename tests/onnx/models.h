// Models made in memory, for tests of the importer.
#pragma once

#include "onnx/importer.h"

namespace tuff::onnx::test {

inline io::onnx::Attribute attribute(std::string name, int64_t value) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Int, a.ints = {value};
  return a;
}
inline io::onnx::Attribute attribute(std::string name, std::vector<int64_t> values) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Ints, a.ints = std::move(values);
  return a;
}
inline io::onnx::Attribute attribute(std::string name, float value) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Float, a.floats = {value};
  return a;
}
inline io::onnx::Attribute attribute(std::string name, const char* value) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::String, a.strings = {value};
  return a;
}
inline io::onnx::Attribute attribute(std::string name, std::vector<std::string> values) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Strings;
  a.strings = std::move(values);
  return a;
}
inline io::onnx::Attribute attribute(std::string name, std::vector<float> values) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Floats;
  a.floats = std::move(values);
  return a;
}
inline io::onnx::Attribute attribute(std::string name, io::onnx::TensorData data) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Tensor;
  a.tensors = {std::move(data)};
  return a;
}
inline io::onnx::Attribute attribute(std::string name, io::onnx::Graph graph) {
  io::onnx::Attribute a;
  a.name = std::move(name), a.kind = io::onnx::Attribute::Kind::Graph;
  a.graphs = {std::make_shared<const io::onnx::Graph>(std::move(graph))};
  return a;
}

inline io::onnx::Node node(std::string op, std::vector<std::string> inputs,
                           std::vector<std::string> outputs,
                           std::vector<io::onnx::Attribute> attributes = {}) {
  io::onnx::Node n;
  n.name = op + "_of_" + outputs.at(0);
  n.op_type = std::move(op), n.inputs = std::move(inputs), n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  return n;
}

inline io::onnx::Dimension dimension(int64_t n) { return {n, ""}; }
inline io::onnx::Dimension dimension(const char* name) { return {std::nullopt, name}; }

template <class... Extent>
io::onnx::ValueInfo tensor_info(std::string name, io::onnx::ElementType type, Extent... extents) {
  io::onnx::ValueInfo v;
  v.name = std::move(name);
  v.type.kind = io::onnx::Type::Kind::Tensor, v.type.element = type;
  v.type.shape = std::vector<io::onnx::Dimension>{dimension(extents)...};
  return v;
}
inline io::onnx::ValueInfo wrapped(io::onnx::Type::Kind kind, io::onnx::ValueInfo inner) {
  io::onnx::ValueInfo v;
  v.name = inner.name;
  v.type.kind = kind;
  v.type.inner = std::make_shared<const io::onnx::Type>(std::move(inner.type));
  return v;
}
inline io::onnx::ValueInfo any_info(std::string name) {
  io::onnx::ValueInfo v;
  v.name = std::move(name);
  return v;
}

template <class T>
io::onnx::TensorData constant(std::string name, io::onnx::ElementType type,
                              std::vector<int64_t> dims, const std::vector<T>& values) {
  io::onnx::TensorData t;
  t.name = std::move(name), t.type = type, t.dims = std::move(dims);
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  t.bytes.assign(bytes, bytes + values.size() * sizeof(T));
  return t;
}
inline io::onnx::TensorData integers(std::string name, const std::vector<int64_t>& values) {
  return constant(std::move(name), io::onnx::ElementType::Int64, {int64_t(values.size())}, values);
}

inline io::onnx::Model model(std::vector<io::onnx::Node> nodes, std::vector<std::string> inputs,
                             std::vector<std::string> outputs, int64_t opset = 21) {
  io::onnx::Model m;
  m.opsets = {{"", opset}};
  m.graph.nodes = std::move(nodes);
  for (std::string& i : inputs) m.graph.inputs.push_back(any_info(std::move(i)));
  for (std::string& o : outputs) m.graph.outputs.push_back(any_info(std::move(o)));
  return m;
}

// One node "op" of x0, x1, ... that gives y0, y1, ...
inline std::vector<Value> run_op(const std::string& op, const std::vector<Value>& inputs,
                                 const std::vector<io::onnx::Attribute>& attributes = {},
                                 int64_t opset = 21, size_t outputs = 1) {
  std::vector<std::string> in, given, out;
  NamedValues values;
  for (size_t i = 0; i < inputs.size(); i++) {
    in.push_back(inputs[i].absent() ? "" : "x" + std::to_string(i));
    if (inputs[i].absent()) continue;
    given.push_back(in.back());
    values.emplace(in.back(), inputs[i]);
  }
  for (size_t i = 0; i < outputs; i++) out.push_back("y" + std::to_string(i));
  const Importer importer(model({node(op, in, out, attributes)}, given, out, opset));
  const NamedValues results = importer.run(values);
  std::vector<Value> all;
  for (const std::string& o : out) all.push_back(results.at(o));
  return all;
}

inline std::vector<float> floats(const Value& v) { return v.tensor("").to_vector<float>(); }
inline std::vector<int64_t> whole(const Value& v) {
  return v.tensor("").cast(DType::I64).to_vector<int64_t>();
}
inline std::vector<int64_t> shape(const Value& v) { return v.sizes(); }

inline Tensor vector_of(std::vector<int64_t> values) {
  return Tensor::from(values, {int64_t(values.size())});
}
// 0, 1, 2 ... of this shape.
inline Tensor counting(const Sizes& sizes) {
  int64_t n = 1;
  for (const Size& s : sizes) n *= int64_t(s);
  return Tensor::arange(0, n, 1, {.dtype = DType::F32}).reshape(sizes);
}

}  // namespace tuff::onnx::test
