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

constexpr int64_t kMostDrafted = 7;  // with the token before them they are one call
constexpr size_t kLongestMatch = 3, kShortestMatch = 2;  // tokens

// What followed the last tokens of a text where they stood before, the last time.
std::span<const int32_t> draft(std::span<const int32_t> text, size_t most) {
  for (size_t n = kLongestMatch; n >= kShortestMatch && most > 0; n--) {
    if (text.size() <= n) continue;
    const auto end = text.last(n);
    for (size_t at = text.size() - n; at-- > 0;) {
      if (!std::ranges::equal(text.subspan(at, n), end)) continue;
      const auto behind = text.subspan(at + n);
      return behind.first(std::min(behind.size(), most));
    }
  }
  return {};
}

class Generation {
 public:
  Generation(Sequence& sequence, AnswerWriter& writer, int64_t drafted)
      : sequence_(sequence), writer_(writer), drafted_(size_t(drafted)) {}

  void run(std::span<const float> logits) {
    int32_t token = 0;
    if (!writer_.ended()) token = writer_.draw(logits, sequence_.tokens());
    while (!writer_.ended()) token = next(token);
  }

 private:
  // Reads a token, and draws until what was drafted behind it is not what was drawn.
  int32_t next(int32_t token) {
    const std::vector<int32_t> tokens = with_draft(token);
    const size_t known = sequence_.tokens().size();
    const std::span<const float> logits =
        tokens.size() == 1 ? sequence_.read(tokens) : sequence_.read_each(tokens);
    const size_t vocabulary = logits.size() / tokens.size();
    for (size_t i = 0; i < tokens.size(); i++) {
      const auto seen = sequence_.tokens().first(known + i + 1);
      token = writer_.draw(logits.subspan(i * vocabulary, vocabulary), seen);
      const bool goes_on = !writer_.ended() && i + 1 < tokens.size() && token == tokens[i + 1];
      if (goes_on) continue;
      sequence_.truncate(known + i + 1);
      break;
    }
    return token;
  }
  std::vector<int32_t> with_draft(int32_t token) const {
    std::vector<int32_t> out{token};
    if (drafted_ == 0) return out;
    std::vector<int32_t> text(sequence_.tokens().begin(), sequence_.tokens().end());
    text.push_back(token);
    const size_t room = size_t(sequence_.context()) - text.size();
    const auto behind = draft(text, std::min(drafted_, room));
    out.insert(out.end(), behind.begin(), behind.end());
    return out;
  }

  Sequence& sequence_;
  AnswerWriter& writer_;
  const size_t drafted_;
};

}  // namespace

Answer generate(Sequence& sequence, std::span<const int32_t> prompt,
                const GenerateOptions& options) {
  require_prompt(prompt, sequence.context());
  if (options.draft_tokens < 0 || options.draft_tokens > kMostDrafted)
    fail<InvalidArgument>("draft_tokens is {}: a number from 0 to {} was wanted",
                          options.draft_tokens, kMostDrafted);
  AnswerWriter writer(sequence.model().tokenizer(), options,
                      sequence.context() - int64_t(prompt.size()));
  const size_t known = known_tokens(sequence, prompt);
  sequence.truncate(known);
  Generation(sequence, writer, options.draft_tokens).run(sequence.read(prompt.subspan(known)));
  return writer.finish(prompt.size() - known);
}

}  // namespace tuff::language
