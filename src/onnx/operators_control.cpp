// Control flow, sequences, optionals. What decides a branch or ends a loop is read by the host.
#include <algorithm>

#include <tuff/scan.h>

#include "base/check.h"
#include "onnx/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

constexpr int64_t kMostSteps = 1 << 16;  // each has nodes of its own in the graph

bool truth(const Value& v) {
  const HostNumbers n = v.numbers();
  if (n.count() != 1) fail<InvalidArgument>("{} stands where one bool is wanted", v.str());
  return n.is_float() ? n.floats[0] != 0 : int64_t(n.ints[0]) != 0;
}

Outputs conditional(const Node& node) {
  return node.run(node.graph(truth(node.value(0)) ? "then_branch" : "else_branch"), {});
}

// What each step gives, along a new axis.
Value stacked(const std::vector<Value>& steps, int64_t axis, const std::string& device) {
  std::vector<Tensor> tensors;
  for (const Value& v : steps) tensors.push_back(v.tensor(device));
  return Value(Tensor::stack(tensors, axis)).of(steps.at(0).element());
}

// A loop without a step has nothing to say of an output's shape.
Value no_steps(const Node& node, const io::onnx::ValueInfo& output) {
  Sizes sizes{0};
  if (output.type.shape)
    for (const io::onnx::Dimension& d : *output.type.shape) sizes.push_back(d.value.value_or(0));
  const DType dtype = dtype_of(output.type.element);
  return Tensor::empty(sizes, node.options(dtype == DType::Void ? DType::F32 : dtype));
}

// How many outputs a body has behind those that it must have.
size_t outputs_behind(const io::onnx::Graph& body, size_t needed) {
  if (body.outputs.size() < needed)
    fail<InvalidArgument>("the body has {} outputs, at least {} are needed", body.outputs.size(),
                          needed);
  return body.outputs.size() - needed;
}

// How many inputs are states, those before the sequences.
size_t states_before(size_t inputs, size_t sequences) {
  if (sequences == 0 || sequences > inputs)
    fail<InvalidArgument>("{} inputs, of which {} are sequences", inputs, sequences);
  return inputs - sequences;
}

// Inputs: most steps, whether to begin, carried values. The body gets the step, the condition and
// what is carried; it gives the condition, what is carried and what is kept of the step.
Outputs loop(const Node& node) {
  const io::onnx::Graph& body = node.graph("body");
  const int64_t most =
      node.has(0) ? node.integer(0) : std::numeric_limits<int64_t>::max();
  bool goes_on = !node.has(1) || truth(node.value(1));
  const auto first = std::min<ptrdiff_t>(2, ptrdiff_t(node.count()));
  std::vector<Value> carried(node.values().begin() + first, node.values().end());
  const size_t kept = outputs_behind(body, 1 + carried.size());
  std::vector<std::vector<Value>> steps(kept);
  for (int64_t i = 0; goes_on && i < most; i++) {
    if (i == kMostSteps) fail<Unsupported>("a loop of more than {} steps", kMostSteps);
    std::vector<Value> inputs{host_integer(i), host_integer(1, DType::Bool)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Value> out = node.run(body, std::move(inputs));
    goes_on = truth(out.at(0));
    for (size_t k = 0; k < carried.size(); k++) carried[k] = out.at(k + 1);
    for (size_t k = 0; k < kept; k++) steps[k].push_back(out[1 + carried.size() + k]);
  }
  Outputs out = carried;
  for (size_t k = 0; k < kept; k++)
    out.push_back(steps[k].empty() ? no_steps(node, body.outputs[1 + carried.size() + k])
                                   : stacked(steps[k], 0, node.device()));
  return out;
}

// What a Scan's attributes say: states, then sequences of which the body gets a slice at each step.
struct Scan {
  const io::onnx::Graph& body;
  size_t sequences, states, kept;
  std::vector<int64_t> in_axes, in_ways, out_axes, out_ways;

  explicit Scan(const Node& node)
      : body(node.graph("body")),
        sequences(size_t(node.integer("num_scan_inputs"))),
        states(states_before(node.count(), sequences)),
        kept(outputs_behind(body, states)),
        in_axes(node.integers("scan_input_axes", std::vector<int64_t>(sequences, 0))),
        in_ways(node.integers("scan_input_directions", std::vector<int64_t>(sequences, 0))),
        out_axes(node.integers("scan_output_axes", std::vector<int64_t>(kept, 0))),
        out_ways(node.integers("scan_output_directions", std::vector<int64_t>(kept, 0))) {}
  bool runs_back() const { return in_ways.at(0) != 0; }
  // Rows of a sequence or output in the order of the first sequence's.
  Tensor in_one_way(const Tensor& rows, int64_t way) const {
    return (way != 0) == runs_back() ? rows : rows.flip({0});
  }
};

// Whether each step may draw numbers of its own, as also the model's functions may.
bool may_draw(const io::onnx::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const io::onnx::Node& n) {
    const bool draws = n.op_type.starts_with("Random") || n.op_type == "Bernoulli" ||
                       n.op_type == "Multinomial" || n.op_type == "Dropout";
    return draws || !knows_operator(plain_domain(n.domain), n.op_type) ||
           std::ranges::any_of(n.attributes, [](const io::onnx::Attribute& a) {
             return std::ranges::any_of(a.graphs, [](const auto& g) { return may_draw(*g); });
           });
  });
}

