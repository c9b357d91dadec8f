// The answers to one request while they are written: the model's thread puts pieces in, the thread
// of a connection takes them out. Neither waits for the other: what nobody has taken yet is kept,
// and an answer is never longer than its tokens. Must never know of HTTP or run a model.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <tuff/language.h>

namespace tuff::serve {

// What has come of an answer since it was last asked for.
struct Piece {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<language::TokenLogprobs> logprobs;
};

// How an answer ended.
struct Outcome {
  language::Finish finish = language::Finish::Length;
  size_t tokens = 0;         // of the whole answer
  size_t cached_tokens = 0;  // of the prompt
  int status = 200;          // of HTTP; `error` says what went wrong
  std::string error = {};
};

class Reply {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Reply(size_t choices) : choices_(choices) {}

  // Of the thread that asks.
  size_t size() const { return choices_.size(); }
  // Until something has come that was not taken, or the time is up; false then.
  bool wait(std::chrono::milliseconds most);
  Piece take(size_t choice);
  // Null while it is written, and while pieces of it have not been taken.
  const Outcome* outcome(size_t choice) const;
  void cancel() { cancelled_ = true; }

  // Of the model's thread.
  bool cancelled() const { return cancelled_; }
  void put(size_t choice, const language::AnswerPiece& piece);
  void end(size_t choice, Outcome outcome);

 private:
  struct Choice {
    Piece piece;
    bool ended = false;
    Outcome outcome = {};
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Choice> choices_;
  bool news_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace tuff::serve
