// Answers in the JSON of OpenAI's API, whole or in the chunks of a stream. Called by the server for
// one request at a time. Must never know of HTTP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tuff/tokenizer.h>

#include "base/json.h"
#include "serve/reply.h"

namespace tuff::serve {

// What every body of one answer begins with.
struct ResponseHead {
  std::string id, model;
  int64_t created = 0;  // seconds since 1970
};

// The tokens of a request.
struct Usage {
  size_t prompt = 0, cached = 0, completion = 0;
};
Json usage_json(const Usage& usage);
// As a body has it: bytes that are no UTF-8 are replaced.
std::string body_text(const Json& json);
// An event of a stream.
std::string event_text(const Json& json);

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  // Takes what has come of a choice. The choices that a chunk of a stream has for it.
  virtual std::vector<Json> add(size_t choice, const Piece& piece) = 0;
  virtual std::vector<Json> finish(size_t choice, const Outcome& outcome) = 0;
  // Everything that was taken.
  virtual Json choices() const = 0;

  Json chunk(Json choice) const;
  Json usage_chunk(const Usage& usage) const;
  Json whole(const Usage& usage) const;

 protected:
  AnswerFormat(ResponseHead head, const char* object, const char* chunk_object)
      : head_(std::move(head)), object_(object), chunk_object_(chunk_object) {}

 private:
  Json body(const char* object, Json choices) const;
  ResponseHead head_;
  const char *object_, *chunk_object_;
};

// `tools`: of the request; null: none.
std::unique_ptr<AnswerFormat> chat_format(ResponseHead head, const Tokenizer& tokenizer,
                                          size_t choices, const Json& tools);
// `echoed`: what the text of each choice begins with.
std::unique_ptr<AnswerFormat> completion_format(ResponseHead head, const Tokenizer& tokenizer,
                                                std::vector<std::string> echoed);

}  // namespace tuff::serve
