#include <algorithm>
#include <optional>

#include <tuff/language.h>

#include "base/check.h"
#include "base/os.h"

namespace tuff::language {
namespace {

// Text that may go on as one of the texts that end an answer is held back.
class StopTexts {
 public:
  explicit StopTexts(const std::vector<std::string>& stops) : stops_(stops) {
    if (std::ranges::find(stops, "") != stops.end())
      fail<InvalidArgument>("an empty text cannot end an answer");
  }
  // What is certain now. `ended`: one of the texts has come.
  std::string push(const std::string& text) {
    held_ += text;
    size_t at = std::string::npos;
    for (const std::string& s : stops_) at = std::min(at, held_.find(s));
    ended_ = at != std::string::npos;
    if (!ended_) at = held_.size() - beginning();
    std::string out = held_.substr(0, at);
    held_.erase(0, ended_ ? held_.size() : at);
    return out;
  }
  std::string finish() { return std::exchange(held_, {}); }
  bool ended() const { return ended_; }

 private:
  // How much of the end may be the beginning of such a text.
  size_t beginning() const {
    size_t most = 0;
    for (const std::string& s : stops_) {
      for (size_t n = std::min(s.size() - 1, held_.size()); n > most; n--)
        if (held_.ends_with(std::string_view(s).substr(0, n))) most = n;
    }
    return most;
  }
  const std::vector<std::string>& stops_;
  std::string held_;
  bool ended_ = false;
};

class Writer {
 public:
  Writer(Sequence& sequence, const GenerateOptions& options)
      : sequence_(sequence),
        tokenizer_(sequence.model().tokenizer()),
        options_(options),
        sampler_(options.sampling),
        stream_(tokenizer_),
        stops_(options.stop) {}

  Answer run(std::span<const int32_t> prompt) {
    const uint64_t begin_ns = os::monotonic_ns();
    std::span<const float> logits = read(prompt);
    const int64_t room = sequence_.context() - int64_t(prompt.size());
    const int64_t most = options_.tokens < 0 ? room : std::min(options_.tokens, room);
    uint64_t first_ns = begin_ns;
    std::optional<Finish> finish;
    while (!finish && int64_t(answer_.tokens.size()) < most) {
      const int32_t token = sampler_.draw(logits, sequence_.tokens());
      if (answer_.tokens.empty()) first_ns = os::monotonic_ns();
      finish = write(token);
      const bool goes_on = !finish && int64_t(answer_.tokens.size()) < most;
      if (goes_on) logits = sequence_.read({&token, 1});
    }
    if (!finish || *finish == Finish::End) say(stops_.push(stream_.finish()) + stops_.finish());
    answer_.finish = finish.value_or(Finish::Length);
    answer_.prompt_seconds = double(first_ns - begin_ns) * 1e-9;
    answer_.seconds = double(os::monotonic_ns() - first_ns) * 1e-9;
    return std::move(answer_);
  }

 private:
  std::span<const float> read(std::span<const int32_t> prompt) {
    if (prompt.empty()) fail<InvalidArgument>("a prompt has at least one token");
    if (int64_t(prompt.size()) > sequence_.context())
      fail<InvalidArgument>("the prompt's {} tokens exceed the context of {}", prompt.size(),
                            sequence_.context());
    const std::span<const int32_t> seen = sequence_.tokens();
    const auto differs = std::ranges::mismatch(prompt, seen).in1;
    // Logits are those of a call, so one token is read again at least.
    const size_t same = std::min(size_t(differs - prompt.begin()), prompt.size() - 1);
    sequence_.truncate(same);
    answer_.prompt_tokens = prompt.size() - same;
    return sequence_.read(prompt.subspan(same));
  }

  std::optional<Finish> write(int32_t token) {
    if (tokenizer_.is_end(token)) return Finish::End;
    answer_.tokens.push_back(token);
    if (!say(stops_.push(stream_.push(token)))) return Finish::Cancelled;
    if (stops_.ended()) return Finish::Stop;
    return {};
  }
  bool say(const std::string& text) {
    answer_.text += text;
    return text.empty() || !options_.on_text || options_.on_text(text);
  }

  Sequence& sequence_;
  const Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  Sampler sampler_;
  TextStream stream_;
  StopTexts stops_;
  Answer answer_;
};

}  // namespace

Answer generate(Sequence& sequence, std::span<const int32_t> prompt,
                const GenerateOptions& options) {
  return Writer(sequence, options).run(prompt);
}

}  // namespace tuff::language
