// Runs the graph of a model: the values of its names, inner graphs that see them, functions that do
// not. Called by model.cpp and tests. Builds through Tensor alone.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <tuff/onnx.h>
#include "onnx/contents.h"
#include "onnx/node.h"
#include "onnx/optimizer.h"

namespace tuff::onnx {

using NamedValues = std::map<std::string, Value>;

class Importer {
 public:
  // Unsupported naming all that is missing; IoError for a graph that is not in order.
  // `rewrites`: whether the graph that runs is the optimizer's.
  Importer(io::onnx::Model model, std::unique_ptr<io::ByteSource> source, std::string folder,
           std::string device, bool rewrites);
  explicit Importer(io::onnx::Model model, std::string device = "", bool rewrites = false)
      : Importer(std::move(model), nullptr, "", std::move(device), rewrites) {}
  Importer(const Importer&) = delete;

  const io::onnx::Model& model() const { return model_; }
  const std::string& device() const { return device_; }
  const Values& parameters() const { return parameters_; }
  const Rewritten& rewritten() const { return rewritten_; }
  // Somebody may change parameters from now on: what was computed of them once is used no more.
  void share_parameters() const { is_shared_ = true; }
  // Whether the graph runs as the file has it, for no rule fits it or parameters are shared.
  bool runs_as_written() const;
  // InvalidArgument unless the inputs are those that the model declares.
  NamedValues run(const NamedValues& inputs) const;

 private:
  struct Frame;
  struct Call;
  class Around;
  struct Step {
    const io::onnx::Node* node;
    std::vector<std::string> forgotten;  // names that no later step asks for
  };
  using Steps = std::vector<Step>;
  using Named = std::unordered_map<std::string, Value>;

  static Steps steps(const NodeList& nodes, const std::vector<std::string>& kept);
  void plan(const std::vector<io::onnx::Node>& nodes, const std::vector<std::string>& kept);
  void put_constants(const io::onnx::Graph& graph, Frame& frame) const;
  std::vector<Value> run_graph(const io::onnx::Graph& graph, std::vector<Value> inputs,
                               const Frame& outer) const;
  void run_steps(const Steps& steps, Frame& frame) const;
  const Named& folded() const;
  Outputs run_node(const io::onnx::Node& node, std::vector<Value> inputs,
                   const Frame& frame) const;
  Outputs call(const io::onnx::Function& function, const io::onnx::Node& node,
               std::vector<Value> inputs, const Frame& frame) const;
  const io::onnx::Function* function(const io::onnx::Node& node) const;

  io::onnx::Model model_;
  std::string device_;
  Contents contents_;
  Values parameters_;
  std::unordered_map<const std::vector<io::onnx::Node>*, Steps> plans_;
  Rewritten rewritten_;
  Steps rewritten_steps_;
  mutable std::atomic<bool> is_shared_{false};
  mutable std::mutex mutex_;
  mutable Named folded_;  // values of rewritten_.once; under mutex_ until they are there
};

// The version of a domain's operators that a list imports; 1 where it does not name the domain.
int64_t version_of(const io::onnx::Opsets& opsets, const std::string& domain);

}  // namespace tuff::onnx
