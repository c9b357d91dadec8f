#include "onnx/importer.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "base/check.h"
#include "onnx/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {

using io::onnx::Attribute;
using io::onnx::Function;
using io::onnx::Graph;

// What a function was called with.
struct Importer::Call {
  std::map<std::string, const Attribute*> attributes;
  const io::onnx::Opsets* opsets;
};

// The values of a graph's names.
struct Importer::Frame {
  const Frame* outer = nullptr;
  const Call* call = nullptr;
  std::unordered_map<std::string, Value> values = {};

  Value find(const std::string& name) const {
    for (const Frame* f = this; f; f = f->outer)
      if (const auto found = f->values.find(name); found != f->values.end()) return found->second;
    return {};
  }
};

class Importer::Around : public Surroundings {
 public:
  Around(const Importer& importer, const Frame& frame) : importer_(importer), frame_(frame) {}
  const std::string& device() const override { return importer_.device_; }
  const Attribute* bound(const std::string& reference) const override {
    const auto& all = frame_.call->attributes;
    const auto found = all.find(reference);
    return found == all.end() ? nullptr : found->second;
  }
  Value constant(const io::onnx::TensorData& data) const override {
    return importer_.contents_.value(data);
  }
  std::vector<Value> run(const Graph& graph, std::vector<Value> inputs) const override {
    return importer_.run_graph(graph, std::move(inputs), frame_);
  }

 private:
  const Importer& importer_;
  const Frame& frame_;
};

namespace {

using Nodes = std::vector<io::onnx::Node>;

// All that a node reads, and the graphs inside it.
void collect_uses(const io::onnx::Node& node, std::unordered_set<std::string>& into) {
  into.insert(node.inputs.begin(), node.inputs.end());
  for (const Attribute& a : node.attributes)
    for (const auto& graph : a.graphs) {
      for (const io::onnx::Node& inner : graph->nodes) collect_uses(inner, into);
      for (const io::onnx::ValueInfo& output : graph->outputs) into.insert(output.name);
    }
}

std::vector<std::string> names_of(const std::vector<io::onnx::ValueInfo>& values) {
  std::vector<std::string> out;
  for (const io::onnx::ValueInfo& v : values) out.push_back(v.name);
  return out;
}

// Of a tensor, and of those that a sequence or an optional holds.
io::onnx::ElementType element_within(const io::onnx::Type& type) {
  return type.inner ? element_within(*type.inner) : type.element;
}

// "node conv1 (Conv-11) of float32 (1, 3, 8, 8), float32 (4, 3, 3, 3)"
std::string title(const io::onnx::Node& node, int64_t version, const std::vector<Value>& inputs) {
  std::string out = fmt::format("node {} ({}{}{}-{})", shown_name(node), node.domain,
                                node.domain.empty() ? "" : ".", node.op_type, version);
  for (size_t i = 0; i < inputs.size(); i++) out += (i ? ", " : " of ") + inputs[i].str();
  return out;
}

// Throws what is being handled once more, with where it happened in front.
[[noreturn]] void rethrow_at(const std::string& where) {
  const auto text = [&](const Error& e) { return where + ": " + e.what(); };
  try {
    throw;
  } catch (const IndexError& e) {
    throw IndexError(text(e));
  } catch (const InvalidArgument& e) {
    throw InvalidArgument(text(e));
  } catch (const ShapeError& e) {
    throw ShapeError(text(e));
  } catch (const Unsupported& e) {
    throw Unsupported(text(e));
  } catch (const IoError& e) {
    throw IoError(text(e));
  }
}

}  // namespace

int64_t version_of(const io::onnx::Opsets& opsets, const std::string& domain) {
  for (const auto& [name, version] : opsets)
    if (plain_domain(name) == plain_domain(domain)) return version;
  return 1;
}

