#include <deque>
#include <optional>

#include "base/check.h"
#include "language/answer_writer.h"
#include "language/model_state.h"

namespace tuff::language {

struct Batch::State {
  struct Request {
    Id id;
    std::vector<int32_t> prompt;
    std::unique_ptr<AnswerWriter> writer;
    size_t prompt_tokens = 0;
    bool started = false;
  };
  Sequence sequence;
  std::deque<Request> requests;  // the first one runs
  BatchStats stats;
  Id last = 0;
};

Batch::Batch(Model model, const BatchOptions& options)
    : state_(new State{Sequence(std::move(model), {.context = options.context,
                                                   .cache_dtype = options.cache_dtype}), {}, {}}) {}
Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;

Batch::Id Batch::add(std::vector<int32_t> prompt, GenerateOptions options) {
  State& s = *state_;
  require_prompt(prompt, context());
  const int64_t room = context() - int64_t(prompt.size());
  auto writer = std::make_unique<AnswerWriter>(model().tokenizer(), std::move(options), room);
  s.requests.push_back({++s.last, std::move(prompt), std::move(writer)});
  return s.last;
}

void Batch::cancel(Id id) {
  std::erase_if(state_->requests, [&](const State::Request& r) { return r.id == id; });
}

std::vector<std::pair<Batch::Id, Answer>> Batch::step() {
  State& s = *state_;
  if (s.requests.empty()) return {};
  State::Request& r = s.requests.front();
  if (!std::exchange(r.started, true)) {
    s.sequence.truncate(0);
    r.prompt_tokens = r.prompt.size();
    s.stats.prompt_tokens += r.prompt_tokens;
  }
  s.stats.calls++;
  const std::span<const float> logits = s.sequence.read(r.prompt);
  try {
    if (!r.writer->ended()) r.prompt = {r.writer->draw(logits, s.sequence.tokens())};
    if (!r.writer->ended()) return {};
    std::vector<std::pair<Id, Answer>> ended;
    ended.emplace_back(r.id, r.writer->finish(r.prompt_tokens));
    s.stats.tokens += ended[0].second.tokens.size();
    s.requests.pop_front();
    return ended;
  } catch (...) {
    s.requests.pop_front();
    throw;
  }
}

bool Batch::idle() const { return state_->requests.empty(); }
BatchStats Batch::stats() const {
  BatchStats out = state_->stats;
  out.running = idle() ? 0 : 1;
  out.waiting = state_->requests.size() - out.running;
  return out;
}
int64_t Batch::context() const { return state_->sequence.context(); }
const Model& Batch::model() const { return state_->sequence.model(); }

}  // namespace tuff::language
