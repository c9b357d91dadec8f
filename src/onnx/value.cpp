#include "onnx/value.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "onnx/elements.h"

namespace tuff::onnx {
namespace {

Tensor numeric_tensor(const HostNumbers& from, const std::string& device) {
  if (from.count() == 1)  // no memory, but a number in the kernels that read it
    return Tensor::full(Sizes(from.shape), from.number(0),
                        {.dtype = from.dtype, .device = device});
  const size_t width = size_bytes(from.dtype);
  std::vector<unsigned char> bytes(size_t(from.count()) * width);
  for (size_t i = 0; i < size_t(from.count()); i++) {
    const Scalar s = from.is_float() ? Scalar::of_double(from.dtype, from.floats[i])
                                     : Scalar::of_int(from.dtype, int64_t(from.ints[i]));
    store_scalar(s, bytes.data() + i * width);
  }
  return Tensor::from_bytes(bytes.data(), Sizes(from.shape),
                            {.dtype = from.dtype, .device = device});
}

Tensor symbolic_tensor(const HostNumbers& from, const std::string& device) {
  std::vector<Tensor> each;
  for (const Size& s : from.ints)
    each.push_back(Tensor::full({1}, Number(s), {.dtype = from.dtype, .device = device}));
  return Tensor::cat(each).reshape(Sizes(from.shape));
}

}  // namespace

HostNumbers host_integers(std::vector<Size> numbers) {
  const auto count = int64_t(numbers.size());
  return {.dtype = DType::I64, .shape = {count}, .ints = std::move(numbers), .floats = {}};
}

HostNumbers host_integer(const Size& number, DType dtype) {
  return {.dtype = dtype, .shape = {}, .ints = {number}, .floats = {}};
}

HostNumbers picked(const HostNumbers& from, const std::vector<int64_t>& positions,
                   std::vector<int64_t> shape) {
  HostNumbers out{.dtype = from.dtype, .shape = std::move(shape), .ints = {}, .floats = {}};
  for (const int64_t p : positions) {
    if (from.is_float())
      out.floats.push_back(from.floats.at(size_t(p)));
    else
      out.ints.push_back(from.ints.at(size_t(p)));
  }
  return out;
}

HostNumbers read(const Tensor& tensor) {
  HostNumbers out{.dtype = tensor.dtype(), .shape = {}, .ints = {}, .floats = {}};
  for (const Size& s : tensor.sizes()) out.shape.push_back(int64_t(s));
  const int64_t count = std::accumulate(out.shape.begin(), out.shape.end(), int64_t{1},
                                        std::multiplies<>());
  const size_t width = size_bytes(out.dtype);
  std::vector<unsigned char> bytes(size_t(count) * width);
  tensor.copy_to(bytes.data(), bytes.size());
  for (size_t i = 0; i < size_t(count); i++) {
    const Scalar s = load_scalar(out.dtype, bytes.data() + i * width);
    if (out.is_float())
      out.floats.push_back(s.as_double());
    else
      out.ints.emplace_back(s.as_int());
  }
  return out;
}

std::string shape_text(const Sizes& sizes) {
  std::string out = "(";
  for (size_t i = 0; i < sizes.size(); i++) out += (i ? ", " : "") + sizes[i].str();
  return out + ")";
}

Value Value::of(io::onnx::ElementType type) const {
  if (!onnx::is_narrow(type)) return *this;
  if (sequence_) {
    Sequence out;
    for (const Value& v : *sequence_) out.push_back(v.of(type));
    return Value(std::move(out));
  }
  if (!tensor_.defined() || dtype() != dtype_of(type)) return *this;
  Value out(tensor_);
  out.narrow_ = type;
  return out;
}

io::onnx::ElementType Value::element() const { return is_narrow() ? narrow_ : element_of(dtype()); }

DType Value::dtype() const {
  if (tensor_.defined()) return tensor_.dtype();
  return numbers_ ? numbers_->dtype : DType::Void;
}

Sizes Value::sizes() const {
  if (tensor_.defined()) return tensor_.sizes();
  return numbers_ ? Sizes(numbers_->shape) : Sizes();
}

int64_t Value::rank() const { return int64_t(sizes().size()); }

std::string Value::str() const {
  if (absent()) return "nothing";
  if (sequence_) return fmt::format("a sequence of {}", sequence_->size());
  const std::string elements =
      is_narrow() ? fmt::format("{} in ", io::onnx::name(narrow_)) : std::string();
  return fmt::format("{}{} {}", elements, name(dtype()), shape_text(sizes()));
}

Tensor Value::tensor(const std::string& device) const {
  if (tensor_.defined()) return tensor_;
  if (!numbers_) fail<InvalidArgument>("{} stands where a tensor is wanted", str());
  const bool varies =
      std::ranges::any_of(numbers_->ints, [](const Size& s) { return !s.is_number(); });
  return varies ? symbolic_tensor(*numbers_, device) : numeric_tensor(*numbers_, device);
}

HostNumbers Value::numbers() const {
  if (numbers_) return *numbers_;
  if (!tensor_.defined()) fail<InvalidArgument>("{} stands where numbers are wanted", str());
  return read(tensor_);
}

const Sequence& Value::sequence() const {
  if (!sequence_) fail<InvalidArgument>("{} stands where a sequence is wanted", str());
  return *sequence_;
}

}  // namespace tuff::onnx
