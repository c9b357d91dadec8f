// Exporter: graphs of the tensor floor as nodes of an ONNX graph. What stands for a node is the
// first pattern that it fits (export_patterns.cpp), else its op's row (export_ops.cpp). Called by
// save(). Knows shapes and names; must never know files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tuff/tensor.h>
#include "io/formats/onnx_model.h"
#include "ir/uop.h"

namespace tuff::onnx {

inline constexpr int64_t kWrittenOpset = 18;  // of ai.onnx

// What stands for a node: a value of the file. Its axes may be 1 where the node repeats them, and
// it may have none at all where the node is one element, repeated: operators broadcast.
struct Exported {
  std::string name;
  ir::Shape stored;  // of the value that has this name
  ir::Shape shape;   // the same without some axes of 1, or with more: of the node's rank, or ()
  std::vector<std::string> more = {};  // of a node with several outputs the others
};

using AttributeList = std::vector<io::onnx::Attribute>;
io::onnx::Attribute attribute(std::string name, int64_t value);
io::onnx::Attribute attribute(std::string name, std::vector<int64_t> values);
io::onnx::Attribute attribute(std::string name, std::string value);
io::onnx::Attribute attribute(std::string name, float value);

// A tensor whose contents the file holds.
struct Weight {
  std::string name;
  ir::Shape shape;
  Tensor tensor;
};

// Places of a graph inside of a node: its inputs, and those that stand for values around it.
struct Inner {
  std::vector<ir::UOp> inputs;
  std::vector<std::pair<ir::UOp, Exported>> around;
  std::vector<ir::UOp> outputs;
};

class Exporter {
 public:
  using Make = std::function<Exported(std::span<const Exported>)>;
  // What is needed of a node, and what makes its value of that.
  struct Plan {
    std::vector<ir::UOp> from;
    Make make;
  };

  // A name of an input or an output; InvalidArgument for one that is taken.
  void reserve(const std::string& name);
  // A place that stands for an input, and the axes of it that vary.
  void add_input(const ir::UOp& place, const std::string& name);
  // Memory that errors and the file know by a name.
  void name_memory(const Tensor& tensor, const std::string& name);
  void add_output(const ir::UOp& u, const std::string& name);
  // All nodes that outputs need, initializers of numbers, and the weights without contents.
  io::onnx::Graph take(std::vector<Weight>& weights);

  Exported value(const ir::UOp& u);
  // The graph without what changes no value: marks, copies, and what gradients alone look at.
  ir::UOp plain(const ir::UOp& u);
  // Whether a tensor, built again, is this node.
  bool is(const Tensor& again, const ir::UOp& u);

  // ---- for rows and patterns
  // The name of a value of exactly this shape, which the exported one broadcasts to.
  std::string exact(const Exported& e, const ir::Shape& shape);
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   AttributeList attributes = {});
  // The names of its outputs. Equal nodes are one, unless they have graphs or draw numbers.
  std::vector<std::string> nodes(const std::string& op, std::vector<std::string> inputs,
                                 AttributeList attributes, size_t outputs);
  // A graph inside of a node, which may name what is around it.
  std::shared_ptr<const io::onnx::Graph> inner(const Inner& g);
  // Of operands that broadcast.
  Exported elementwise(const std::string& op, std::span<const Exported> operands,
                       AttributeList attributes = {});
  Exported elementwise(const std::string& op, std::initializer_list<Exported> operands) {
    return elementwise(op, std::span(operands.begin(), operands.size()));
  }
  Exported cast(const Exported& e, DType to);
  Exported number(const Scalar& v);
  // A vector of I64.
  std::string integers(const std::vector<int64_t>& values);
  std::string extents(const ir::Shape& shape);
  // One whole number that may vary, as a vector.
  std::string extent(const ir::Dim& d);
  std::string reshaped(const std::string& name, const ir::Shape& from, const ir::Shape& to);
  Exported memory(const ir::Node& buffer, const ir::Shape& shape);

 private:
  struct Origin {
    std::string name;
    ir::Shape shape;
  };
  Plan plan(const ir::UOp& u);
  std::string unique(const std::string& wanted);
  std::string constant(DType t, const std::vector<int64_t>& dims, std::vector<uint8_t> bytes);
  std::string expression(const ir::UOp& x);

  io::onnx::Graph graph_;
  std::vector<Weight> weights_;
  ir::UOpMap<Exported> values_;
  ir::UOpMap<ir::UOp> plain_;
  std::unordered_map<const ir::Storage*, size_t> memory_;  // numbers of weights
  std::unordered_map<std::string, std::pair<std::string, int64_t>> variables_;  // input and axis
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> counts_;                // of names with this beginning
  std::map<std::string, std::vector<std::string>> made_;       // what nodes and constants say
  std::unordered_map<std::string, Origin> origins_;            // of what is another's reshape
  ir::UOpMap<std::string> extents_;
};

// ---- shapes
// For each axis of `to` the axis of `from` that it is, -1 for one of 1 that is new; none where they
// differ in more than axes of 1.
std::optional<std::vector<int>> unit_map(const ir::Shape& from, const ir::Shape& to);
// The node without repetition: of the same rank, with axes of 1 that it was expanded from.
ir::UOp narrow(const ir::UOp& u);
// The constant that a node is, whatever its shape; null: it is none.
const Scalar* constant_of(const ir::Node* n);

// Unsupported naming op, dtype and shape.
[[noreturn]] void refuse(const ir::Node& n, std::string_view why);
io::onnx::ElementType element_type(DType t);

// The name of a value of the shape that it is seen in.
std::string viewed(Exporter& e, const Exported& x);
Exported permuted(Exporter& e, const Exported& x, const ir::IntVec& axes);
// Numbers from 0 to below `high` that a runtime draws, of the node's shape: others for each node.
Exported random_uniform(Exporter& e, const ir::UOp& u, DType t, double high);

// The op's row.
Exporter::Plan row_plan(Exporter& e, const ir::UOp& u);
// A pattern that the node fits.
std::optional<Exporter::Plan> pattern_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> product_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> pick_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> bits_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> loop_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> order_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> window_plan(Exporter& e, const ir::UOp& u);
std::optional<Exporter::Plan> function_plan(Exporter& e, const ir::UOp& u);

}  // namespace tuff::onnx
