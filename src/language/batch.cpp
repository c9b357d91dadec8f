#include <algorithm>
#include <exception>
#include <map>

#include "base/check.h"
#include "language/answer_writer.h"
#include "language/context_shift.h"
#include "language/model_state.h"
#include "language/pages.h"
#include "language/paged_reader.h"

namespace tuff::language {
namespace {

// A prompt's piece while other answers are written, so that they do not wait long for it.
constexpr int64_t kPieceBeside = 32;

struct Request {
  std::vector<int32_t> text;  // the prompt and what was drawn
  size_t prompt;              // tokens
  int64_t keep;               // GenerateOptions::keep
  std::unique_ptr<AnswerWriter> writer;
  HeldPages held = {};
  size_t read = 0;   // tokens of the text whose keys and values are held
  size_t known = 0;  // of the prompt, when it was first begun
  bool begun = false;

  // Few tokens go beside those of others, one in each call.
  bool is_short() const { return PagedReader::rows_for(int64_t(text.size() - read)) == 1; }
};

int64_t require_sequences(int64_t sequences) {
  if (sequences < 1 || sequences > 1024)
    fail<InvalidArgument>("{} sequences: 1 to 1024 were wanted", sequences);
  return sequences;
}

int64_t cache_pages(const BatchOptions& o, int64_t context) {
  if (o.cache_tokens != 0 && o.cache_tokens < context)
    fail<InvalidArgument>("a cache of {} tokens cannot hold one sequence of {}: give it more, or "
                          "a shorter context", o.cache_tokens, context);
  const auto pages = [](int64_t tokens) { return (tokens - 1) / kPagePositions + 1; };
  const int64_t all = o.cache_tokens != 0 ? pages(o.cache_tokens) : o.sequences * pages(context);
  // Kernels count positions of all pages, and of the one that nobody reads, in 32 bits.
  constexpr int64_t kMost = INT32_MAX / kPagePositions - 1;
  if (all > kMost)
    fail<InvalidArgument>("a cache of {} tokens: at most {} are possible", all * kPagePositions,
                          kMost * kPagePositions);
  return all;
}

}  // namespace

// Requests are ordered by their ids: who came first waits least, and is preempted last.
struct Batch::State {
  using Requests = std::map<Id, Request>;
  State(Model m, const BatchOptions& options);
  void admit();
  bool has_room_for(const Request& request) const;
  // Pages for the tokens that the next call reads, taken from younger ones if there are none left.
  // False: it had to go itself.
  bool grow(Requests::iterator at, size_t positions);
  void preempt(Requests::iterator at);
  void start(Request& request);
  bool read_prompt();
  bool read_tokens();
  // Reads the next tokens of each, and draws where that was all of its text.
  void read(const std::vector<Requests::iterator>& requests, size_t tokens);
  void draw(Requests::iterator at, std::span<const float> logits);
  void make_room(Request& request);
  bool shift(Request& request, size_t keep, size_t drop);
  void end(Requests::iterator at);

