// The requests of OpenAI's API, read and checked. Called by the server. Must never know of HTTP,
// nor run anything of a model.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tuff/language.h>

#include "base/json.h"

namespace tuff::serve {

// What requests for answers have in common.
struct Generation {
  language::GenerateOptions options;
  int64_t choices = 1;  // answers to each prompt
  bool stream = false, include_usage = false;
  int64_t seed = -1;  // -1: each answer has another
};

struct ChatRequest {
  std::string model;  // empty: whichever there is
  Json messages;      // as templates take them: contents are texts, arguments objects
  Json tools;         // null: none
  Json forced;        // those of them one of which is to be called; null: the model decides
  Json variables;     // an object, more names for the template; null: none
  Generation generation;
};

// A text, or the ids of its tokens.
using Input = std::variant<std::string, std::vector<int32_t>>;

struct CompletionRequest {
  std::string model;
  std::vector<Input> prompts;
  bool echo = false;  // the prompt is a part of the answer's text
  Generation generation;
};

struct EmbeddingRequest {
  std::string model;
  std::vector<Input> inputs;
  bool base64 = false;
};

// RequestError names the member that is wrong, its value, and what was wanted.
ChatRequest read_chat_request(std::string_view body);
CompletionRequest read_completion_request(std::string_view body);
EmbeddingRequest read_embedding_request(std::string_view body);

}  // namespace tuff::serve
