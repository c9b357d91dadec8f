// How GGUF files name the cutting of texts before byte pair encoding (tokenizer.ggml.pre): a name
// stands for regular expressions. Called by the reader of GGUF's vocabularies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuff::text {

struct Preset {
  std::vector<std::string_view> patterns;  // each cuts what those before it have left
  bool whole_words = false;                // a piece that is a token is that token
  bool add_bos = false;                    // where the file does not say
};

// Unsupported naming all that are known.
const Preset& preset(std::string_view name);

}  // namespace tuff::text
