// The one thread that runs the model. Requests come in through a queue; answers go out through
// their Reply. Called by the server from any thread. Must never know of HTTP.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tuff/language.h>

#include "serve/metrics.h"
#include "serve/reply.h"

namespace tuff::serve {

struct ModelThreadOptions {
  language::BatchOptions batch = {};
  size_t queue = 64;                     // answers that may wait for room
  std::chrono::seconds time_limit{600};  // of an answer, waiting included
  bool warm_up = true;                   // graphs are captured before the first answer
};

// What was done before the first answer.
struct WarmUp {
  size_t graphs = 0;
  double seconds = 0;
};

// One answer that is asked for.
struct Prompt {
  std::vector<int32_t> tokens;
  language::GenerateOptions options;
};

// A Reply of a request; when nobody has it any more, what is left of its answers is cancelled.
using ReplyHandle = std::shared_ptr<Reply>;

class ModelThread {
 public:
  ModelThread(language::Model model, const ModelThreadOptions& options, Metrics& metrics);
  ~ModelThread();  // ends what runs
  // Until it is warm, or the time is up; nothing then. What went wrong is thrown here.
  std::optional<WarmUp> wait_until_warm(std::chrono::milliseconds most);
  // Of a model that writes. RequestError if too many answers wait, or the server is shutting down.
  ReplyHandle submit(std::vector<Prompt> prompts);
  // On the model's thread, between two of its calls. What it throws is thrown here.
  void run(const std::function<void(const language::Model&)>& work);
  // From now on nothing more is taken. True once everything has ended, false after `most`.
  bool drain(std::chrono::milliseconds most);
  // Ends all that runs: an error says why.
  void end_all(const std::string& why);
  language::BatchStats stats() const;
  int64_t context() const { return context_; }
  // That run or wait.
  size_t most_answers() const { return size_t(options_.batch.sequences) + options_.queue; }

 private:
  using Id = language::Batch::Id;
  struct Job {
    std::shared_ptr<Reply> reply;
    size_t choice = 0;
    Prompt prompt = {};
    Reply::Clock::time_point since = {};
    Id id = 0;  // 0: not in the batch yet
    size_t prompt_tokens = 0;
    bool begun = false;
  };
  void work();
  void warm_up();
  WarmUp captured();
  void wait();
  bool admit(Job& job);
  void drop_late();
  void step();
  void end(Job& job, Outcome outcome);
  void publish();

  const ModelThreadOptions options_;
  Metrics& metrics_;
  const language::Model model_;
  std::optional<language::Batch> batch_;  // of the thread alone; an encoder has none
  const int64_t context_;
  std::deque<std::unique_ptr<Job>> jobs_;  // those that are in the batch; of the thread alone

  mutable std::mutex mutex_;
  std::condition_variable news_, ended_;
  std::deque<std::unique_ptr<Job>> added_;
  std::deque<std::function<void()>> tasks_;
  language::BatchStats stats_;
  size_t live_ = 0;  // answers that were taken and have not ended
  bool draining_ = false, stopping_ = false;
  std::string end_why_;
  std::optional<WarmUp> warm_;
  std::exception_ptr failed_;  // to get warm
  std::thread thread_;
};

}  // namespace tuff::serve
