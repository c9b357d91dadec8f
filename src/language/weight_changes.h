// What becomes of a model's weights where it is written anew. Made by quantize() and Model::save(),
// asked by write_gguf() and write_folder(). Must never know files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tuff/io.h>

namespace tuff::language {

class WeightChanges {
 public:
  virtual ~WeightChanges() = default;
  // That a tensor is written in. Names are those of GGUF files.
  virtual std::string type(const TensorInfo& t) const = 0;
  virtual bool has_values(const std::string& /*name*/) const { return false; }
  // In place of the file's, `before`; of tensors that have some.
  virtual Tensor values(const std::string& /*name*/, const Tensor& before) const { return before; }
  virtual std::optional<uint32_t> file_type() const { return {}; }  // in place of the file's
};

}  // namespace tuff::language
