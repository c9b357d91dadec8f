// AnswerWriter: tokens of one answer as they are drawn, the text and log probabilities that come of
// them, and how the answer ends. Called by generate() and Batch. Must never know what reads tokens.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tuff/language.h>

#include "text/grammar/token_filter.h"

namespace tuff::language {

// Text that may go on as one of the texts that end an answer is held back.
class StopTexts {
 public:
  explicit StopTexts(const std::vector<std::string>& stops);
  // What is certain now.
  std::string push(const std::string& text);
  std::string finish() { return std::exchange(held_, {}); }
  bool ended() const { return ended_; }  // one of the texts has come

 private:
  size_t beginning() const;
  const std::vector<std::string>& stops_;
  std::string held_;
  bool ended_ = false;
};

class AnswerWriter {
 public:
  // `room`: tokens that the context has left behind the prompt.
  AnswerWriter(const Tokenizer& tokenizer, GenerateOptions options, int64_t room);
  AnswerWriter(const AnswerWriter&) = delete;
  bool ended() const { return finish_.has_value(); }
  // The token behind `seen`, the prompt and what was drawn before. Not after the end;
  // -1 where it has failed, which ends it.
  int32_t draw(std::span<const float> logits, std::span<const int32_t> seen);
  // Once. `prompt_tokens`: those that were read.
  Answer finish(size_t prompt_tokens);

 private:
  void write(int32_t token, std::span<const float> logits);
  bool say(const std::string& text);
  bool tell(std::string_view text);

  const Tokenizer& tokenizer_;
  const GenerateOptions options_;
  const size_t most_;
  Sampler sampler_;
  std::optional<text::grammar::TokenFilter> filter_;
  TextStream stream_;
  StopTexts stops_;
  Answer answer_;
  std::optional<Finish> finish_;
  size_t told_ = 0;  // tokens
  uint64_t begin_ns_, first_ns_;
};

// InvalidArgument for an empty prompt and one beyond the context.
void require_prompt(std::span<const int32_t> prompt, int64_t context);
// Of a token, and of the `count` most likely ones.
TokenLogprobs logprobs_of(std::span<const float> logits, int32_t chosen, int64_t count);

}  // namespace tuff::language
