// A node as its operator sees it: attributes by name, inputs by position. Called by operators.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/formats/onnx_model.h"
#include "onnx/value.h"

namespace tuff::onnx {

// Where a node stands: what it sees and what runs the graphs that are its attributes.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual const std::string& device() const = 0;
  // The attribute of the calling function that `reference` names, or null.
  virtual const io::onnx::Attribute* bound(const std::string& reference) const = 0;
  virtual Value constant(const io::onnx::TensorData& data) const = 0;
  // The outputs of an inner graph, which sees the names around it.
  virtual std::vector<Value> run(const io::onnx::Graph& graph, std::vector<Value> inputs) const = 0;
};

using Outputs = std::vector<Value>;

class Node {
 public:
  Node(const io::onnx::Node& source, int64_t version, std::vector<Value> inputs,
       const Surroundings& around)
      : source_(source), version_(version), inputs_(std::move(inputs)), around_(around) {}

  const std::string& op() const { return source_.op_type; }
  int64_t version() const { return version_; }  // of the domain's operators, as imported
  const std::string& device() const { return around_.device(); }
  TensorOptions options(DType dtype) const { return {.dtype = dtype, .device = device()}; }

  // ---- inputs. InvalidArgument where one that is asked for is absent.
  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].absent(); }
  const Value& value(size_t i) const;
  const std::vector<Value>& values() const { return inputs_; }
  Tensor tensor(size_t i) const { return value(i).tensor(device()); }
  Tensor tensor_or_none(size_t i) const { return has(i) ? tensor(i) : Tensor(); }  // or undefined
  std::vector<Tensor> tensors(size_t from = 0) const;  // all from here on, of sequences too
  // Whole numbers, extents that vary among them.
  std::vector<Size> extents(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> floats(size_t i) const;
  int64_t integer(size_t i) const;
  double number(size_t i) const;
  bool folds() const;  // whether the host knows all inputs, and they are few

  // ---- attributes, or what holds without them. InvalidArgument for one without a default.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = {}) const;
  double number(std::string_view name, std::optional<double> otherwise = {}) const;
  std::string text(std::string_view name, std::optional<std::string> otherwise = {}) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  Value constant(std::string_view name) const;
  const io::onnx::Graph& graph(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;  // Unsupported for one that tuff lacks

  // What an attribute said in older versions, and an input says in newer ones.
  std::optional<std::vector<int64_t>> integers(std::string_view name, size_t input) const;

  // ---- outputs
  size_t output_count() const { return source_.outputs.size(); }
  bool wants(size_t i) const { return i < source_.outputs.size() && !source_.outputs[i].empty(); }

  std::vector<Value> run(const io::onnx::Graph& graph, std::vector<Value> inputs) const {
    return around_.run(graph, std::move(inputs));
  }

 private:
  const io::onnx::Attribute* find(std::string_view name) const;

  const io::onnx::Node& source_;
  int64_t version_;
  std::vector<Value> inputs_;
  const Surroundings& around_;
};

// Void where tuff has none. Integers of 4 bits take 8.
DType dtype_of(io::onnx::ElementType type);
bool is_4_bits(io::onnx::ElementType type);

}  // namespace tuff::onnx
