#include "language/answer_writer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/os.h"

namespace tuff::language {

StopTexts::StopTexts(const std::vector<std::string>& stops) : stops_(stops) {
  if (std::ranges::find(stops, "") != stops.end())
    fail<InvalidArgument>("an empty text cannot end an answer");
}

std::string StopTexts::push(const std::string& text) {
  held_ += text;
  size_t at = std::string::npos;
  for (const std::string& s : stops_) at = std::min(at, held_.find(s));
  ended_ = at != std::string::npos;
  if (!ended_) at = held_.size() - beginning();
  std::string out = held_.substr(0, at);
  held_.erase(0, ended_ ? held_.size() : at);
  return out;
}

// How much of the end may be the beginning of such a text.
size_t StopTexts::beginning() const {
  size_t most = 0;
  for (const std::string& s : stops_) {
    for (size_t n = std::min(s.size() - 1, held_.size()); n > most; n--)
      if (held_.ends_with(std::string_view(s).substr(0, n))) most = n;
  }
  return most;
}

void require_prompt(std::span<const int32_t> prompt, int64_t context) {
  if (prompt.empty()) fail<InvalidArgument>("a prompt has at least one token");
  if (int64_t(prompt.size()) > context)
    fail<InvalidArgument>("the prompt's {} tokens exceed the context of {}", prompt.size(),
                          context);
}

TokenLogprobs logprobs_of(std::span<const float> logits, int32_t chosen, int64_t count) {
  const double top = double(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float l : logits) sum += std::exp(double(l) - top);
  const double all = top + std::log(sum);
  const auto choice = [&](int32_t t) {
    return TokenChoice{t, float(double(logits[size_t(t)]) - all)};
  };
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto first = order.begin() + std::ptrdiff_t(std::min(size_t(count), order.size()));
  std::partial_sort(order.begin(), first, order.end(), [&](int32_t a, int32_t b) {
    const float la = logits[size_t(a)], lb = logits[size_t(b)];
    return la != lb ? la > lb : a < b;
  });
  TokenLogprobs out{choice(chosen), {}};
  for (auto t = order.begin(); t != first; ++t) out.top.push_back(choice(*t));
  return out;
}

AnswerWriter::AnswerWriter(const Tokenizer& tokenizer, GenerateOptions options, int64_t room)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      most_(size_t(options_.tokens < 0 ? room : std::min(options_.tokens, room))),
      sampler_(options_.sampling),
      stream_(tokenizer_),
      stops_(options_.stop),
      begin_ns_(os::monotonic_ns()),
      first_ns_(begin_ns_) {
  if (options_.logprobs < -1)
    fail<InvalidArgument>("logprobs is {}: a number from -1 on was wanted", options_.logprobs);
  if (options_.grammar.defined()) filter_.emplace(options_.grammar, tokenizer_);
  if (most_ == 0) finish_ = Finish::Length;
}

int32_t AnswerWriter::draw(std::span<const float> logits, std::span<const int32_t> seen) {
  std::span<const float> may = logits;
  try {
    if (filter_) may = filter_->filtered(logits);
  } catch (const Error& e) {
    // Its grammar's fault, which may be a stranger's: answers beside it go on.
    answer_.error = e.what();
    finish_ = Finish::Failed;
    return -1;
  }
  const int32_t token = sampler_.draw(may, seen);
  if (answer_.tokens.empty()) first_ns_ = os::monotonic_ns();
  write(token, logits);
  return token;
}

void AnswerWriter::write(int32_t token, std::span<const float> logits) {
  if (tokenizer_.is_end(token)) {
    finish_ = Finish::End;
    return;
  }
  if (filter_) filter_->push(token);
  answer_.tokens.push_back(token);
  if (options_.logprobs >= 0)
    answer_.logprobs.push_back(logprobs_of(logits, token, options_.logprobs));
  if (!say(stops_.push(stream_.push(token)))) {
    finish_ = Finish::Cancelled;
  } else if (stops_.ended()) {
    finish_ = Finish::Stop;
  } else if (filter_ && filter_->ended()) {
    finish_ = Finish::End;
  } else if (answer_.tokens.size() >= most_) {
    finish_ = Finish::Length;
  }
}

bool AnswerWriter::say(const std::string& text) {
  answer_.text += text;
  return text.empty() || tell(text);
}

bool AnswerWriter::tell(std::string_view text) {
  if (!options_.on_piece) return true;
  const size_t from = std::exchange(told_, answer_.tokens.size());
  AnswerPiece piece{text, std::span(answer_.tokens).subspan(from), {}};
  if (!answer_.logprobs.empty()) piece.logprobs = std::span(answer_.logprobs).subspan(from);
  return options_.on_piece(piece);
}

Answer AnswerWriter::finish(size_t prompt_tokens) {
  if (finish_ == Finish::End || finish_ == Finish::Length || finish_ == Finish::Failed)
    say(stops_.push(stream_.finish()) + stops_.finish());
  if (finish_ != Finish::Cancelled && told_ < answer_.tokens.size()) tell("");
  answer_.finish = finish_.value_or(Finish::Cancelled);
  answer_.prompt_tokens = prompt_tokens;
  answer_.prompt_seconds = double(first_ns_ - begin_ns_) * 1e-9;
  answer_.seconds = double(os::monotonic_ns() - first_ns_) * 1e-9;
  return std::move(answer_);
}

}  // namespace tuff::language
