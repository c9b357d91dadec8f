#include "serve/model_thread.h"

#include <algorithm>
#include <future>

#include "base/check.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

double seconds_since(Reply::Clock::time_point begin) {
  return std::chrono::duration<double>(Reply::Clock::now() - begin).count();
}

constexpr int kUnavailable = 503, kFailed = 500;
constexpr int64_t kShortest = 16, kLongest = 512;  // texts that an encoder is warm for

std::optional<language::Batch> batch_of(const language::Model& model,
                                        const language::BatchOptions& options) {
  if (model.description().encodes) return {};
  return language::Batch(model, options);
}

}  // namespace

ModelThread::ModelThread(language::Model model, const ModelThreadOptions& options,
                         Metrics& metrics)
    : options_(options),
      metrics_(metrics),
      model_(std::move(model)),
      batch_(batch_of(model_, options.batch)),
      context_(batch_ ? batch_->context() : model_.description().context) {
  publish();
  thread_ = std::thread([this] { work(); });
}

ModelThread::~ModelThread() {
  end_all("the server is shutting down");
  {
    const std::lock_guard lock(mutex_);
    draining_ = stopping_ = true;
  }
  news_.notify_one();
  thread_.join();
}

ReplyHandle ModelThread::submit(std::vector<Prompt> prompts) {
  TUFF_CHECK(batch_);
  auto reply = std::make_shared<Reply>(prompts.size());
  {
    const std::lock_guard lock(mutex_);
    if (draining_) throw RequestError(kUnavailable, "the server is shutting down");
    const size_t most = most_answers();
    if (live_ + prompts.size() > most)
      throw RequestError(
          429, fmt::format("{} answers run or wait, {} more would exceed {}: ask again later, or "
                           "start the server with a longer --queue",
                           live_, prompts.size(), most));
    live_ += prompts.size();
    for (size_t i = 0; i < prompts.size(); i++)
      added_.push_back(
          std::make_unique<Job>(Job{reply, i, std::move(prompts[i]), Reply::Clock::now()}));
  }
  news_.notify_one();
  // The handle's end cancels; the model's thread holds the reply itself.
  return ReplyHandle(reply.get(), [reply](Reply* r) { r->cancel(); });
}

void ModelThread::run(const std::function<void(const language::Model&)>& work) {
  auto task = std::make_shared<std::packaged_task<void()>>([&] { work(model_); });
  std::future<void> done = task->get_future();
  {
    const std::lock_guard lock(mutex_);
    if (draining_) throw RequestError(kUnavailable, "the server is shutting down");
    if (tasks_.size() >= options_.queue)
      throw RequestError(429, fmt::format("{} texts wait to be embedded: ask again later, or start "
                                          "the server with a longer --queue",
                                          tasks_.size()));
    tasks_.push_back([task] { (*task)(); });
  }
  news_.notify_one();
  done.get();
}

bool ModelThread::drain(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  return ended_.wait_for(lock, most, [&] { return live_ == 0 && tasks_.empty(); });
}

void ModelThread::end_all(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    end_why_ = why;
  }
  news_.notify_one();
}

language::BatchStats ModelThread::stats() const {
  const std::lock_guard lock(mutex_);
  language::BatchStats stats = stats_;
  stats.waiting += added_.size();
  return stats;
}

void ModelThread::publish() {
  if (!batch_) return;
  const language::BatchStats stats = batch_->stats();
  const std::lock_guard lock(mutex_);
  stats_ = stats;
}

void ModelThread::end(Job& job, Outcome outcome) {
  if (job.id) batch_->cancel(job.id);  // nothing, if it has ended there
  if (outcome.finish == language::Finish::Cancelled) metrics_.cancelled();
  metrics_.answer(seconds_since(job.since));
  job.reply->end(job.choice, std::move(outcome));
  const std::lock_guard lock(mutex_);
  live_--;
  ended_.notify_all();
}

