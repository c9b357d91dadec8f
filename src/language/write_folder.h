// A folder of Hugging Face's made of another one: its files of weights with the tensors that they
// have, and the other files as they are. Called by Model::save(). Must never know why weights
// change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tuff/language.h>

#include "language/hugging_face.h"
#include "language/weight_changes.h"

namespace tuff::language {

// Plain names of the files that a folder of Hugging Face's is written as.
std::vector<std::string> folder_files(const std::string& from);

// How a folder's weights are written anew.
struct FolderOptions {
  std::string type;  // F32, F16 or BF16, if config.json is to name it; "": as it does
  const std::function<void(uint64_t, uint64_t)>& progress;
};
// `file` is what tuff::load() gives of the weights of `from`. Each file is whole or as it was
// before, and none is written before all can be. IoError as tuff::load() and save().
Quantized write_folder(const std::string& from, const TensorDict& file, const std::string& to,
                       const FolderLayout& layout, const WeightChanges& changes,
                       const FolderOptions& options);

}  // namespace tuff::language
