#include "onnx/optimizer.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "onnx/check.h"
#include "onnx/importer.h"

namespace tuff::onnx {
namespace {

using io::onnx::Attribute;
using io::onnx::ElementType;
using io::onnx::Node;
using Dims = std::vector<int64_t>;

// Rules write and read operators as they are from here on: Add broadcasts, a Constant holds a
// number, batch norms have no attribute `spatial`.
constexpr int64_t kFirstOpset = 9;

uint64_t count_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), uint64_t{1}, std::multiplies<>());
}

Attribute attribute(std::string name, Dims values) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::Ints, a.ints = std::move(values);
  return a;
}
Attribute attribute(std::string name, float value) {
  Attribute a;
  a.name = std::move(name), a.kind = Attribute::Kind::Float, a.floats = {value};
  return a;
}

int64_t integer(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* a = node.attribute(name);
  return a && !a->ints.empty() ? a->ints[0] : otherwise;
}
float number(const Node& node, std::string_view name, float otherwise) {
  const Attribute* a = node.attribute(name);
  return a && !a->floats.empty() ? a->floats[0] : otherwise;
}

bool is(const Node& node, std::string_view op) {
  return plain_domain(node.domain).empty() && node.op_type == op;
}
bool has_input(const Node& node, size_t i) {
  return i < node.inputs.size() && !node.inputs[i].empty();
}

// A value that every call has the same of.
struct Fixed {
  ElementType type;
  Dims dims;
  const Node* from = nullptr;  // a Constant; null: an initializer, or made once
  bool is_parameter = false;
};

// A graph while rules look at it and change it.
class Editor {
 public:
  explicit Editor(const io::onnx::Model& model) {
    for (const Node& n : model.graph.nodes) out_.nodes.push_back(&n);
    note_names(model.graph);
    note_fixed(model.graph);
  }

  size_t size() const { return out_.nodes.size(); }
  const Node* node(size_t i) const { return out_.nodes[i]; }  // null: it is left out
  // Null where calls may have different ones.
  const Fixed* fixed(const std::string& name) const {
    const auto found = fixed_.find(name);
    return found == fixed_.end() ? nullptr : &found->second;
  }
  // The node whose result has one reader, which is in this graph.
  std::optional<size_t> sole_source(const std::string& name) const {
    const auto found = givers_.find(name);
    if (found == givers_.end() || kept_.contains(name) || readers_.at(name).size() != 1)
      return std::nullopt;
    return found->second;
  }
  const Node* sole_reader(const std::string& name) const {
    const auto found = readers_.find(name);
    if (found == readers_.end() || kept_.contains(name) || found->second.size() != 1)
      return nullptr;
    return node(found->second[0]);
  }

  // The value of a node that runs once.
  std::string once(const char* op, std::vector<std::string> inputs, Dims dims,
                   std::vector<Attribute> attributes = {}) {
    Node n;
    n.op_type = op, n.inputs = std::move(inputs), n.attributes = std::move(attributes);
    n.outputs = {fresh_name()};
    n.name = n.outputs[0];
    run_once(add(std::move(n)), std::move(dims));
    return out_.once.back()->outputs[0];
  }
  // A node of the graph whose inputs are fixed.
  void hoist(size_t i, Dims dims) { run_once(std::exchange(out_.nodes[i], nullptr), dims); }
  // One node, where the second stood, instead of two of which it reads the first.
  void join(size_t first, size_t second, Node by) {
    out_.nodes[first] = nullptr;
    for (const std::string& name : by.inputs) {
      std::vector<size_t>& readers = readers_[name];
      std::ranges::replace(readers, first, second);
      if (readers.empty()) readers.push_back(second);
    }
    for (const std::string& name : out_.nodes[second]->outputs) givers_[name] = second;
    out_.nodes[second] = add(std::move(by));
  }
  void count(const char* rule) {
    auto& all = out_.rewrites;
    auto at = std::ranges::find_if(all, [&](const auto& r) { return r.first == rule; });
    if (at == all.end()) at = all.emplace(at, rule, 0);
    at->second++;
  }

  Rewritten take() {
    std::erase(out_.nodes, nullptr);
    for (const Node* n : out_.nodes)
      for (const std::string& name : n->inputs)
        if (made_once_.erase(name)) out_.results.push_back(name);
    return std::move(out_);
  }

 private:
  const Node* add(Node n) {
    out_.made.push_back(std::make_unique<const Node>(std::move(n)));
    return out_.made.back().get();
  }
  void run_once(const Node* n, Dims dims) {
    for (const std::string& name : n->inputs) {
      const Fixed* input = fixed(name);
      if (!input) continue;
      out_.reads_parameters |= input->is_parameter;
      if (input->from && constants_.insert(input->from).second) out_.once.push_back(input->from);
    }
    out_.once.push_back(n);
    fixed_[n->outputs[0]] = {ElementType::Float, std::move(dims)};
    made_once_.insert(n->outputs[0]);
  }
  std::string fresh_name() {
    std::string out;
    do out = "once/" + std::to_string(number_++);
    while (!names_.insert(out).second);
    return out;
  }

