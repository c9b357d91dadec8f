#include <algorithm>

#include <tuff/language.h>

#include "language/answer_writer.h"
#include "language/context_shift.h"
#include "language/draft.h"

namespace tuff::language {
namespace {

// What is known of the prompt is not read again, but for one token: logits are those of a call.
size_t known_tokens(const Sequence& sequence, std::span<const int32_t> prompt) {
  return std::min(equal_tokens(prompt, sequence.tokens()), prompt.size() - 1);
}

constexpr size_t kLeastMoved = 32;  // tokens for which a shift pays

// What a prompt no longer has of the text so far, the oldest turns of a conversation say, is
// forgotten, so that the rest is not read again.
void drop_what_lacks(Sequence& sequence, std::span<const int32_t> prompt) {
  const size_t known = known_tokens(sequence, prompt);
  const std::span<const int32_t> read = sequence.tokens().subspan(known),
                                 next = prompt.subspan(known);
  if (next.size() < kLeastMoved) return;
  const auto found = std::ranges::search(read, next.first(kLeastMoved));
  if (!found.empty()) sequence.shift(known, size_t(found.begin() - read.begin()));
}

class Generation {
 public:
  Generation(Sequence& sequence, AnswerWriter& writer, const GenerateOptions& options)
      : sequence_(sequence), writer_(writer), options_(options) {}

  void run(std::span<const float> logits) {
    int32_t token = 0;
    if (!writer_.ended()) token = writer_.draw(logits, sequence_.tokens());
    while (!writer_.ended()) token = next(token);
  }

 private:
  // Reads a token, and draws until what was drafted behind it is not what was drawn.
  int32_t next(int32_t token) {
    make_room();
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
  // Answers end where the context does, unless they are to go on.
  void make_room() {
    const size_t read = sequence_.tokens().size(), keep = size_t(options_.keep);
    if (int64_t(read) == sequence_.context()) sequence_.shift(keep, forgotten(read, keep));
  }
  std::vector<int32_t> with_draft(int32_t token) const {
    std::vector<int32_t> out{token};
    if (options_.draft_tokens == 0) return out;
    std::vector<int32_t> text(sequence_.tokens().begin(), sequence_.tokens().end());
    text.push_back(token);
    const size_t room = size_t(sequence_.context()) - text.size();
    const size_t most = std::min(size_t(options_.draft_tokens), room);
    if (options_.draft) {
      const std::vector<int32_t> behind = proposed(*options_.draft, text, most);
      out.insert(out.end(), behind.begin(), behind.end());
    } else {
      const auto behind = followed_before(text, most);
      out.insert(out.end(), behind.begin(), behind.end());
    }
    return out;
  }

  Sequence& sequence_;
  AnswerWriter& writer_;
  const GenerateOptions& options_;
};

}  // namespace

Answer generate(Sequence& sequence, std::span<const int32_t> prompt,
                const GenerateOptions& options) {
  require_prompt(prompt, sequence.context());
  require_drafts(options, options.draft != nullptr);
  if (options.draft) require_same_vocabulary(sequence.model(), options.draft->model());
  require_keep(options, sequence.context());
  AnswerWriter writer(sequence.model().tokenizer(), options,
                      room_behind(prompt.size(), options, sequence.context()));
  if (options.keep >= 0) drop_what_lacks(sequence, prompt);
  const size_t known = known_tokens(sequence, prompt);
  sequence.truncate(known);
  Generation(sequence, writer, options).run(sequence.read(prompt.subspan(known)));
  return writer.finish(prompt.size() - known);
}

}  // namespace tuff::language