  Model model;
  const size_t sequences;
  const int64_t context;
  Pages pages;
  PagedReader reader;
  Requests waiting, running;
  std::vector<std::pair<Id, Answer>> ended;
  std::exception_ptr thrown;
  bool prompt_was_last = false;
  BatchStats stats;
  Id last = 0;
};

Batch::State::State(Model m, const BatchOptions& options)
    : model(std::move(m)),
      sequences(size_t(require_sequences(options.sequences))),
      context(model.state_->context(options.context)),
      pages(cache_pages(options, context), kPagePositions),
      reader(model.state_->config, model.state_->weights, model.state_->rope_factors(context),
             context, int64_t(pages.count()), options.cache) {}

// For its text, beside what those that run are still to read of theirs.
bool Batch::State::has_room_for(const Request& request) const {
  size_t wanted = pages.pages_for(request.text.size() + 1);
  for (const auto& [id, r] : running)
    wanted += pages.pages_for(r.text.size()) - r.held.pages.size();
  return running.empty() || wanted <= pages.free();
}

void Batch::State::admit() {
  while (!waiting.empty() && running.size() < sequences) {
    const auto first = waiting.begin();
    if (!has_room_for(first->second)) return;
    const auto at = running.insert(waiting.extract(first)).position;
    if (at->second.writer->ended()) end(at);  // no token was asked for
  }
}

void Batch::State::preempt(Requests::iterator at) {
  stats.preempted++;
  pages.release(at->second.held);
  at->second.read = 0;
  waiting.insert(running.extract(at));
}

bool Batch::State::grow(Requests::iterator at, size_t positions) {
  while (!pages.grow(at->second.held, positions)) {
    const auto youngest = std::prev(running.end());
    const bool itself = youngest == at;
    preempt(youngest);
    if (itself) return false;
  }
  return true;
}

// What others have read by now is not read again.
void Batch::State::start(Request& r) {
  if (r.read > 0) return;
  pages.release(r.held);
  r.read = pages.take_known(r.held, r.text);
  if (std::exchange(r.begun, true)) return;
  r.known = r.read;
  stats.cached_tokens += r.known;
}

bool Batch::State::read_prompt() {
  const auto at = std::ranges::find_if(running, [](auto& r) { return !r.second.is_short(); });
  if (at == running.end()) return false;
  Request& r = at->second;
  start(r);
  if (r.is_short()) return false;
  const int64_t left = int64_t(r.text.size() - r.read);
  const bool beside = std::ranges::any_of(running, [](auto& o) { return o.second.is_short(); });
  const int64_t most = beside ? std::min(left, kPieceBeside) : left;
  const size_t count = size_t(std::min(left, PagedReader::rows_for(most)));
  if (!grow(at, r.read + count)) return false;
  read({at}, count);
  return true;
}

bool Batch::State::read_tokens() {
  std::vector<Requests::iterator> chosen;
  for (auto at = running.begin(); at != running.end();) {
    const Id id = at->first;
    if (at->second.is_short()) start(at->second);
    if (at->second.is_short() && grow(at, at->second.read + 1)) chosen.push_back(at);
    at = running.upper_bound(id);  // who follows may be gone
  }
  if (chosen.empty()) return false;
  read(chosen, 1);
  return true;
}

void Batch::State::read(const std::vector<Requests::iterator>& requests, size_t tokens) {
  std::vector<Piece> pieces;
  for (const auto at : requests) {
    const Request& r = at->second;
    pieces.push_back({std::span(r.text).subspan(r.read, tokens), r.read, r.held.pages});
  }
  const std::span<const float> logits = reader.read(pieces);
  stats.calls++;
  const size_t vocabulary = size_t(model.description().vocabulary);
  for (size_t i = 0; i < requests.size(); i++) {
    Request& r = requests[i]->second;
    const size_t of_prompt = r.read < r.prompt ? std::min(tokens, r.prompt - r.read) : 0;
    stats.prompt_tokens += of_prompt;
    r.read += tokens;
    pages.name(r.held, std::span(r.text).first(r.read));
    if (r.read == r.text.size()) draw(requests[i], logits.subspan(i * vocabulary, vocabulary));
  }
}

void Batch::State::draw(Requests::iterator at, std::span<const float> logits) {
  Request& r = at->second;
  try {
    r.text.push_back(r.writer->draw(logits, r.text));
    stats.tokens++;
    if (r.writer->ended()) return end(at);
    if (int64_t(r.text.size()) > context) make_room(r);
  } catch (...) {
    if (!thrown) thrown = std::current_exception();
    pages.release(r.held);
    running.erase(at);
  }
}

// What cannot be shifted is read again.
void Batch::State::make_room(Request& r) {
  const size_t keep = size_t(r.keep), drop = forgotten(r.read, keep);
  if (!shift(r, keep, drop)) {
    pages.release(r.held);
    r.read = 0;
  }
  const auto from = r.text.begin() + std::ptrdiff_t(keep);
  r.text.erase(from, from + std::ptrdiff_t(drop));
}

bool Batch::State::shift(Request& r, size_t keep, size_t drop) {
  if (!reader.can_move()) return false;
  const std::vector<int32_t> before = r.held.pages;
  const size_t first = keep / size_t(kPagePositions);
  if (!pages.change(r.held, first)) return false;
  // What is kept of a page that is another now.
  const size_t begin = first * size_t(kPagePositions);
  if (before[first] != r.held.pages[first])
    reader.move({before, r.held.pages, begin, keep - begin, 0});
  r.read -= drop;
  reader.move({before, r.held.pages, keep, r.read - keep, drop});
  pages.shrink(r.held, r.read);
  return true;
}

void Batch::State::end(Requests::iterator at) {
  Request& r = at->second;
  ended.emplace_back(at->first, r.writer->finish(r.begun ? r.prompt - r.known : 0));
  pages.release(r.held);
  running.erase(at);
}

Batch::Batch(Model model, const BatchOptions& options)
    : state_(std::make_unique<State>(std::move(model), options)) {}
Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;

Batch::Id Batch::add(std::vector<int32_t> prompt, GenerateOptions options) {
  State& s = *state_;
  require_prompt(prompt, s.context);
  s.model.state_->require_tokens(prompt);
  require_keep(options, s.context);
  const int64_t room = room_behind(prompt.size(), options, s.context), keep = options.keep;
  const size_t tokens = prompt.size();
  auto writer = std::make_unique<AnswerWriter>(model().tokenizer(), std::move(options), room);
  s.waiting.emplace(++s.last, Request{std::move(prompt), tokens, keep, std::move(writer)});
  return s.last;
}

void Batch::cancel(Id id) {
  State& s = *state_;
  if (s.waiting.erase(id) > 0) return;
  const auto at = s.running.find(id);
  if (at == s.running.end()) return;
  s.pages.release(at->second.held);
  s.running.erase(at);
}

std::vector<std::pair<Batch::Id, Answer>> Batch::step() {
  State& s = *state_;
  s.admit();
  // In turns, so that neither prompts nor answers wait for the others to end.
  if (s.prompt_was_last) {
    s.prompt_was_last = !s.read_tokens() && s.read_prompt();
  } else {
    s.prompt_was_last = s.read_prompt();
    if (!s.prompt_was_last) s.read_tokens();
  }
  if (s.thrown) std::rethrow_exception(std::exchange(s.thrown, {}));
  return std::exchange(s.ended, {});
}

void Batch::warm_up(const std::function<bool(size_t)>& on_graph) {
  state_->reader.warm_up(int64_t(state_->sequences), on_graph);
}

bool Batch::idle() const {
  const State& s = *state_;
  return s.waiting.empty() && s.running.empty() && s.ended.empty();
}
BatchStats Batch::stats() const {
  const State& s = *state_;
  BatchStats out = s.stats;
  out.waiting = s.waiting.size(), out.running = s.running.size();
  out.pages = s.pages.count(), out.used_pages = s.pages.count() - s.pages.free();
  return out;
}
int64_t Batch::context() const { return state_->context; }
const Model& Batch::model() const { return state_->model; }

}  // namespace tuff::language
