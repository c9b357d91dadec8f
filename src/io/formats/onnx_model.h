// What an ONNX file says, as plain data: the messages of github.com/onnx/onnx, onnx/onnx.proto.
// Filled by read_onnx(), read by the importer (onnx/) and `tuff inspect`. Must never know of
// tensors, nor what an operator means; needs no more than base.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuff::io::onnx {

// TensorProto.DataType. A file may hold numbers that are not listed.
enum class ElementType : int32_t {
  Undefined,
  Float,
  Uint8,
  Int8,
  Uint16,
  Int16,
  Int32,
  Int64,
  String,
  Bool,
  Float16,
  Double,
  Uint32,
  Uint64,
  Complex64,
  Complex128,
  Bfloat16,
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Uint4,
  Int4,
  Float4E2M1,
  Float8E8M0,
  Uint2,
  Int2,
};
std::string name(ElementType t);     // "FLOAT", "INT64", "type 99"
uint64_t size_bits(ElementType t);  // of an element; 0: strings, and numbers that are not listed

// Contents that lie in a file: the model's own where `location` is empty, else one beside it, named
// relative to the model's folder.
struct FileRange {
  std::string location;
  uint64_t offset = 0, size_bytes = 0;
};

struct TensorData {
  std::string name;
  ElementType type = ElementType::Undefined;
  std::vector<int64_t> dims;
  // As raw_data holds them: row-major, little-endian, two to a byte where 4 bits wide. One of the
  // three has them; none does where there are no elements.
  std::optional<FileRange> range;
  std::vector<uint8_t> bytes;        // of float_data, int32_data ...
  std::vector<std::string> strings;  // of string_data
};
// indices lists positions in the flattened tensor, or (count, rank) coordinates.
struct SparseTensorData {
  TensorData values, indices;
  std::vector<int64_t> dims;
};

// An extent: a number, a name, or neither where nothing is known.
struct Dimension {
  std::optional<int64_t> value;
  std::string name;
};
struct Type {
  enum class Kind : uint8_t { Unknown, Tensor, SparseTensor, Sequence, Map, Optional };
  Kind kind = Kind::Unknown;
  ElementType element = ElementType::Undefined;  // of tensors, of a map's keys
  std::optional<std::vector<Dimension>> shape;   // of tensors; none: any rank
  std::shared_ptr<const Type> inner;             // of sequences, maps, optionals
};
struct ValueInfo {
  std::string name;
  Type type;
};

struct Graph;
struct Attribute {
  enum class Kind : uint8_t {
    Undefined,
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensor,
    SparseTensors,
    TypeProto,
    TypeProtos,
  };
  std::string name;
  std::string reference;  // in a function: the attribute of its call that is meant
  Kind kind = Kind::Undefined;
  // Those of a list's kind in order; of a single kind the first.
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<TensorData> tensors;
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<SparseTensorData> sparse_tensors;
  std::vector<Type> types;
};

struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;  // "": an optional one that is absent
  std::vector<Attribute> attributes;
  const Attribute* attribute(std::string_view name) const;  // null: it has none
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  // in topological order, as the format demands
  std::vector<TensorData> initializers;
  std::vector<SparseTensorData> sparse_initializers;  // named as their values
  std::vector<ValueInfo> inputs, outputs, values;
};

using Opsets = std::vector<std::pair<std::string, int64_t>>;  // by domain; "" is ai.onnx

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;   // that a call may give
  std::vector<Attribute> defaults;       // of those that it may leave out
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  int64_t ir_version = 0, model_version = 0;
  std::string producer_name, producer_version, domain;
  Opsets opsets;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
  int64_t opset(std::string_view domain) const;  // 0: the model imports none
};

}  // namespace tuff::io::onnx
