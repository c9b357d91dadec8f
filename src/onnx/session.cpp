// Session: a Jit for each set of shapes that a model is called with, and of what decides them.
#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include <tuff/onnx.h>
#include "base/check.h"
#include "base/nearest.h"
#include "base/parse_number.h"
#include "onnx/model_state.h"

namespace tuff::onnx {
namespace {

constexpr int64_t kMostDeciding = 16;  // elements: shapes, axes, rates, lengths, switches

bool may_decide(const Tensor& t) {
  return !is_float(t.dtype()) && int64_t(t.numel()) <= kMostDeciding;
}

// The extents that vary, of inputs in the order of their names.
std::vector<DynamicAxis> dynamic_axes(const Description& d, const SessionOptions& o,
                                      const std::vector<std::string>& names) {
  std::vector<DynamicAxis> out;
  for (const ValueInfo& v : d.inputs) {
    const auto at = size_t(std::find(names.begin(), names.end(), v.name) - names.begin());
    for (size_t axis = 0; at < names.size() && axis < v.shape.size(); axis++) {
      const auto bounds = o.dynamic.find(v.shape[axis]);
      if (bounds == o.dynamic.end()) continue;
      out.push_back({.argument = at,
                     .axis = int64_t(axis),
                     .name = bounds->first,
                     .min = bounds->second.first,
                     .max = bounds->second.second});
    }
  }
  return out;
}

// Names that inputs' extents have; numbers, and what is not known, are none.
std::vector<std::string> extents_of(const Description& d) {
  std::vector<std::string> out;
  for (const ValueInfo& v : d.inputs)
    for (const std::string& extent : v.shape)
      if (extent != "?" && !parse_number<int64_t>(extent)) out.push_back(extent);
  return out;
}

void require_known(const Description& d, const SessionOptions& o) {
  const std::vector<std::string> known = extents_of(d);
  for (const auto& [name, bounds] : o.dynamic) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail<InvalidArgument>("dynamic '{}': no input has an extent of this name; they have {}{}",
                            name, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                            did_you_mean(name, known));
    if (bounds.first < 1 || bounds.first > bounds.second)
      fail<InvalidArgument>("dynamic '{}': {} to {} are no bounds of an extent", name, bounds.first,
                            bounds.second);
  }
}

// A graph has a list of tensors, the same at every call.
void require_tensors(const std::vector<ValueInfo>& values, const char* what) {
  for (const ValueInfo& v : values)
    if (v.is_sequence)
      fail<Unsupported>("{} '{}' is of type '{}', a session takes and gives tensors alone: run the "
                        "model",
                        what, v.name, v.type);
}

// Dtypes and shapes, of extents that vary their names.
std::string signature(const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                      const std::vector<DynamicAxis>& dynamic) {
  std::string out;
  for (size_t i = 0; i < tensors.size(); i++) {
    out += fmt::format("{} {}", names[i], name(tensors[i].dtype()));
    const std::vector<int64_t> sizes = tensors[i].sizes();
    for (size_t axis = 0; axis < sizes.size(); axis++) {
      const bool varies = std::any_of(dynamic.begin(), dynamic.end(), [&](const DynamicAxis& d) {
        return d.argument == i && d.axis == int64_t(axis);
      });
      out += varies ? std::string(" *") : fmt::format(" {}", sizes[axis]);
    }
    out += '\n';
  }
  return out;
}

// What an input holds. Made a tensor inside of the function that is captured: values of memory that
// was there before cannot be read there.
struct FixedInput {
  explicit FixedInput(const Tensor& t)
      : sizes(t.sizes()),
        options{.dtype = t.dtype(), .device = t.device()},
        bytes(size_t(int64_t(t.numel())) * size_bytes(t.dtype())) {
    t.copy_to(bytes.data(), bytes.size());
  }
  Tensor tensor() const { return Tensor::from_bytes(bytes.data(), sizes, options); }
  std::string text() const {
    return fmt::format("{} ({}) {:02x}", name(options.dtype), fmt::join(sizes, ","),
                       fmt::join(bytes, ""));
  }

  std::vector<int64_t> sizes;
  TensorOptions options;
  std::vector<uint8_t> bytes;
};

}  // namespace

struct Session::State {
  // Calls of one signature.
  struct Graph {
    std::string signature;
    std::unique_ptr<Jit> jit;
    std::string why_not;
    std::vector<Tensor> parameters;  // that it reads
  };

  // What a call gives its graph, by the inputs' names.
  struct Arguments {
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    std::map<std::string, FixedInput> fixed;
    std::vector<DynamicAxis> dynamic;
    std::string signature;
  };

  State(Model m, SessionOptions o) : model(std::move(m)), options(std::move(o)) {
    require_tensors(model.description().inputs, "input");
    require_tensors(model.description().outputs, "output");
    require_known(model.description(), options);
  }

  std::vector<Tensor> outputs(const Values& values) const {
    std::vector<Tensor> out;
    for (const ValueInfo& v : model.description().outputs) out.push_back(values.at(v.name));
    return out;
  }
  Values named(const std::vector<Tensor>& tensors) const {
    Values out;
    for (size_t i = 0; i < tensors.size(); i++)
      out.emplace(model.description().outputs[i].name, tensors[i]);
    return out;
  }