constexpr int64_t kMostCopies = 16;  // of a step in the graph, where it can be a loop

// As one loop of the graph, which many steps are: where states keep their shapes and a step reads
// no contents. Absent where that is not so, unless how many steps there are varies: there is no
// other way then.
std::optional<Outputs> as_loop(const Node& node, const Scan& s) {
  Tensors initial, sequences;
  for (size_t i = 0; i < node.count(); i++) {
    const Value& v = node.value(i);
    if (v.is_sequence() || v.is_narrow()) return std::nullopt;
    const Tensor x = node.tensor(i);
    if (i < s.states)
      initial.push_back(x);
    else
      sequences.push_back(
          s.in_one_way(x.movedim(s.in_axes.at(i - s.states), 0), s.in_ways.at(i - s.states)));
  }
  // A loop has a state.
  if (s.states == 0) initial.push_back(Tensor::zeros({1}, node.options(DType::F32)));
  const auto step = [&](const Tensors& states, const Tensors& rows) {
    std::vector<Value> inputs(states.begin(), states.begin() + ptrdiff_t(s.states));
    inputs.insert(inputs.end(), rows.begin(), rows.end());
    const std::vector<Value> out = node.run(s.body, std::move(inputs));
    Scanned made;
    if (s.states == 0) made.states = states;
    for (size_t k = 0; k < out.size(); k++)
      (k < s.states ? made.states : made.outputs).push_back(out[k].tensor(node.device()));
    return made;
  };
  try {
    const Scanned all = tuff::scan(step, initial, sequences, {.reverse = s.runs_back()});
    Outputs out(all.states.begin(), all.states.begin() + ptrdiff_t(s.states));
    for (size_t k = 0; k < s.kept; k++)
      out.emplace_back(
          s.in_one_way(all.outputs[k], s.out_ways.at(k)).movedim(0, s.out_axes.at(k)));
    return out;
  } catch (const Error&) {
    if (!sequences[0].size(0).is_number()) throw;
    return std::nullopt;  // step by step it works, or says why it does not
  }
}