  // What inner graphs read is kept: they are not looked into.
  void note_inner(const Node& n) {
    for (const Attribute& a : n.attributes)
      for (const auto& graph : a.graphs) {
        for (const Node& inner : graph->nodes) {
          kept_.insert(inner.inputs.begin(), inner.inputs.end());
          names_.insert(inner.outputs.begin(), inner.outputs.end());
          note_inner(inner);
        }
        for (const io::onnx::ValueInfo& o : graph->outputs) kept_.insert(o.name);
      }
  }
  void note_names(const io::onnx::Graph& graph) {
    for (const io::onnx::ValueInfo& o : graph.outputs) kept_.insert(o.name);
    for (const io::onnx::ValueInfo& i : graph.inputs) names_.insert(i.name);
    for (const io::onnx::TensorData& t : graph.initializers) names_.insert(t.name);
    for (const io::onnx::SparseTensorData& t : graph.sparse_initializers)
      names_.insert(t.values.name);
    for (size_t i = 0; i < graph.nodes.size(); i++) {
      const Node& n = graph.nodes[i];
      for (const std::string& name : n.inputs) readers_[name].push_back(i);
      for (const std::string& name : n.outputs) {
        if (!names_.insert(name).second) twice_.insert(name);
        givers_[name] = i;
      }
      note_inner(n);
    }
  }
  // An initializer that is an input as well is a default.
  void note_fixed(const io::onnx::Graph& graph) {
    for (const io::onnx::TensorData& t : graph.initializers)
      fixed_[t.name] = {t.type, t.dims, nullptr, true};
    for (const Node& n : graph.nodes) {
      const Attribute* value = is(n, "Constant") ? n.attribute("value") : nullptr;
      if (value && value->reference.empty() && !value->tensors.empty() && n.outputs.size() == 1)
        fixed_[n.outputs[0]] = {value->tensors[0].type, value->tensors[0].dims, &n};
    }
    for (const io::onnx::ValueInfo& i : graph.inputs) fixed_.erase(i.name);
    for (const std::string& name : twice_) fixed_.erase(name), givers_.erase(name);
  }

  Rewritten out_;
  std::unordered_map<std::string, Fixed> fixed_;
  std::unordered_map<std::string, size_t> givers_;
  std::unordered_map<std::string, std::vector<size_t>> readers_;
  std::unordered_set<std::string> names_, kept_, made_once_;
  std::unordered_set<std::string> twice_;  // names that no model in order has
  std::unordered_set<const Node*> constants_;
  int64_t number_ = 0;
};

// ---- what follows a layer, into its weight and bias

// A product with a weight that is fixed, and whose result one node reads.
struct Layer {
  size_t at;
  size_t axis;  // of the weight, that the channels of the result are
  Dims weight;
  int64_t channels() const { return weight[axis]; }
};

std::optional<size_t> channel_axis(const Node& n, const Dims& weight) {
  if (is(n, "Conv") && weight.size() >= 3) return 0;
  if (is(n, "ConvTranspose") && weight.size() >= 3 && integer(n, "group", 1) == 1) return 1;
  if (is(n, "Gemm") && weight.size() == 2 && number(n, "beta", 1) == 1)
    return integer(n, "transB", 0) ? 0 : 1;
  return std::nullopt;
}

std::optional<Layer> layer_before(const Editor& e, const std::string& name) {
  const auto at = e.sole_source(name);
  if (!at || !e.node(*at)) return std::nullopt;
  const Node& n = *e.node(*at);
  const Fixed* weight = has_input(n, 1) ? e.fixed(n.inputs[1]) : nullptr;
  if (!weight || weight->type != ElementType::Float || n.outputs.size() != 1) return std::nullopt;
  const auto axis = channel_axis(n, weight->dims);
  if (!axis || weight->dims[*axis] < 1) return std::nullopt;
  const Layer layer{*at, *axis, weight->dims};
  if (!has_input(n, 2)) return layer;
  const Fixed* bias = e.fixed(n.inputs[2]);
  const Dims channels{layer.channels()};
  const bool fits = bias && bias->type == ElementType::Float && bias->dims == channels;
  return fits ? std::optional(layer) : std::nullopt;
}

std::string shaped(Editor& e, const char* op, const std::string& name, const Dims& dims) {
  const std::string to =
      e.once("Constant", {}, {int64_t(dims.size())}, {attribute("value_ints", dims)});
  return e.once(op, {name, to}, dims);
}

