// What is refused: models with operators and types that are missing, graphs that are not in order,
// inputs that a model does not declare. Called by the importer and model.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/formats/onnx_model.h"
#include "onnx/value.h"

namespace tuff::onnx {

// "ai.onnx" and "" are one domain.
std::string_view plain_domain(std::string_view domain);
std::string shown_name(const io::onnx::Node& node);  // its name, or that of its first output


struct Use {
  int64_t version = 0, count = 0;
  std::vector<std::string> nodes;  // the names of the first few
  std::string missing;             // why it cannot be run
};
// By domain, name and version; calls of the model's functions are left out.
using Uses = std::map<std::tuple<std::string, std::string, int64_t>, Use>;
Uses operator_uses(const io::onnx::Model& model);

void require_supported(const io::onnx::Model& model);
void require_order(const io::onnx::Model& model);
void check_inputs(const io::onnx::Graph& graph, const std::map<std::string, Value>& inputs);
std::string type_text(const io::onnx::Type& type);  // "FLOAT", "sequence of INT64"
bool is_initializer(const io::onnx::Graph& graph, const std::string& name);

}  // namespace tuff::onnx
