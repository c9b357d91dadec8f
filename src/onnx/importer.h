// Runs the graph of a model: the values of its names, inner graphs that see them, functions that do
// not. Called by model.cpp and tests. Builds through Tensor alone.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <tuff/onnx.h>
#include "onnx/contents.h"
#include "onnx/node.h"

namespace tuff::onnx {

using NamedValues = std::map<std::string, Value>;

class Importer {
 public:
  // Unsupported naming all that is missing; IoError for a graph that is not in order.
  Importer(io::onnx::Model model, std::unique_ptr<io::ByteSource> source, std::string folder,
           std::string device);
  explicit Importer(io::onnx::Model model, std::string device = "")
      : Importer(std::move(model), nullptr, "", std::move(device)) {}
  Importer(const Importer&) = delete;

  const io::onnx::Model& model() const { return model_; }
  const std::string& device() const { return device_; }
  const Values& parameters() const { return parameters_; }
  // InvalidArgument unless the inputs are those that the model declares.
  NamedValues run(const NamedValues& inputs) const;

 private:
  struct Frame;
  struct Call;
  class Around;
  // Which names are forgotten after each node.
  using Forgotten = std::vector<std::vector<std::string>>;

  void plan(const std::vector<io::onnx::Node>& nodes, const std::vector<std::string>& kept);
  void plan_inner(const std::vector<io::onnx::Node>& nodes);
  void put_constants(const io::onnx::Graph& graph, Frame& frame) const;
  std::vector<Value> run_graph(const io::onnx::Graph& graph, std::vector<Value> inputs,
                               const Frame& outer) const;
  void run_nodes(const std::vector<io::onnx::Node>& nodes, Frame& frame) const;
  Outputs run_node(const io::onnx::Node& node, std::vector<Value> inputs,
                   const Frame& frame) const;
  Outputs call(const io::onnx::Function& function, const io::onnx::Node& node,
               std::vector<Value> inputs, const Frame& frame) const;
  const io::onnx::Function* function(const io::onnx::Node& node) const;

  io::onnx::Model model_;
  std::string device_;
  Contents contents_;
  Values parameters_;
  std::unordered_map<const std::vector<io::onnx::Node>*, Forgotten> plans_;
};

// The version of a domain's operators that a list imports; 1 where it does not name the domain.
int64_t version_of(const io::onnx::Opsets& opsets, const std::string& domain);

}  // namespace tuff::onnx
