#include "cli/onnx_inputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/ranges.h>

#include <tuff/io.h>
#include "base/check.h"
#include "base/nearest.h"
#include "base/parse_number.h"
#include "base/split_mix.h"

namespace tuff::cli {
namespace {

constexpr uint64_t kInputSeed = 1;

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> out;
  for (const onnx::ValueInfo& v : values) out.push_back(v.name);
  return out;
}

// The input that NAME=VALUE begins with; names may hold '=' themselves.
const std::string& input_named(const std::string& text, const std::vector<std::string>& names) {
  const std::string* found = nullptr;
  for (const std::string& n : names)
    if (text.starts_with(n + "=") && (!found || n.size() > found->size())) found = &n;
  if (found) return *found;
  const size_t end = text.find('=');
  if (end == std::string::npos)
    throw UsageError(fmt::format("--input {}: NAME=FILE or NAME=SHAPE belongs there", text));
  const std::string name = text.substr(0, end);
  throw UsageError(fmt::format("--input {}: the model has no input '{}'; it has {}{}", text, name,
                               fmt::join(names, ", "), did_you_mean(name, names)));
}

// "2x3x16"; nothing where the text is none.
std::optional<std::vector<int64_t>> shape_in(const std::string& text) {
  if (text.ends_with('x')) return std::nullopt;
  std::vector<int64_t> out;
  for (const std::string& part : CLI::detail::split(text, 'x')) {
    const auto n = parse_number<int64_t>(part);
    if (!n || *n < 0) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

std::optional<Scalar> scalar_in(const onnx::ValueInfo& v, const std::string& text) {
  if (!v.has_rank || !v.shape.empty() || v.dtype == DType::Void) return std::nullopt;
  if (is_float(v.dtype)) {
    const auto x = parse_number<double>(text);
    return x ? std::optional(Scalar::of_double(v.dtype, *x)) : std::nullopt;
  }
  const auto n = parse_number<int64_t>(text);
  return n ? std::optional(Scalar::of_int(v.dtype, *n)) : std::nullopt;
}

Tensor scalar(const Scalar& x, const std::string& device) {
  std::vector<uint8_t> bytes(size_bytes(x.dtype));
  store_scalar(x, bytes.data());
  return Tensor::from_bytes(bytes.data(), {}, {.dtype = x.dtype, .device = device});
}

// Floats in [-1, 1), the same in every run; 1 for all else, which is an index, a length and a mask.
Tensor made_up(const onnx::ValueInfo& v, const std::vector<int64_t>& sizes,
               const std::string& device) {
  constexpr int64_t kMost = int64_t(1) << 32;
  const bool empty = std::ranges::find(sizes, 0) != sizes.end();
  int64_t count = empty ? 0 : 1;
  for (const int64_t n : sizes) {
    if (!empty && n > kMost / count)
      throw UsageError(fmt::format("--input {}={}: more than {} elements: give a file", v.name,
                                   fmt::join(sizes, "x"), kMost));
    count *= n;
  }
  const size_t width = size_bytes(v.dtype);
  std::vector<uint8_t> bytes(size_t(count) * width);
  SplitMix64 random(kInputSeed);
  for (size_t i = 0; i < size_t(count); i++) {
    const double x = double(random.next() >> 11) * 0x1p-52 - 1;
    store_scalar(is_float(v.dtype) ? Scalar::of_double(v.dtype, x) : Scalar::of_int(v.dtype, 1),
                 bytes.data() + i * width);
  }
  return Tensor::from_bytes(bytes.data(), sizes, {.dtype = v.dtype, .device = device});
}

Tensor tensor_in(const std::string& path, const std::string& device) {
  const TensorDict file = load(path, {.device = device});
  if (file.size() != 1)
    fail<InvalidArgument>("{}: an input is a file of one tensor, this has {}", path, file.size());
  return file.at(file.names()[0]);
}

Tensor input_of(const onnx::ValueInfo& v, const std::string& value, const std::string& device) {
  const auto shape = shape_in(value);
  const auto number = scalar_in(v, value);
  if (std::filesystem::exists(value) || (!shape && !number)) return tensor_in(value, device);
  if (number) return scalar(*number, device);
  if (v.dtype == DType::Void)
    throw UsageError(
        fmt::format("--input {}: a {} cannot be made up: give a file", v.name, v.type));
  return made_up(v, *shape, device);
}

void refuse_sequences(const std::vector<onnx::ValueInfo>& values, const char* what) {
  for (const onnx::ValueInfo& v : values)
    if (v.is_sequence)
      throw UsageError(fmt::format("{} '{}' is of type '{}', files hold tensors alone: call the "
                                   "model from Python or C++",
                                   what, v.name, v.type));
}

}  // namespace

void add_onnx_inputs_option(CLI::App& c, std::vector<std::string>& inputs) {
  c.add_option("--input", inputs,
               "For the input of this name a file of one tensor, as .npy, or a shape "
               "(\"1x3x48x320\"), which is filled: floats with the same random numbers in every "
               "run, all else with 1, or where it is a scalar its value; once for each input")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE|NAME=SHAPE");
}

onnx::Values read_onnx_inputs(const std::vector<std::string>& given, const onnx::Model& model) {
  const std::vector<onnx::ValueInfo>& inputs = model.description().inputs;
  const std::vector<std::string> names = names_of(inputs);
  refuse_sequences(inputs, "input");
  refuse_sequences(model.description().outputs, "output");
  onnx::Values out;
  for (const std::string& text : given) {
    const std::string& name = input_named(text, names);
    if (out.contains(name)) throw UsageError(fmt::format("--input {}: given twice", name));
    const auto info = std::ranges::find(inputs, name, &onnx::ValueInfo::name);
    out.emplace(name, input_of(*info, text.substr(name.size() + 1), model.device()));
  }
  for (const onnx::ValueInfo& v : inputs)
    if (!out.contains(v.name) && !v.is_optional)
      throw UsageError(
          fmt::format("--input {}=FILE is missing: {}{}", v.name, v.type,
                      v.has_rank ? fmt::format(" ({})", fmt::join(v.shape, ", ")) : std::string()));
  return out;
}

}  // namespace tuff::cli