Importer::Importer(io::onnx::Model model, std::unique_ptr<io::ByteSource> source,
                   std::string folder, std::string device, bool rewrites)
    : model_(std::move(model)),
      device_(std::move(device)),
      contents_(std::move(source), std::move(folder), device_) {
  require_supported(model_);
  require_order(model_);
  for (const io::onnx::TensorData& t : model_.graph.initializers)
    parameters_.emplace(t.name, contents_.tensor(t));
  const std::vector<std::string> outputs = names_of(model_.graph.outputs);
  plan(model_.graph.nodes, outputs);
  for (const Function& f : model_.functions) plan(f.nodes, f.outputs);
  if (!rewrites) return;
  rewritten_ = rewrite(model_);
  rewritten_steps_ = steps(rewritten_.nodes, outputs);
}

bool Importer::runs_as_written() const {
  return rewritten_.rewrites.empty() || (rewritten_.reads_parameters && is_shared_);
}

Importer::Steps Importer::steps(const NodeList& nodes, const std::vector<std::string>& kept) {
  std::unordered_set<std::string> later(kept.begin(), kept.end());
  Steps out;
  for (const io::onnx::Node* node : nodes) out.push_back({node, {}});
  for (size_t i = out.size(); i-- > 0;) {
    const io::onnx::Node& node = *out[i].node;
    std::unordered_set<std::string> uses(node.outputs.begin(), node.outputs.end());
    collect_uses(node, uses);
    for (const std::string& name : uses)
      if (later.insert(name).second) out[i].forgotten.push_back(name);
  }
  return out;
}

void Importer::plan(const Nodes& nodes, const std::vector<std::string>& kept) {
  NodeList all;
  for (const io::onnx::Node& node : nodes) all.push_back(&node);
  plans_.emplace(&nodes, steps(all, kept));
  for (const io::onnx::Node& node : nodes)
    for (const Attribute& a : node.attributes)
      for (const auto& graph : a.graphs) plan(graph->nodes, names_of(graph->outputs));
}

void Importer::put_constants(const Graph& graph, Frame& frame) const {
  for (const io::onnx::TensorData& t : graph.initializers)
    frame.values.insert_or_assign(t.name, contents_.value(t));
  for (const io::onnx::SparseTensorData& t : graph.sparse_initializers)
    frame.values.insert_or_assign(t.values.name, contents_.dense(t));
}

NamedValues Importer::run(const NamedValues& inputs) const {
  check_inputs(model_.graph, inputs);
  const Call call{{}, &model_.opsets};
  Frame frame{.call = &call};
  put_constants(model_.graph, frame);
  for (const io::onnx::ValueInfo& v : model_.graph.inputs)
    if (const auto given = inputs.find(v.name); given != inputs.end())
      frame.values.insert_or_assign(v.name, given->second.of(element_within(v.type)));
  if (runs_as_written()) {
    run_steps(plans_.at(&model_.graph.nodes), frame);
  } else {
    for (const auto& [name, value] : folded()) frame.values.insert_or_assign(name, value);
    run_steps(rewritten_steps_, frame);
  }
  NamedValues out;
  for (const io::onnx::ValueInfo& o : model_.graph.outputs) out.emplace(o.name, frame.find(o.name));
  return out;
}

// They are memory from then on, which calls and captured graphs read.
const Importer::Named& Importer::folded() const {
  const std::lock_guard lock(mutex_);
  if (!folded_.empty()) return folded_;
  const NoGradGuard no_gradients;
  const Call call{{}, &model_.opsets};
  Frame frame{.call = &call};
  put_constants(model_.graph, frame);
  run_steps(steps(rewritten_.once, rewritten_.results), frame);
  Named out;
  std::vector<Tensor> tensors;
  for (const std::string& name : rewritten_.results) {
    tensors.push_back(frame.find(name).tensor(device_));
    out.emplace(name, tensors.back());
  }
  Tensor::realize(tensors);
  folded_ = std::move(out);
  return folded_;
}