bool ModelThread::admit(Job& job) {
  language::GenerateOptions options = std::move(job.prompt.options);
  options.on_piece = [this, j = &job](const language::AnswerPiece& piece) {
    if (!std::exchange(j->begun, true)) metrics_.first_token(seconds_since(j->since));
    j->reply->put(j->choice, piece);
    return true;
  };
  job.prompt_tokens = job.prompt.tokens.size();
  try {
    job.id = batch_->add(std::move(job.prompt.tokens), std::move(options));
    return true;
  } catch (const InvalidArgument& e) {
    end(job, {.status = 400, .error = e.what()});
  } catch (const std::exception& e) {
    end(job, {.status = kFailed, .error = e.what()});
  }
  return false;
}

// Those that nobody waits for any more, and those that have taken too long.
void ModelThread::drop_late() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    why = end_why_;
  }
  const auto now = Reply::Clock::now();
  std::erase_if(jobs_, [&](const std::unique_ptr<Job>& job) {
    const bool late = now - job->since > options_.time_limit;
    if (!late && why.empty() && !job->reply->cancelled()) return false;
    Outcome outcome{.finish = language::Finish::Cancelled, .status = kUnavailable, .error = why};
    if (late)
      outcome.error = fmt::format("the answer took longer than {} s (--time-limit)",
                                  options_.time_limit.count());
    end(*job, std::move(outcome));
    return true;
  });
}

void ModelThread::step() {
  std::vector<std::pair<Id, language::Answer>> ended;
  try {
    ended = batch_->step();
  } catch (const std::exception& e) {
    // One answer's error, or the device's; which of them it was is not known.
    for (const std::unique_ptr<Job>& job : jobs_)
      end(*job, {.status = kFailed, .error = e.what()});
    jobs_.clear();
    return;
  }
  for (const auto& [id, answer] : ended) {
    const auto job = std::ranges::find_if(jobs_, [&](const auto& j) { return j->id == id; });
    if (job == jobs_.end()) continue;
    if (answer.finish == language::Finish::Failed) {
      end(**job, {.status = 400, .error = answer.error});
      jobs_.erase(job);
      continue;
    }
    const size_t read = std::min(answer.prompt_tokens, (*job)->prompt_tokens);
    end(**job, {.finish = answer.finish,
                .tokens = answer.tokens.size(),
                .cached_tokens = (*job)->prompt_tokens - read});
    jobs_.erase(job);
  }
}

std::optional<WarmUp> ModelThread::wait_until_warm(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, most, [&] { return warm_ || failed_; });
  if (failed_) std::rethrow_exception(failed_);
  return warm_;
}

WarmUp ModelThread::captured() {
  WarmUp warm;
  const auto begin = Reply::Clock::now();
  const auto on_graph = [&](size_t) {
    warm.graphs++;
    const std::lock_guard lock(mutex_);
    return !draining_ && added_.empty() && tasks_.empty();  // who asks already waits no longer
  };
  if (batch_) {
    batch_->warm_up(on_graph);
  } else {
    const int64_t longest = std::min(context_, kLongest);
    bool goes_on = true;
    for (int64_t n = std::min(kShortest, longest); n <= longest && goes_on; n *= 2) {
      const std::vector<int32_t> text(size_t(n), 0);
      for (int call = 0; call < 2; call++) language::embed(model_, text);  // the second captures
      goes_on = on_graph(warm.graphs);
    }
  }
  warm.seconds = seconds_since(begin);
  return warm;
}

void ModelThread::warm_up() {
  WarmUp warm;
  std::exception_ptr failed;
  try {
    if (options_.warm_up) warm = captured();
  } catch (...) {
    failed = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  warm_ = warm, failed_ = failed;
  ended_.notify_all();
}

void ModelThread::wait() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] {
    return !jobs_.empty() || !added_.empty() || !tasks_.empty() || stopping_;
  });
}

void ModelThread::work() {
  warm_up();
  for (;;) {
    wait();
    std::deque<std::unique_ptr<Job>> added;
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ && jobs_.empty() && added_.empty() && tasks_.empty()) return;
      added.swap(added_);
      if (!tasks_.empty()) task = tasks_.front();
    }
    for (std::unique_ptr<Job>& job : added)
      if (admit(*job)) jobs_.push_back(std::move(job));
    drop_late();
    if (!jobs_.empty()) step();
    if (task) {
      task();
      const std::lock_guard lock(mutex_);
      tasks_.pop_front();
      ended_.notify_all();
    }
    publish();
  }
}

}  // namespace tuff::serve
