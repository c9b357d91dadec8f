// load(), describe() and Model.
#include <filesystem>

#include <tuff/onnx.h>
#include "base/check.h"
#include "io/formats/onnx.h"
#include "onnx/check.h"
#include "onnx/model_state.h"

namespace tuff::onnx {
namespace {

ValueInfo info_of(const io::onnx::ValueInfo& v) {
  ValueInfo out{.name = v.name, .type = type_text(v.type), .shape = {}};
  if (v.type.kind == io::onnx::Type::Kind::Tensor) out.dtype = dtype_of(v.type.element);
  out.has_rank = v.type.shape.has_value();
  if (!v.type.shape) return out;
  for (const io::onnx::Dimension& d : *v.type.shape)
    out.shape.push_back(d.value ? std::to_string(*d.value) : d.name.empty() ? "?" : d.name);
  return out;
}

uint64_t parameters_of(const io::onnx::Graph& graph) {
  uint64_t out = 0;
  const auto count = [](const std::vector<int64_t>& dims) {
    uint64_t n = 1;
    for (const int64_t d : dims) n *= uint64_t(d);
    return n;
  };
  for (const io::onnx::TensorData& t : graph.initializers) out += count(t.dims);
  for (const io::onnx::SparseTensorData& t : graph.sparse_initializers) out += count(t.values.dims);
  for (const io::onnx::Node& node : graph.nodes) {
    const bool is_constant = node.op_type == "Constant";
    const io::onnx::Attribute* value = is_constant ? node.attribute("value") : nullptr;
    if (value && !value->tensors.empty()) out += count(value->tensors[0].dims);
  }
  return out;
}

Description description_of(const io::onnx::Model& model) {
  Description out;
  out.ir_version = model.ir_version;
  out.producer = model.producer_name;
  if (!model.producer_version.empty()) out.producer += " " + model.producer_version;
  out.opsets = model.opsets;
  for (const io::onnx::ValueInfo& v : model.graph.inputs)
    if (!is_initializer(model.graph, v.name)) out.inputs.push_back(info_of(v));
  for (const io::onnx::ValueInfo& v : model.graph.outputs) out.outputs.push_back(info_of(v));
  for (const auto& [key, use] : operator_uses(model)) {
    const auto& [domain, name, version] = key;
    out.operators.push_back({domain, name, version, use.count, use.missing});
  }
  out.parameters = parameters_of(model.graph);
  out.metadata = model.metadata;
  return out;
}

}  // namespace

Model::State::State(io::onnx::Model model, std::unique_ptr<io::ByteSource> source,
                    const std::string& folder, const LoadOptions& options)
    : description(description_of(model)),
      importer(std::move(model), std::move(source), folder, options.device, options.optimize) {
  description.rewrites = importer.rewritten().rewrites;
}

const Description& Model::description() const { return state_->description; }
const std::string& Model::device() const { return state_->importer.device(); }
const Values& Model::parameters() const {
  state_->importer.share_parameters();
  return state_->importer.parameters();
}

Values Model::operator()(const Values& inputs) const {
  const Importer& importer = state_->importer;
  NamedValues given;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined()) fail<InvalidArgument>("input '{}' is an undefined tensor", name);
    given.emplace(name, importer.device().empty() ? tensor : tensor.to(importer.device()));
  }
  Values out;
  for (const auto& [name, value] : importer.run(given)) {
    if (value.is_sequence() || value.absent())
      fail<Unsupported>("output '{}' is {}, and no tensor", name, value.str());
    out.emplace(name, value.tensor(importer.device()));
  }
  return out;
}

Model load(const std::string& path, const LoadOptions& options) {
  auto source = std::make_unique<io::FileBytes>(path);
  io::onnx::Model read = io::read_onnx(*source);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Model out;
  out.state_ = std::make_shared<const Model::State>(std::move(read), std::move(source), folder,
                                                    options);
  return out;
}

Description describe(const std::string& path) {
  const io::FileBytes source(path);
  const io::onnx::Model model = io::read_onnx(source);
  Description out = description_of(model);
  out.rewrites = rewrite(model).rewrites;
  return out;
}

}  // namespace tuff::onnx