std::vector<Value> Importer::run_graph(const Graph& graph, std::vector<Value> inputs,
                                       const Frame& outer) const {
  if (inputs.size() > graph.inputs.size())
    fail<InvalidArgument>("the graph '{}' has {} inputs, {} were given", graph.name,
                          graph.inputs.size(), inputs.size());
  Frame frame{.outer = &outer, .call = outer.call};
  put_constants(graph, frame);
  for (size_t i = 0; i < inputs.size(); i++)
    frame.values.insert_or_assign(graph.inputs[i].name, std::move(inputs[i]));
  run_steps(plans_.at(&graph.nodes), frame);
  std::vector<Value> out;
  for (const io::onnx::ValueInfo& o : graph.outputs) out.push_back(frame.find(o.name));
  return out;
}

void Importer::run_steps(const Steps& steps, Frame& frame) const {
  for (const Step& step : steps) {
    const io::onnx::Node& node = *step.node;
    std::vector<Value> inputs;
    for (const std::string& name : node.inputs)
      inputs.push_back(name.empty() ? Value() : frame.find(name));
    Outputs outputs = run_node(node, std::move(inputs), frame);
    for (size_t k = 0; k < std::min(outputs.size(), node.outputs.size()); k++)
      if (!node.outputs[k].empty())
        frame.values.insert_or_assign(node.outputs[k], std::move(outputs[k]));
    for (const std::string& name : step.forgotten) frame.values.erase(name);
  }
}

const Function* Importer::function(const io::onnx::Node& node) const {
  for (const Function& f : model_.functions)
    if (f.name == node.op_type && f.overload == node.overload &&
        plain_domain(f.domain) == plain_domain(node.domain))
      return &f;
  return nullptr;
}

Outputs Importer::run_node(const io::onnx::Node& node, std::vector<Value> inputs,
                           const Frame& frame) const {
  const std::string domain(plain_domain(node.domain));
  const int64_t version = version_of(*frame.call->opsets, domain);
  try {
    if (const Function* f = function(node)) return call(*f, node, inputs, frame);
    const Operator* found = find_operator(domain, node.op_type, version);
    if (!found) fail<Unsupported>("the operator is not supported");
    Outputs outputs = found->run(Node(node, version, inputs, Around(*this, frame)));
    if (const auto from = size_t(found->elements_of); from < inputs.size())
      for (Value& v : outputs) v = v.of(inputs[from].element());
    return outputs;
  } catch (const Error&) {
    rethrow_at(title(node, version, inputs));
  } catch (const std::out_of_range&) {
    fail<InvalidArgument>("{}: an attribute or a shape has fewer elements than the operator reads",
                          title(node, version, inputs));
  } catch (const std::length_error&) {
    fail<InvalidArgument>("{}: an attribute or a shape asks for more elements than memory has",
                          title(node, version, inputs));
  } catch (const std::bad_alloc&) {
    fail<OutOfMemory>("{}: what the operator reckons does not fit in memory",
                      title(node, version, inputs));
  }
}

Outputs Importer::call(const Function& function, const io::onnx::Node& node,
                       std::vector<Value> inputs, const Frame& frame) const {
  Call call{{}, &function.opsets};
  for (const Attribute& a : function.defaults) call.attributes[a.name] = &a;
  for (const Attribute& a : node.attributes) {
    const Attribute* given = &a;
    if (!a.reference.empty()) {
      const auto outer = frame.call->attributes.find(a.reference);
      if (outer == frame.call->attributes.end()) continue;
      given = outer->second;
    }
    call.attributes[a.name] = given;
  }
  Frame inner{.call = &call};
  for (size_t i = 0; i < std::min(inputs.size(), function.inputs.size()); i++)
    inner.values.insert_or_assign(function.inputs[i], std::move(inputs[i]));
  run_steps(plans_.at(&function.nodes), inner);
  Outputs out;
  for (const std::string& name : function.outputs) out.push_back(inner.find(name));
  return out;
}

}  // namespace tuff::onnx
