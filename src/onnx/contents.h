// The tensors that a model file holds: which become numbers of the host, and which tensors whose
// contents are read when they are first used. Called by the importer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "io/formats/onnx_model.h"
#include "io/tensor_bytes.h"
#include "onnx/value.h"

namespace tuff::onnx {

class Contents {
 public:
  // `source`: the model's own file, or null where all contents are in memory. Those beside it lie
  // in `folder`.
  Contents(std::unique_ptr<io::ByteSource> source, std::string folder, std::string device);

  // The same value whenever it is asked for. IoError for contents that are not there, Unsupported
  // for an element type that tuff lacks. Thread-safe.
  Value value(const io::onnx::TensorData& data) const;
  Value dense(const io::onnx::SparseTensorData& data) const;
  Tensor tensor(const io::onnx::TensorData& data) const;

 private:
  io::TensorBytes& file(const std::string& location) const;
  std::vector<uint8_t> bytes(const io::onnx::TensorData& data) const;
  Tensor made(const io::onnx::TensorData& data) const;
  Tensor unpacked(const io::onnx::TensorData& data) const;
  Value with_numbers(const io::onnx::TensorData& data, Tensor tensor) const;

  std::string folder_, device_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<io::TensorBytes>> files_;  // under mutex_
  mutable std::map<const void*, Value> values_;                           // under mutex_
};

}  // namespace tuff::onnx
