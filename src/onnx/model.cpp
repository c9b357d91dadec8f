// load(), describe() and Model.
#include <filesystem>

#include <tuff/onnx.h>
#include "base/check.h"
#include "io/formats/onnx.h"
#include "onnx/check.h"
#include "onnx/model_state.h"

namespace tuff::onnx {

using io::onnx::Type;

namespace {

ValueInfo info_of(const io::onnx::ValueInfo& v) {
  ValueInfo out{.name = v.name, .type = type_text(v.type), .shape = {}};
  const Type* type = &v.type;
  out.is_optional = type->kind == Type::Kind::Optional;
  if (out.is_optional && type->inner) type = type->inner.get();
  out.is_sequence = type->kind == Type::Kind::Sequence;
  if (out.is_sequence && type->inner) type = type->inner.get();
  if (type->kind == Type::Kind::Tensor) out.dtype = dtype_of(type->element);
  out.has_rank = type->shape.has_value();
  if (!type->shape) return out;
  for (const io::onnx::Dimension& d : *type->shape)
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

Value value_of(const std::string& name, const Tensor& tensor, const std::string& device) {
  if (!tensor.defined()) fail<InvalidArgument>("input '{}' is an undefined tensor", name);
  return device.empty() ? tensor : tensor.to(device);
}

Value value_of(const std::string& name, const Item& item, const std::string& device) {
  if (const auto* tensor = std::get_if<Tensor>(&item)) return value_of(name, *tensor, device);
  const auto* list = std::get_if<std::vector<Tensor>>(&item);
  if (!list) return {};
  Sequence elements;
  for (const Tensor& t : *list) elements.push_back(value_of(name, t, device));
  return Value(std::move(elements));
}

Item item_of(const std::string& name, const Value& value, const std::string& device) {
  if (value.absent()) return {};
  if (!value.is_sequence()) return value.tensor(device);
  std::vector<Tensor> out;
  for (const Value& v : value.sequence()) {
    if (v.absent() || v.is_sequence())
      fail<Unsupported>("output '{}' is a sequence that holds {}: tensors are supported", name,
                        v.str());
    out.push_back(v.tensor(device));
  }
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

Items Model::run(const Items& inputs) const {
  const Importer& importer = state_->importer;
  NamedValues given;
  for (const auto& [name, item] : inputs)
    given.emplace(name, value_of(name, item, importer.device()));
  Items out;
  for (const auto& [name, value] : importer.run(given))
    out.emplace(name, item_of(name, value, importer.device()));
  return out;
}

Values Model::operator()(const Values& inputs) const {
  Values out;
  for (auto& [name, item] : run(Items(inputs.begin(), inputs.end()))) {
    const auto* tensor = std::get_if<Tensor>(&item);
    if (!tensor)
      fail<Unsupported>("output '{}' is {}, and no tensor: run() gives it", name,
                        std::holds_alternative<std::monostate>(item) ? "nothing" : "a sequence");
    out.emplace(name, *tensor);
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