Outputs scan(const Node& node) {
  const Scan s(node);
  const auto& [body, sequences, states, kept, in_axes, in_ways, out_axes, out_ways] = s;
  std::vector<Value> carried(node.values().begin(), node.values().begin() + ptrdiff_t(states));
  const Size steps = node.tensor(states).size(in_axes.at(0));
  const bool many = !steps.is_number() || steps > kMostCopies;
  if (many && !may_draw(body))
    if (auto made = as_loop(node, s)) return std::move(*made);
  if (!steps.is_number())
    fail<Unsupported>("{} steps, which vary, of a body that draws numbers or keeps no tensors",
                      steps.str());
  const int64_t count = steps;
  std::vector<std::vector<Value>> rows(kept);
  for (int64_t i = 0; i < count; i++) {
    std::vector<Value> inputs = carried;
    for (size_t k = 0; k < sequences; k++) {
      const int64_t row = in_ways.at(k) ? count - 1 - i : i;
      const Value slice = node.tensor(states + k).select(in_axes.at(k), row);
      inputs.push_back(slice.of(node.value(states + k).element()));
    }
    const std::vector<Value> out = node.run(body, std::move(inputs));
    for (size_t k = 0; k < states; k++) carried[k] = out[k];
    for (size_t k = 0; k < kept; k++) rows[k].push_back(out[states + k]);
  }
  Outputs out = carried;
  for (size_t k = 0; k < kept; k++) {
    if (out_ways.at(k)) std::ranges::reverse(rows[k]);
    out.push_back(rows[k].empty() ? no_steps(node, body.outputs[states + k])
                                   : stacked(rows[k], out_axes.at(k), node.device()));
  }
  return out;
}

// Version 8: sequences of a batch, each of its own length, which came with a later form of batches.
Outputs batched_scan(const Node& node) {
  const io::onnx::Graph& body = node.graph("body");
  if (node.has(0)) fail<Unsupported>("lengths of sequences");
  if (node.count() == 0) fail<InvalidArgument>("there are no sequences");
  const auto sequences = size_t(node.integer("num_scan_inputs"));
  const size_t states = states_before(node.count() - 1, sequences),
               kept = outputs_behind(body, states);
  const auto ways = node.integers("directions", std::vector<int64_t>(sequences, 0));
  const int64_t batch = node.tensor(node.count() - 1).size(0),
                count = node.tensor(node.count() - 1).size(1);
  std::vector<std::vector<Value>> rows(states + kept);
  for (int64_t b = 0; b < batch; b++) {
    std::vector<Value> carried;
    for (size_t k = 0; k < states; k++) carried.emplace_back(node.tensor(1 + k)[b]);
    std::vector<std::vector<Value>> steps(kept);
    for (int64_t i = 0; i < count; i++) {
      std::vector<Value> inputs = carried;
      for (size_t k = 0; k < sequences; k++) {
        const int64_t row = ways.at(k) ? count - 1 - i : i;
        inputs.emplace_back(node.tensor(1 + states + k)[b].select(0, row));
      }
      const std::vector<Value> out = node.run(body, std::move(inputs));
      for (size_t k = 0; k < states; k++) carried[k] = out[k];
      for (size_t k = 0; k < kept; k++) steps[k].push_back(out[states + k]);
    }
    for (size_t k = 0; k < states; k++) rows[k].push_back(carried[k]);
    for (size_t k = 0; k < kept; k++)
      rows[states + k].push_back(stacked(steps[k], 0, node.device()));
  }
  Outputs out;
  for (const std::vector<Value>& each : rows) out.push_back(stacked(each, 0, node.device()));
  return out;
}

// ---- sequences

Value sequence_of(Sequence elements) { return Value(std::move(elements)); }

Outputs construct(const Node& node) { return {sequence_of(node.values())}; }
Outputs empty(const Node&) { return {sequence_of({})}; }
Outputs length(const Node& node) {
  return {host_integer(int64_t(node.value(0).sequence().size()))};
}

Outputs at(const Node& node) {
  const Sequence& s = node.value(0).sequence();
  return {s[size_t(axis_of(node.integer(1), int64_t(s.size())))]};
}

