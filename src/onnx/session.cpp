// Session: a Jit for each set of shapes that a model is called with.
#include <algorithm>
#include <list>
#include <mutex>

#include <fmt/ranges.h>

#include <tuff/onnx.h>
#include "base/check.h"
#include "base/nearest.h"
#include "base/parse_number.h"

namespace tuff::onnx {
namespace {

std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : values) out.push_back(name);
  return out;
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

}  // namespace

struct Session::State {
  // Calls of one signature.
  struct Graph {
    std::string signature;
    std::unique_ptr<Jit> jit;
    std::string why_not;
    std::vector<Tensor> parameters;  // that it reads
  };

  State(Model m, SessionOptions o) : model(std::move(m)), options(std::move(o)) {
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

  Graph fresh(const std::string& signature, const std::vector<std::string>& names,
              std::vector<DynamicAxis> dynamic) const {
    auto run = [this, names](const std::vector<Tensor>& tensors) {
      Values inputs;
      for (size_t i = 0; i < names.size(); i++) inputs.emplace(names[i], tensors[i]);
      return outputs(model(inputs));
    };
    return {signature, std::make_unique<Jit>(run, JitOptions{std::move(dynamic)}), "", {}};
  }

  // The one of these inputs, first of all from now on.
  Graph& graph_of(const std::vector<std::string>& names, const std::vector<Tensor>& tensors) {
    std::vector<DynamicAxis> dynamic = dynamic_axes(model.description(), options, names);
    const std::string wanted = signature(names, tensors, dynamic);
    const auto found = std::find_if(graphs.begin(), graphs.end(),
                                    [&](const Graph& g) { return g.signature == wanted; });
    if (found != graphs.end()) {
      graphs.splice(graphs.begin(), graphs, found);
    } else {
      graphs.push_front(fresh(wanted, names, std::move(dynamic)));
    }
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
      for (const auto& [name, tensor] : model.parameters())
        if (tensor.is_realized()) graph.parameters.push_back(tensor);
    }
    return out;
  }

  Values run(const Values& inputs) const {
    Values out = model(inputs);
    Tensor::realize(outputs(out));
    return out;
  }

  const Model model;
  const SessionOptions options;
  std::mutex mutex;
  std::list<Graph> graphs;  // the last used first
};

Session::Session(Model model, SessionOptions options)
    : state_(std::make_unique<State>(std::move(model), std::move(options))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
const Model& Session::model() const { return state_->model; }

Values Session::operator()(const Values& inputs) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined()) return s.run(inputs);  // which says so
    tensors.push_back(s.model.device().empty() ? tensor : tensor.to(s.model.device()));
  }
  Tensor::realize(tensors);
  State::Graph& graph = s.graph_of(names_of(inputs), tensors);
  if (!graph.why_not.empty()) return s.run(inputs);
  std::string why_not;
  try {
    Values out = s.named(s.call(graph, tensors));
    s.keep();
    return out;
  } catch (const Error& e) {
    if (graph.jit->captured()) throw;
    why_not = e.what();
  }
  try {
    Values out = s.run(inputs);
    graph.why_not = why_not;  // not the inputs' fault
    s.keep();
    return out;
  } catch (...) {
    s.graphs.pop_front();
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
