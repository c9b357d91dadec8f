#include "onnx/node.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tuff::onnx {

using io::onnx::Attribute;
using io::onnx::ElementType;

namespace {

// Numbers that are reckoned one by one on the host.
constexpr int64_t kMostFolded = 4096;

[[noreturn]] void refuse_absent(std::string_view name) {
  fail<InvalidArgument>("the attribute '{}' is missing, or of another kind", name);
}

}  // namespace

const Value& Inputs::value(size_t i) const {
  if (!has(i)) fail<InvalidArgument>("input {} is missing", i);
  return values_[i];
}

std::vector<Tensor> Inputs::tensors(size_t from) const {
  std::vector<Tensor> out;
  for (size_t i = from; i < count(); i++) out.push_back(tensor(i));
  return out;
}

std::vector<Size> Inputs::extents(size_t i) const {
  HostNumbers n = value(i).numbers();
  if (n.is_float()) fail<InvalidArgument>("input {} holds floats where integers are wanted", i);
  return std::move(n.ints);
}

std::vector<int64_t> Inputs::integers(size_t i) const {
  const std::vector<Size> e = extents(i);
  return {e.begin(), e.end()};
}

std::vector<double> Inputs::floats(size_t i) const {
  HostNumbers n = value(i).numbers();
  if (n.is_float()) return std::move(n.floats);
  std::vector<double> out;
  for (const Size& s : n.ints) out.push_back(double(int64_t(s)));
  return out;
}

int64_t Inputs::integer(size_t i) const {
  const std::vector<int64_t> all = integers(i);
  if (all.size() != 1)
    fail<InvalidArgument>("input {} has {} elements where one is wanted", i, all.size());
  return all[0];
}

double Inputs::number(size_t i) const {
  const std::vector<double> all = floats(i);
  if (all.size() != 1)
    fail<InvalidArgument>("input {} has {} elements where one is wanted", i, all.size());
  return all[0];
}

bool Inputs::folds() const {
  return std::ranges::all_of(values_, [](const Value& v) {
    return v.absent() || (v.folds() && v.numbers().count() <= kMostFolded);
  });
}

const Attribute* Attributes::find(std::string_view name) const {
  const Attribute* found = source_.attribute(name);
  return found && !found->reference.empty() ? around_.bound(found->reference) : found;
}

int64_t Attributes::integer(std::string_view name, std::optional<int64_t> otherwise) const {
  const Attribute* a = find(name);
  if (a && !a->ints.empty()) return a->ints[0];
  if (!otherwise) refuse_absent(name);
  return *otherwise;
}

int64_t Attributes::positive(std::string_view name, std::optional<int64_t> otherwise) const {
  const int64_t n = integer(name, otherwise);
  if (n < 1 || n > std::numeric_limits<int32_t>::max())
    fail<InvalidArgument>("the attribute '{}' is {}: at least 1 is wanted, below 2^31", name, n);
  return n;
}

double Attributes::number(std::string_view name, std::optional<double> otherwise) const {
  const Attribute* a = find(name);
  if (a && !a->floats.empty()) return double(a->floats[0]);
  if (!otherwise) refuse_absent(name);
  return *otherwise;
}

std::string Attributes::text(std::string_view name, std::optional<std::string> otherwise) const {
  const Attribute* a = find(name);
  if (a && !a->strings.empty()) return a->strings[0];
  if (!otherwise) refuse_absent(name);
  return *otherwise;
}

std::vector<int64_t> Attributes::integers(std::string_view name,
                                          std::vector<int64_t> otherwise) const {
  const Attribute* a = find(name);
  return a ? a->ints : otherwise;
}

std::vector<double> Attributes::numbers(std::string_view name,
                                        std::vector<double> otherwise) const {
  const Attribute* a = find(name);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : otherwise;
}

std::vector<std::string> Attributes::texts(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? a->strings : std::vector<std::string>();
}

Value Attributes::constant(std::string_view name) const {
  const Attribute* a = find(name);
  if (!a || a->tensors.empty()) refuse_absent(name);
  return around_.constant(a->tensors[0]);
}

const io::onnx::Graph& Attributes::graph(std::string_view name) const {
  const Attribute* a = find(name);
  if (!a || a->graphs.empty()) refuse_absent(name);
  return *a->graphs[0];
}

std::optional<ElementType> Attributes::element(std::string_view name) const {
  const Attribute* a = find(name);
  if (!a || a->ints.empty()) return std::nullopt;
  const auto type = ElementType(a->ints[0]);
  if (dtype_of(type) == DType::Void)
    fail<Unsupported>("the element type {} is not supported", io::onnx::name(type));
  return type;
}

std::optional<DType> Attributes::dtype(std::string_view name) const {
  const std::optional<ElementType> found = element(name);
  return found ? std::optional(dtype_of(*found)) : std::nullopt;
}

std::optional<std::vector<int64_t>> Node::integers(std::string_view name, size_t input) const {
  if (has(input)) return integers(input);
  if (has(name)) return integers(name);
  return std::nullopt;
}

}  // namespace tuff::onnx
