// save(): a function, called with tensors that stand for its inputs, as a model in a file.
#include <algorithm>
#include <filesystem>

#include <tuff/onnx.h>
#include "base/check.h"
#include "base/os_stream.h"
#include "io/formats/onnx_write.h"
#include "io/tensor_pieces.h"
#include "ir/rule.h"
#include "ir/walk.h"
#include "onnx/exporter.h"
#include "tensor/impl.h"

namespace tuff::onnx {
namespace {

using ir::Op;
using ir::UOp;

constexpr int64_t kIrVersion = 8;  // of the format, with operators of version 18 (onnx 1.13)
constexpr uint64_t kLeastOutside = 1024, kAlignment = 4096;  // of contents in a file of their own

std::vector<std::string> names_of(const char* what, const char* letter, size_t count,
                                  const std::vector<std::string>& given) {
  if (!given.empty() && given.size() != count)
    fail<InvalidArgument>("onnx: {} {} names for {} of them: give one for each", given.size(), what,
                          count);
  if (!given.empty()) return given;
  std::vector<std::string> out;
  for (size_t i = 0; i < count; i++)
    out.push_back(count == 1 ? letter : fmt::format("{}{}", letter, i));
  return out;
}

// The variable of an axis, and where that is.
size_t axis_of(const DynamicAxis& a, const std::vector<Tensor>& inputs) {
  if (a.argument >= inputs.size())
    fail<InvalidArgument>("onnx: axis '{}' is of input {}, there are {}", a.name, a.argument,
                          inputs.size());
  const Tensor& x = inputs[a.argument];
  const int64_t axis = a.axis < 0 ? a.axis + x.dim() : a.axis;
  if (axis < 0 || axis >= x.dim())
    fail<InvalidArgument>("onnx: axis {} ('{}') of input {}, which has {} axes", a.axis, a.name,
                          a.argument, x.dim());
  if (a.name.empty())
    fail<InvalidArgument>("onnx: axis {} of input {} varies and has no name", a.axis, a.argument);
  if (a.min < 1 || a.max < a.min)
    fail<InvalidArgument>("onnx: '{}' varies in {}..{}: 1 <= min <= max is needed", a.name, a.min,
                          a.max);
  const int64_t n = x.size(axis);
  if (n < a.min || n > a.max)
    fail<InvalidArgument>("onnx: axis {} of input {} is {}, outside of '{}' in {}..{}", a.axis,
                          a.argument, n, a.name, a.min, a.max);
  return size_t(axis);
}

std::vector<Tensor> stand_ins(const std::vector<Tensor>& inputs,
                              const std::vector<DynamicAxis>& dynamic) {
  std::vector<Sizes> sizes;
  for (const Tensor& x : inputs) {
    if (!x.defined()) fail<InvalidArgument>("onnx: an input is an undefined tensor");
    sizes.push_back(x.sizes());
  }
  std::map<std::string, const DynamicAxis*> seen;
  for (const DynamicAxis& a : dynamic) {
    const size_t axis = axis_of(a, inputs);
    const auto [it, is_new] = seen.emplace(a.name, &a);
    if (!is_new && (it->second->min != a.min || it->second->max != a.max))
      fail<InvalidArgument>("onnx: '{}' is in {}..{} and in {}..{}", a.name, it->second->min,
                            it->second->max, a.min, a.max);
    sizes[a.argument][axis] = detail::size_of(ir::Dim(ir::variable(a.name, a.min, a.max)));
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < inputs.size(); i++)
    out.push_back(detail::stand_in(inputs[i].dtype(), sizes[i], inputs[i].device()));
  return out;
}

// Tensors that the function has assigned to get back what they were before; whether there are any.
bool take_back_assignments() {
  std::vector<Tensor> changed;
  for (const Tensor& t : detail::pending_assigns()) {
    const UOp u = detail::uop(t);
    if (ir::has_place(std::span(&u, 1))) changed.push_back(t);
  }
  const detail::RealizeGuard alone;
  const detail::ReplaceGuard replacing;
  for (const Tensor& t : changed) {
    UOp u = t.impl()->uop;
    while (u->op == Op::Assign && ir::has_place(std::span(&u, 1))) u = u->src(0);
    t.impl()->uop = u;
  }
  return !changed.empty();
}

std::vector<Tensor> traced(const Jit::Function& function, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  try {
    out = function(inputs);
  } catch (...) {
    take_back_assignments();
    throw;
  }
  if (take_back_assignments())
    fail<Unsupported>(
        "onnx: the function changes tensors of outside by what its inputs are (running statistics "
        "in training mode, say), which a model cannot: use evaluation mode, or return the values");
  if (out.empty()) fail<InvalidArgument>("onnx: the function returned no tensors");
  for (const Tensor& t : out)
    if (!t.defined()) fail<InvalidArgument>("onnx: the function returned an undefined tensor");
  return out;
}

// Also in the steps of loops, which no walk comes into.
void refuse_draws(std::span<const UOp> roots) {
  for (const ir::Node* n : ir::toposort(roots)) {
    if (n->op == Op::Threefry)
      refuse(*n, "random numbers are drawn: use evaluation mode, give them as an input, realize() "
                 "before what is to be a constant, or allow it (SaveOptions::draws, draws=True)");
    if (n->op == Op::Loop) refuse_draws(n->get<ir::LoopArg>().body->next);
  }
}

uint64_t size_bytes_of(const Weight& w) {
  return uint64_t(ir::element_count(w.shape)) * size_bytes(w.tensor.dtype());
}

// A model, and where the contents of its weights go.
struct Translated {
  io::onnx::Model model;
  std::vector<Weight> weights;
  size_t first_weight = 0;  // of the graph's initializers
};

Translated translated(const Jit::Function& function, const std::vector<Tensor>& inputs,
                      const SaveOptions& options) {
  const detail::GradGuard closed_forms;  // without gradients nothing tells what led to a value
  const std::vector<std::string> input_names =
      names_of("input", "x", inputs.size(), options.input_names);
  const std::vector<Tensor> places = stand_ins(inputs, options.dynamic);
  std::vector<Tensor> known;
  for (const nn::NamedTensor& p : options.parameters)
    if (p.tensor.defined()) known.push_back(p.tensor);
  Tensor::realize(known);
  const std::vector<Tensor> results = traced(function, places);
  if (!options.draws) {
    std::vector<UOp> roots;
    for (const Tensor& t : results) roots.push_back(detail::uop(t));
    refuse_draws(roots);
  }
  const std::vector<std::string> output_names =
      names_of("output", "y", results.size(), options.output_names);
  Exporter e;
  for (const std::string& n : input_names) e.reserve(n);
  for (const std::string& n : output_names) e.reserve(n);
  for (size_t i = 0; i < places.size(); i++) e.add_input(detail::uop(places[i]), input_names[i]);
  for (const nn::NamedTensor& p : options.parameters)
    if (p.tensor.defined()) e.name_memory(p.tensor, p.name);
  for (size_t i = 0; i < results.size(); i++)
    e.add_output(detail::uop(results[i]), output_names[i]);
  Translated out;
  out.model.ir_version = kIrVersion;
  out.model.producer_name = "tuff";
  out.model.opsets = {{"", kWrittenOpset}};
  out.model.graph = e.take(out.weights);
  out.model.graph.name = "function";
  return out;
}

// Weights in a file of their own, each where pages begin.
void put_outside(Translated& t, const std::string& location, os::OutputFile& file) {
  const std::vector<uint8_t> zeros(kAlignment, 0);
  for (size_t i = 0; i < t.weights.size(); i++) {
    const uint64_t bytes = size_bytes_of(t.weights[i]);
    if (bytes < kLeastOutside) continue;
    file.write(std::span(zeros).first((kAlignment - file.offset() % kAlignment) % kAlignment));
    t.model.graph.initializers[t.first_weight + i].range =
        io::onnx::FileRange{location, file.offset(), bytes};
    io::for_each_piece(t.weights[i].tensor,
                       [&](std::span<const uint8_t> piece) { file.write(piece); });
  }
}

void put_inside(const Translated& t, os::OutputFile& file) {
  const auto is_weight = [&](size_t i) { return i >= t.first_weight; };
  for (const io::OnnxPiece& piece : io::encode_onnx(t.model, is_weight)) {
    if (const auto* bytes = std::get_if<std::string>(&piece)) {
      file.write({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
      continue;
    }
    const Weight& w = t.weights[std::get<size_t>(piece) - t.first_weight];
    if (size_bytes_of(w) == 0) continue;
    io::for_each_piece(w.tensor, [&](std::span<const uint8_t> part) { file.write(part); });
  }
}

}  // namespace

void save(const std::string& path, const Jit::Function& function, const std::vector<Tensor>& inputs,
          const SaveOptions& options) {
  if (!function) fail<InvalidArgument>("onnx: no function given");
  if (options.external_from > io::kMostOnnxBytes)
    fail<InvalidArgument>("onnx: external_from is {}: a model's own file has less than {} bytes",
                          options.external_from, io::kMostOnnxBytes);
  Translated t = translated(function, inputs, options);
  t.first_weight = t.model.graph.initializers.size();
  uint64_t total = 0;
  for (const Weight& w : t.weights) {
    io::onnx::TensorData data;
    data.name = w.name, data.type = element_type(w.tensor.dtype());
    for (const ir::Dim& d : w.shape) data.dims.push_back(d.value());
    t.model.graph.initializers.push_back(std::move(data));
    total += size_bytes_of(w);
  }
  // Both files are whole before either takes the place of one that was there.
  os::OutputFile file(path);
  if (total >= options.external_from && total > 0) {
    const std::string outside = path + ".data";
    os::OutputFile contents(outside);
    put_outside(t, std::filesystem::path(outside).filename().string(), contents);
    put_inside(t, file);
    contents.commit();
  } else {
    put_inside(t, file);
  }
  file.commit();
}

}  // namespace tuff::onnx
