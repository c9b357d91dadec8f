// A GGUF file made of another one: its metadata, and its tensors in the same order. Called by
// quantize() and Model::save(). Must never know why weights change.
#pragma once

#include <functional>
#include <string>

#include <tuff/language.h>

#include "language/weight_changes.h"

namespace tuff::language {

// InvalidArgument for a file that is there already.
void require_new_file(const std::string& to, bool overwrite);

// `file` is what tuff::load() gives of `from`. Memory holds no more than a tensor; `to` is whole or
// as it was before. Unsupported for a type that tuff does not decode; IoError as tuff::load() and
// save().
Quantized write_gguf(const std::string& from, const TensorDict& file, const std::string& to,
                     const WeightChanges& changes,
                     const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace tuff::language
