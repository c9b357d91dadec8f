// Models as Hugging Face's folders hold them: config.json, safetensors, names and layouts of
// transformers. Called by Model::open(). Must never know how they are computed with.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tuff/io.h>

#include "language/config.h"

namespace tuff::language {

// Of a config.json's text. InvalidArgument names a key that is missing or makes no sense;
// Unsupported a model type or feature.
Config hugging_face_config(std::string_view json);

// How an encoder's tokens become one vector, of the text of 1_Pooling/config.json
// (sentence-transformers).
Config::Pooling hugging_face_pooling(std::string_view json);

// Where a tensor of a folder's files stands in a model.
struct FolderTensor {
  std::string name;              // of GGUF files; "": the model has no use for it
  std::optional<size_t> expert;  // it is that one of the tensor's
};

// Names and layouts of a folder's files, and those of GGUF files.
class FolderLayout {
 public:
  FolderLayout(const Config& config, const TensorDict& file);
  // Unsupported for one of experts that tuff does not know.
  FolderTensor place(const std::string& name) const;
  // The numbers of a GGUF file's tensor, as it holds them, of those of a folder's; and back.
  Tensor read(const std::string& name, const Tensor& numbers) const;
  Tensor written(const std::string& name, const Tensor& numbers) const;

 private:
  bool is_transposed(const std::string& name, const Tensor& numbers) const;
  bool has_one_added(const std::string& name) const;
  std::string architecture_;
  bool post_norms_;
};

// model.safetensors.index.json, or model.safetensors.
std::string hugging_face_weights(const std::string& folder);
// The tensors of model.safetensors, or of the files that model.safetensors.index.json names, as a
// GGUF file would name them and hold their numbers. IoError as load().
TensorDict hugging_face_tensors(const std::string& folder, const Config& config,
                                const tuff::LoadOptions& options);

}  // namespace tuff::language
