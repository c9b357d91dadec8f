#include "serve/reply.h"

namespace tuff::serve {
namespace {

template <class T, class Range>
void append(std::vector<T>& to, const Range& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

bool Reply::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return news_; });
  return std::exchange(news_, false);
}

Piece Reply::take(size_t choice) {
  const std::lock_guard lock(mutex_);
  return std::exchange(choices_[choice].piece, {});
}

const Outcome* Reply::outcome(size_t choice) const {
  const std::lock_guard lock(mutex_);
  const Choice& c = choices_[choice];
  return c.ended && c.piece.text.empty() && c.piece.tokens.empty() ? &c.outcome : nullptr;
}

void Reply::put(size_t choice, const language::AnswerPiece& piece) {
  const std::lock_guard lock(mutex_);
  Piece& p = choices_[choice].piece;
  p.text += piece.text;
  append(p.tokens, piece.tokens);
  append(p.logprobs, piece.logprobs);
  news_ = true;
  changed_.notify_one();
}

void Reply::end(size_t choice, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  choices_[choice].ended = true;
  choices_[choice].outcome = std::move(outcome);
  news_ = true;
  changed_.notify_one();
}

}  // namespace tuff::serve
