// What flows along the edges of a model: a tensor; numbers that the host knows, from which shapes
// are reckoned; a sequence; nothing. Called by the importer and by operators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tuff/tensor.h>
#include "io/formats/onnx_model.h"

namespace tuff::onnx {

// Numbers in row-major order. An integer may be an extent that varies inside a Jit.
struct HostNumbers {
  DType dtype = DType::I64;
  std::vector<int64_t> shape;
  std::vector<Size> ints;      // of integers and bools
  std::vector<double> floats;  // of floats
  bool is_float() const { return tuff::is_float(dtype); }
  int64_t count() const { return int64_t(is_float() ? floats.size() : ints.size()); }
  Number number(size_t i) const { return is_float() ? Number(floats.at(i)) : Number(ints.at(i)); }
};
HostNumbers host_integers(std::vector<Size> numbers);  // a vector of I64
HostNumbers host_integer(const Size& number, DType dtype = DType::I64);  // a scalar
// The elements at these positions of the flattened numbers, in another shape.
HostNumbers picked(const HostNumbers& from, const std::vector<int64_t>& positions,
                   std::vector<int64_t> shape);
// Realizes and waits.
HostNumbers read(const Tensor& tensor);

class Value;
using Sequence = std::vector<Value>;

class Value {
 public:
  Value() = default;  // an optional without a value, an input that was left out
  Value(Tensor tensor) : tensor_(std::move(tensor)) {}
  Value(HostNumbers numbers) : numbers_(std::make_shared<HostNumbers>(std::move(numbers))) {}
  explicit Value(Sequence elements) : sequence_(std::make_shared<Sequence>(std::move(elements))) {}
  // A constant that has been read: operators that need numbers get them without waiting.
  Value(Tensor tensor, HostNumbers numbers) : Value(std::move(numbers)) {
    tensor_ = std::move(tensor);
  }

  // The same, or the tensors of the same sequence, as elements of a type that is held in their
  // dtype; of another type, and of nothing, it stays what it is.
  Value of(io::onnx::ElementType type) const;

  // Of a tensor and of numbers. Undefined: of no such value.
  io::onnx::ElementType element() const;
  bool is_narrow() const { return narrow_ != io::onnx::ElementType::Undefined; }
  bool absent() const { return !tensor_.defined() && !numbers_ && !sequence_; }
  bool is_sequence() const { return sequence_ != nullptr; }
  // Whether results are reckoned on the host. Floats that a model holds as parameters are not: they
  // may be trained.
  bool folds() const { return numbers_ && !(tensor_.defined() && numbers_->is_float()); }
  bool has_numbers() const { return numbers_ != nullptr; }
  DType dtype() const;
  int64_t rank() const;
  Sizes sizes() const;
  std::string str() const;  // "float32 (2, 3)", as errors show it

  // InvalidArgument for a sequence and for nothing.
  Tensor tensor(const std::string& device) const;
  HostNumbers numbers() const;  // those of a tensor are waited for
  const Sequence& sequence() const;

 private:
  Tensor tensor_;
  // What the tensor holds in a wider dtype.
  io::onnx::ElementType narrow_ = io::onnx::ElementType::Undefined;
  std::shared_ptr<const HostNumbers> numbers_;
  std::shared_ptr<const Sequence> sequence_;
};

std::string shape_text(const Sizes& sizes);

}  // namespace tuff::onnx
