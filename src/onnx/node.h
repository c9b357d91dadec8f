// A node as its operator sees it: attributes by name, inputs by position. Called by operators.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/formats/onnx_model.h"
#include "onnx/elements.h"
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

// By position. InvalidArgument where one that is asked for is absent.
class Inputs {
 public:
  Inputs(std::vector<Value> values, const Surroundings& around)
      : values_(std::move(values)), around_(around) {}

  size_t count() const { return values_.size(); }
  bool has(size_t i) const { return i < values_.size() && !values_[i].absent(); }
  const Value& value(size_t i) const;
  const std::vector<Value>& values() const { return values_; }
  Tensor tensor(size_t i) const { return value(i).tensor(around_.device()); }
  Tensor tensor_or_none(size_t i) const { return has(i) ? tensor(i) : Tensor(); }  // or undefined
  std::vector<Tensor> tensors(size_t from = 0) const;  // all from here on, of sequences too
  // Whole numbers, extents that vary among them.
  std::vector<Size> extents(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> floats(size_t i) const;
  int64_t integer(size_t i) const;
  double number(size_t i) const;
  bool folds() const;  // whether the host knows all inputs, and they are few

 private:
  std::vector<Value> values_;
  const Surroundings& around_;
};

// By name, or what holds without them. InvalidArgument for one without a default.
class Attributes {
 public:
  Attributes(const io::onnx::Node& source, const Surroundings& around)
      : source_(source), around_(around) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = {}) const;
  double number(std::string_view name, std::optional<double> otherwise = {}) const;
  std::string text(std::string_view name, std::optional<std::string> otherwise = {}) const;
  // Of at least 1 and less than 2^31: a count or a factor, which may be divided by.
  int64_t positive(std::string_view name, std::optional<int64_t> otherwise = {}) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  Value constant(std::string_view name) const;
  const io::onnx::Graph& graph(std::string_view name) const;
  // Unsupported for one that tuff lacks.
  std::optional<io::onnx::ElementType> element(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;  // that holds it

 private:
  const io::onnx::Attribute* find(std::string_view name) const;

  const io::onnx::Node& source_;
  const Surroundings& around_;
};

class Node : public Inputs, public Attributes {
 public:
  Node(const io::onnx::Node& source, int64_t version, std::vector<Value> inputs,
       const Surroundings& around)
      : Inputs(std::move(inputs), around),
        Attributes(source, around),
        source_(source),
        version_(version),
        around_(around) {}
  using Attributes::has, Attributes::integer, Attributes::integers, Attributes::number;
  using Inputs::has, Inputs::integer, Inputs::integers, Inputs::number;

  const std::string& op() const { return source_.op_type; }
  int64_t version() const { return version_; }  // of the domain's operators, as imported
  const std::string& device() const { return around_.device(); }
  TensorOptions options(DType dtype) const { return {.dtype = dtype, .device = device()}; }
  // What an attribute said in older versions, and an input says in newer ones.
  std::optional<std::vector<int64_t>> integers(std::string_view name, size_t input) const;

  size_t output_count() const { return source_.outputs.size(); }
  bool wants(size_t i) const { return i < source_.outputs.size() && !source_.outputs[i].empty(); }
  std::vector<Value> run(const io::onnx::Graph& graph, std::vector<Value> inputs) const {
    return around_.run(graph, std::move(inputs));
  }

 private:
  const io::onnx::Node& source_;
  int64_t version_;
  const Surroundings& around_;
};

}  // namespace tuff::onnx
