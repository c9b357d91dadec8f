#include <algorithm>

#include <tuff/language.h>

#include "base/check.h"
#include "language/answer_writer.h"

namespace tuff::language {
namespace {

// What is known of the prompt is not read again, but for one token: logits are those of a call.
size_t known_tokens(const Sequence& sequence, std::span<const int32_t> prompt) {
  const auto differs = std::ranges::mismatch(prompt, sequence.tokens()).in1;
  return std::min(size_t(differs - prompt.begin()), prompt.size() - 1);
}

}  // namespace

Answer generate(Sequence& sequence, std::span<const int32_t> prompt,
                const GenerateOptions& options) {
  require_prompt(prompt, sequence.context());
  AnswerWriter writer(sequence.model().tokenizer(), options,
                      sequence.context() - int64_t(prompt.size()));
  const size_t known = known_tokens(sequence, prompt);
  sequence.truncate(known);
  std::span<const float> logits = sequence.read(prompt.subspan(known));
  while (!writer.ended()) {
    const int32_t token = writer.draw(logits, sequence.tokens());
    if (!writer.ended()) logits = sequence.read({&token, 1});
  }
  return writer.finish(prompt.size() - known);
}

}  // namespace tuff::language