// layer(x) * scale + shift, of a number for each channel; "": there is none.
void fold(Editor& e, const Layer& layer, size_t second, const std::string& scale,
          const std::string& shift) {
  Node n = *e.node(layer.at);
  const Dims channels{layer.channels()};
  n.inputs.resize(3);
  if (!scale.empty()) {
    Dims beside(layer.weight.size(), 1);
    beside[layer.axis] = layer.channels();
    n.inputs[1] = e.once("Mul", {n.inputs[1], shaped(e, "Reshape", scale, beside)}, layer.weight);
    if (!n.inputs[2].empty()) n.inputs[2] = e.once("Mul", {n.inputs[2], scale}, channels);
  }
  if (!shift.empty())
    n.inputs[2] = n.inputs[2].empty() ? shift : e.once("Add", {n.inputs[2], shift}, channels);
  if (n.inputs[2].empty()) n.inputs.pop_back();
  n.outputs = e.node(second)->outputs;
  e.join(layer.at, second, std::move(n));
}

bool fold_batch_norm(Editor& e, size_t i) {
  const Node& n = *e.node(i);
  const bool infers = is(n, "BatchNormalization") && n.outputs.size() == 1 &&
                      n.inputs.size() == 5 && !integer(n, "training_mode", 0);
  if (!infers) return false;
  const auto layer = layer_before(e, n.inputs[0]);
  if (!layer) return false;
  const Dims channels{layer->channels()};
  for (size_t k = 1; k < 5; k++) {
    const Fixed* f = e.fixed(n.inputs[k]);
    if (!f || f->type != ElementType::Float || f->dims != channels) return false;
  }
  const std::string epsilon =
      e.once("Constant", {}, {}, {attribute("value_float", number(n, "epsilon", 1e-5f))});
  const std::string deviation =
      e.once("Sqrt", {e.once("Add", {n.inputs[4], epsilon}, channels)}, channels);
  const std::string scale = e.once("Div", {n.inputs[1], deviation}, channels);
  const std::string moved = e.once("Mul", {n.inputs[3], scale}, channels);
  fold(e, *layer, i, scale, e.once("Sub", {n.inputs[2], moved}, channels));
  return true;
}

// Whether the operand stands beside (n, channels, ...) as a number for each channel, or as one.
bool is_per_channel(const Dims& operand, const Layer& layer) {
  const size_t behind = layer.weight.size() - 2;  // axes
  if (operand.size() > layer.weight.size()) return false;
  if (count_of(operand) == 1) return true;
  return count_of(operand) == uint64_t(layer.channels()) && operand.size() > behind &&
         operand[operand.size() - behind - 1] == layer.channels();
}

bool fold_scale_or_shift(Editor& e, size_t i) {
  const Node& n = *e.node(i);
  const bool scales = is(n, "Mul");
  if ((!scales && !is(n, "Add")) || n.inputs.size() != 2) return false;
  for (const size_t k : {0, 1}) {
    const Fixed* operand = e.fixed(n.inputs[1 - k]);
    if (!operand || operand->type != ElementType::Float) continue;
    const auto layer = layer_before(e, n.inputs[k]);
    if (!layer || is(*e.node(layer->at), "Gemm")) continue;
    if (!is_per_channel(operand->dims, *layer)) continue;
    const Dims channels{layer->channels()};
    std::string each = n.inputs[1 - k];
    if (count_of(operand->dims) == 1)
      each = shaped(e, "Expand", shaped(e, "Reshape", each, {1}), channels);
    else
      each = shaped(e, "Reshape", each, channels);
    fold(e, *layer, i, scales ? each : "", scales ? "" : each);
    return true;
  }
  return false;
}

// Weights of convolutions that the file holds as short integers. Products of matrices decode theirs
// as they go, since they read each of them once.
bool decode_weight(Editor& e, size_t i) {
  const Node& n = *e.node(i);
  if (!is(n, "DequantizeLinear") || n.outputs.size() != 1 || n.inputs.size() < 2) return false;
  const Node* reader = e.sole_reader(n.outputs[0]);
  const bool is_weight = reader && (is(*reader, "Conv") || is(*reader, "ConvTranspose")) &&
                         reader->inputs[0] != n.outputs[0];
  if (!is_weight) return false;
  for (size_t k = 0; k < n.inputs.size(); k++)
    if (k < 2 || has_input(n, k))
      if (!e.fixed(n.inputs[k])) return false;
  if (e.fixed(n.inputs[1])->type != ElementType::Float || n.attribute("output_dtype")) return false;
  e.hoist(i, e.fixed(n.inputs[0])->dims);
  return true;
}

// ---- rules

struct Rule {
  const char* name;  // as Description shows it
  bool (*apply)(Editor& e, size_t at);
};
constexpr Rule kRules[] = {
    {"weights of convolutions decoded once", decode_weight},
    {"batch norms in the layer before", fold_batch_norm},
    {"scales and shifts in the convolution before", fold_scale_or_shift},
};

}  // namespace

Rewritten rewrite(const io::onnx::Model& model) {
  Editor e(model);
  if (version_of(model.opsets, "") < kFirstOpset) return {};
  for (size_t i = 0; i < e.size(); i++)
    for (const Rule& rule : kRules)
      if (e.node(i) && rule.apply(e, i)) e.count(rule.name);
  return e.take();
}

}  // namespace tuff::onnx
