// A file of weights, written tensor after tensor: bytes of another file, or numbers in a type of
// GGUF's. Called by quantize() and Model::save(). Must never know which tensors a model has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tuff/io.h>

#include "base/os_stream.h"
#include "io/tensor_bytes.h"

namespace tuff::language {

// Bytes of weights that were written, of one file or several.
class WriteProgress {
 public:
  using Function = std::function<void(uint64_t written, uint64_t total)>;
  explicit WriteProgress(const Function& tell) : tell_(tell) {}
  void expect(uint64_t bytes) { total_ += bytes; }
  void add(uint64_t bytes) {
    written_ += bytes;
    if (tell_) tell_(written_, total_);
  }

 private:
  const Function& tell_;
  uint64_t written_ = 0, total_ = 0;
};

class TensorWriter {
 public:
  // Whole at commit(), else as it was before: see os::OutputFile.
  TensorWriter(const std::string& to, WriteProgress& progress) : progress_(progress), out_(to) {}
  void header(std::span<const uint8_t> bytes) { out_.write(bytes); }
  // As the tensor stands in its file.
  void copy(const TensorInfo& from);
  // Floats as elements or blocks of `type`, which has an encoder. InvalidArgument naming the tensor
  // for numbers that it does not hold.
  void encode(const std::string& name, const Tensor& values, std::string_view type);
  void align(uint64_t alignment);
  void commit() { out_.commit(); }

 private:
  void put(std::span<const uint8_t> bytes);
  WriteProgress& progress_;
  os::OutputFile out_;
  std::map<std::string, std::unique_ptr<io::FileBytes>> sources_;
};

}  // namespace tuff::language