Outputs insert(const Node& node) {
  Sequence s = node.value(0).sequence();
  const auto n = int64_t(s.size());
  const int64_t place = node.has(2) ? node.integer(2) : n;
  if (place < -n || place > n) fail<IndexError>("position {} of a sequence of {}", place, n);
  s.insert(s.begin() + (place < 0 ? place + n : place), node.value(1));
  return {sequence_of(std::move(s))};
}

Outputs erase(const Node& node) {
  Sequence s = node.value(0).sequence();
  const auto n = int64_t(s.size());
  s.erase(s.begin() + axis_of(node.has(1) ? node.integer(1) : -1, n));
  return {sequence_of(std::move(s))};
}

Outputs map(const Node& node) {
  const io::onnx::Graph& body = node.graph("body");
  std::vector<Sequence> out(body.outputs.size());
  for (size_t i = 0; i < node.value(0).sequence().size(); i++) {
    std::vector<Value> inputs;
    for (const Value& v : node.values()) inputs.push_back(v.is_sequence() ? v.sequence().at(i) : v);
    std::vector<Value> given = node.run(body, std::move(inputs));
    for (size_t k = 0; k < out.size(); k++) out[k].push_back(given[k]);
  }
  Outputs all;
  for (Sequence& s : out) all.push_back(sequence_of(std::move(s)));
  return all;
}

Outputs concat(const Node& node) {
  const Sequence& s = node.value(0).sequence();
  if (s.empty()) fail<InvalidArgument>("an empty sequence has no tensors to join");
  std::vector<Tensor> parts;
  for (const Value& v : s) parts.push_back(v.tensor(node.device()));
  const int64_t axis = node.integer("axis");
  const Value joined =
      node.integer("new_axis", 0) ? Tensor::stack(parts, axis) : Tensor::cat(parts, axis);
  return {joined.of(s[0].element())};
}

Outputs split(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t axis = axis_of(node.integer("axis", 0), x.dim());
  Sequence out;
  const bool one_number = node.has(1) && node.value(1).rank() == 0;
  const std::vector<int64_t> sizes =
      node.has(1) ? node.integers(1) : std::vector<int64_t>{1};
  const std::vector<Tensor> parts = node.has(1) && !one_number
                                        ? x.split_with_sizes(Sizes(sizes), axis)
                                        : x.split(sizes.at(0), axis);
  const bool keeps = node.has(1) || node.integer("keepdims", 1) != 0;
  for (const Tensor& p : parts) out.emplace_back(keeps ? p : p.squeeze(axis));
  return {sequence_of(std::move(out))};
}

// ---- optionals: a value, or nothing

Outputs optional(const Node& node) { return {node.has(0) ? node.value(0) : Value()}; }
Outputs get_element(const Node& node) { return {node.value(0)}; }
Outputs has_element(const Node& node) {
  return {host_integer(node.has(0) ? 1 : 0, DType::Bool)};
}

constexpr Operator kRows[] = {
    {"", "ConcatFromSequence", 11, kNewest, concat},
    {"", "If", 1, kNewest, conditional},
    {"", "Loop", 1, kNewest, loop},
    {"", "Optional", 15, kNewest, optional},
    {"", "OptionalGetElement", 15, kNewest, get_element},
    {"", "OptionalHasElement", 15, kNewest, has_element},
    {"", "Scan", 8, 8, batched_scan},
    {"", "Scan", 9, kNewest, scan},
    {"", "SequenceAt", 11, kNewest, at},
    {"", "SequenceConstruct", 11, kNewest, construct},
    {"", "SequenceEmpty", 11, kNewest, empty},
    {"", "SequenceErase", 11, kNewest, erase},
    {"", "SequenceInsert", 11, kNewest, insert},
    {"", "SequenceLength", 11, kNewest, length},
    {"", "SequenceMap", 17, kNewest, map},
    {"", "SplitToSequence", 11, kNewest, split, 0},
};

}  // namespace

std::span<const Operator> control_operators() { return kRows; }

}  // namespace tuff::onnx