  // Of all inputs but those that are `fixed`, which a graph holds as the numbers that they are.
  Arguments arguments_of(const Values& inputs, bool by_value) const {
    Arguments a;
    std::string fixed;
    for (const auto& [name, t] : inputs) {
      if (by_value && may_decide(t)) {
        fixed += name + " " + a.fixed.emplace(name, t).first->second.text() + "\n";
      } else {
        a.names.push_back(name);
        a.tensors.push_back(t);
      }
    }
    a.dynamic = dynamic_axes(model.description(), options, a.names);
    a.signature = signature(a.names, a.tensors, a.dynamic) + fixed;
    return a;
  }

  Graph fresh(const Arguments& a) const {
    auto run = [this, names = a.names, fixed = a.fixed](const std::vector<Tensor>& tensors) {
      Values inputs;
      for (const auto& [name, contents] : fixed) inputs.emplace(name, contents.tensor());
      for (size_t i = 0; i < names.size(); i++) inputs.emplace(names[i], tensors[i]);
      return outputs(model(inputs));
    };
    return {a.signature, std::make_unique<Jit>(run, JitOptions{a.dynamic}), "", {}};
  }

  // The one of these inputs, first of all from now on.
  Graph& graph_of(const Arguments& a) {
    const auto found = std::find_if(graphs.begin(), graphs.end(),
                                    [&](const Graph& g) { return g.signature == a.signature; });
    if (found != graphs.end())
      graphs.splice(graphs.begin(), graphs, found);
    else
      graphs.push_front(fresh(a));
    return graphs.front();
  }

  // Once its call has succeeded: what is refused takes no other's place.
  void keep() {
    while (graphs.size() > std::max<size_t>(options.graphs, 1)) graphs.pop_back();
  }

  // A replay reads memory: what was assigned to a parameter has to be there.
  std::vector<Tensor> call(Graph& graph, const std::vector<Tensor>& tensors) const {
    Tensor::realize(graph.parameters);
    std::vector<Tensor> out = (*graph.jit)(tensors);
    if (graph.parameters.empty()) {
      for (const auto& [name, tensor] : importer().parameters())
        if (tensor.is_realized()) graph.parameters.push_back(tensor);
    }
    return out;
  }

  // Nothing where there is no graph; `why` tells.
  std::optional<Values> by_graph(const Arguments& a, std::string& why) {
    Graph& graph = graph_of(a);
    why = graph.why_not;
    if (!why.empty()) return std::nullopt;
    try {
      Values out = named(call(graph, a.tensors));
      keep();
      return out;
    } catch (const Error& e) {
      if (graph.jit->captured()) throw;
      why = e.what();
      return std::nullopt;
    }
  }

  // As by_graph(), where the shapes' graph is none: perhaps short integers decide what runs. Then
  // there is a graph for each of their values.
  std::optional<Values> by_values(const std::string& shapes, const Values& inputs,
                                  std::string& why) {
    if (decided_by_values.contains(shapes)) return std::nullopt;
    const Arguments a = arguments_of(inputs, true);
    if (a.fixed.empty() || a.tensors.empty()) return std::nullopt;
    graphs.pop_front();
    decided_by_values.insert(shapes);
    return by_graph(a, why);
  }

  Values run(const Values& inputs) const {
    Values out = model(inputs);
    Tensor::realize(outputs(out));
    return out;
  }

  const Importer& importer() const { return model.state_->importer; }
  // Graphs hold what was folded of parameters, which somebody may have changed since.
  void drop_folded() {
    if (importer().runs_as_written() == as_written) return;
    as_written = !as_written;
    graphs.clear();
  }

  const Model model;
  const SessionOptions options;
  std::mutex mutex;
  bool as_written = importer().runs_as_written();
  std::list<Graph> graphs;  // the last used first
  std::set<std::string> decided_by_values;  // signatures of shapes, not all of whose inputs vary
};

Session::Session(Model model, SessionOptions options)
    : state_(std::make_unique<State>(std::move(model), std::move(options))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
const Model& Session::model() const { return state_->model; }

Values Session::operator()(const Values& inputs) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.drop_folded();
  Values there;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined()) return s.run(inputs);  // which says so
    tensors.push_back(s.model.device().empty() ? tensor : tensor.to(s.model.device()));
    there.emplace(name, tensors.back());
  }
  Tensor::realize(tensors);
  State::Arguments a = s.arguments_of(there, false);
  const std::string shapes = a.signature;
  const bool known = s.decided_by_values.contains(shapes);
  if (known) a = s.arguments_of(there, true);
  std::string why;
  if (auto out = s.by_graph(a, why)) return *std::move(out);
  if (auto out = s.by_values(shapes, there, why)) return *std::move(out);
  try {
    Values out = s.run(inputs);
    s.graphs.front().why_not = why;  // not the inputs' fault
    s.keep();
    return out;
  } catch (...) {
    s.graphs.pop_front();
    if (!known) s.decided_by_values.erase(shapes);
    throw;
  }
}

std::string Session::why_not_captured() const {
  const std::lock_guard lock(state_->mutex);
  return state_->graphs.empty() ? "" : state_->graphs.front().why_not;
}
JitStats Session::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->graphs.empty() ? JitStats{} : state_->graphs.front().jit->stats();
}

}  // namespace tuff::onnx
