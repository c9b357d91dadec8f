// Which type each weight of a GGUF file is written in. Called by quantize() and Model::save(). Must
// never know contents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tuff/io.h>

namespace tuff::language {

struct Mix;

// Types of weights as they are mixed by what --type names.
class WeightTypes {
 public:
  // InvalidArgument lists the names. `tensors`: all of the file.
  WeightTypes(const std::string& name, const std::vector<TensorInfo>& tensors);
  // By the tensor's name in GGUF files. What is small and matters keeps its own.
  std::string_view of(const TensorInfo& t) const;
  uint32_t file_type() const;  // the number that general.file_type has for it

 private:
  std::string_view wanted(std::string_view name) const;
  const Mix& mix_;
  int64_t layers_ = 0;
  bool tied_ = true;
};

}  // namespace tuff::language
