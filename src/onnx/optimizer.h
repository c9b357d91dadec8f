// What load() makes of a model's graph before it runs: fewer operators that mean the same, and
// what is computed of constants alone, once. One function per rule, in the table of optimizer.cpp.
// Called by the importer and describe(). Must never know tensors: it sees types and shapes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/formats/onnx_model.h"

namespace tuff::onnx {

using NodeList = std::vector<const io::onnx::Node*>;

// Nodes are the model's, which has to stay where it is, or of `made`.
struct Rewritten {
  NodeList nodes;                    // in place of the graph's
  NodeList once;                     // what they need besides, of constants alone
  std::vector<std::string> results;  // what `once` gives them
  bool reads_parameters = false;     // `once` reads initializers
  std::vector<std::pair<std::string, int64_t>> rewrites;  // each rule, and how often it fitted
  std::vector<std::unique_ptr<const io::onnx::Node>> made;
};

Rewritten rewrite(const io::onnx::Model& model);

}  // namespace tuff::onnx
