// Models as Hugging Face's folders hold them: config.json, safetensors, names and layouts of
// transformers. Called by Model::open(). Must never know how they are computed with.
#pragma once

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

// The tensors of model.safetensors, or of the files that model.safetensors.index.json names, as a
// GGUF file would name them and hold their numbers. IoError as load().
TensorDict hugging_face_tensors(const std::string& folder, const Config& config,
                                const tuff::LoadOptions& options);

}  // namespace tuff::language
