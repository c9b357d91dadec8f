#include "serve/metrics.h"

#include <algorithm>

#include <fmt/format.h>

namespace tuff::serve {
namespace {

std::string head(const char* name, const char* help, const char* type) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

std::string row(const char* name, const char* help, const char* type, uint64_t value) {
  return head(name, help, type) + fmt::format("{} {}\n", name, value);
}

}  // namespace

void Histogram::observe(double seconds) {
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  counts_[size_t(bound - kBounds.begin())]++;
  sum_ += seconds;
}

std::string Histogram::text(const char* name, const char* help) const {
  std::string out = head(name, help, "histogram");
  uint64_t sum = 0;
  for (size_t i = 0; i < kBounds.size(); i++) {
    sum += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], sum);
  }
  sum += counts_.back();
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, sum,
                           sum_);
}

void Metrics::request(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  requests_[{route, status}]++;
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.observe(seconds);
}

void Metrics::answer(double seconds) {
  const std::lock_guard lock(mutex_);
  answer_.observe(seconds);
}

void Metrics::cancelled() {
  const std::lock_guard lock(mutex_);
  cancelled_++;
}

std::string Metrics::text(const language::BatchStats& b) const {
  const std::lock_guard lock(mutex_);
  std::string out = head("tuff_requests_total", "Requests that were answered.", "counter");
  for (const auto& [key, count] : requests_)
    out += fmt::format("tuff_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  out += row("tuff_answers_cancelled_total", "Answers that ended before they were whole.",
             "counter", cancelled_);
  out += row("tuff_prompt_tokens_total", "Tokens of prompts that were read.", "counter",
             b.prompt_tokens);
  out += row("tuff_cached_tokens_total", "Tokens of prompts that the cache knew.", "counter",
             b.cached_tokens);
  out += row("tuff_tokens_total", "Tokens that were written.", "counter", b.tokens);
  out += row("tuff_draft_tokens_total", "Tokens that were tried beside others.", "counter",
             b.draft_tokens);
  out += row("tuff_accepted_tokens_total", "Tokens that were tried and then drawn.", "counter",
             b.accepted_tokens);
  out += row("tuff_model_calls_total", "Calls of the model.", "counter", b.calls);
  out += row("tuff_preempted_total", "Answers that let others go first.", "counter", b.preempted);
  out += row("tuff_answers_running", "Answers that are being written.", "gauge", b.running);
  out += row("tuff_answers_waiting", "Answers that wait for room.", "gauge", b.waiting);
  out += row("tuff_cache_pages", "Pages of the cache.", "gauge", b.pages);
  out += row("tuff_cache_pages_used", "Pages that running answers hold.", "gauge", b.used_pages);
  out += first_token_.text("tuff_first_token_seconds", "From a request to its first token.");
  return out + answer_.text("tuff_answer_seconds", "From a request to the end of an answer.");
}

}  // namespace tuff::serve
