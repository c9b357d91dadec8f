#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <optional>

#include "base/check.h"
#include "language/answer_writer.h"
#include "language/context_shift.h"
#include "language/draft.h"
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
  int64_t keep, draft_tokens;  // as GenerateOptions
  std::unique_ptr<AnswerWriter> writer;
  HeldPages held = {};
  size_t read = 0;   // tokens of the text whose keys and values are held
  size_t known = 0;  // of the prompt, when it was first begun
  bool begun = false;
  std::optional<size_t> draft_slot = {};

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
  size_t most_rows() const;  // of a call
  void preempt(Requests::iterator at);
  void start(Request& request);
  bool read_prompt();
  bool read_tokens();
  // Rows of a call: a request's next token, and what is drafted behind it.
  struct Rows {
    Requests::iterator at;
    std::vector<int32_t> tokens;
  };
  void add_drafts(std::vector<Rows>& rows);
  // How many may be drafted for it beside others, for which it has pages now.
  size_t room_for_drafts(Request& request, size_t most);
  void read(const std::vector<Rows>& rows);
  // Draws behind those of its tokens that are what was drawn.
  void take(const Rows& rows, std::span<const float> logits);
  // So many of its tokens have been read.
  void advance(Request& request, size_t tokens);
  bool draw(Requests::iterator at, std::span<const float> logits);  // whether it goes on
  void let_go(Request& request);
  void make_room(Request& request);
  bool shift(Request& request, size_t keep, size_t drop);
  void end(Requests::iterator at);

  Model model;
  const size_t sequences;
  const int64_t context;
  Pages pages;
  PagedReader reader;
  std::optional<DraftModel> draft;
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
             context, int64_t(pages.count()), options.cache) {
  if (!options.draft) return;
  require_same_vocabulary(model, *options.draft);
  options.draft->state_->require_writer();
  draft.emplace(*options.draft, sequences, context, options.cache);
}

// For its text, beside what those that run are still to read of theirs.
bool Batch::State::has_room_for(const Request& request) const {
  size_t wanted = pages.pages_for(request.text.size() + 1);
  for (const auto& [id, r] : running) {
    const size_t all = pages.pages_for(r.text.size());
    wanted += all - std::min(all, r.held.pages.size());  // drafts may have got one more
  }
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
  let_go(at->second);
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
  const Piece piece{std::span(r.text).subspan(r.read, count), r.read, r.held.pages};
  const std::span<const float> logits = reader.read({&piece, 1});
  stats.calls++;
  advance(r, count);
  if (r.read == r.text.size()) draw(at, logits);
  return true;
}

bool Batch::State::read_tokens() {
  std::vector<Rows> rows;
  for (auto at = running.begin(); at != running.end();) {
    const Id id = at->first;
    if (at->second.is_short()) start(at->second);
    if (at->second.is_short() && grow(at, at->second.read + 1))
      rows.push_back({at, {at->second.text[at->second.read]}});
    at = running.upper_bound(id);  // who follows may be gone
  }
  if (rows.empty()) return false;
  add_drafts(rows);
  read(rows);
  return true;
}

size_t Batch::State::most_rows() const {
  return std::max(std::bit_ceil(sequences), size_t(PagedReader::kEach));
}

size_t Batch::State::room_for_drafts(Request& r, size_t most) {
  if (r.read + 1 < r.text.size()) return 0;  // of its prompt
  const size_t held = (r.held.pages.size() + pages.free()) * size_t(kPagePositions);
  most = std::min({most, size_t(r.draft_tokens), size_t(context) - r.text.size(),
                   held - r.text.size()});
  pages.grow(r.held, r.text.size() + most);
  return most;
}

// As many as a call of all answers has rows: few answers are drafted much, many not at all.
void Batch::State::add_drafts(std::vector<Rows>& rows) {
  size_t left = most_rows() - rows.size();
  std::vector<DraftModel::Wish> wishes;
  std::vector<Rows*> wishing;
  for (Rows& row : rows) {
    Request& r = row.at->second;
    const size_t most = room_for_drafts(r, left);
    if (most == 0) continue;
    if (draft) {
      left -= most;
      if (!r.draft_slot) r.draft_slot = draft->take_slot();
      wishes.push_back({*r.draft_slot, r.text, most});
      wishing.push_back(&row);
    } else {
      const auto behind = followed_before(r.text, most);
      left -= behind.size();
      row.tokens.insert(row.tokens.end(), behind.begin(), behind.end());
    }
  }
  if (wishes.empty()) return;
  const auto behind = draft->propose(wishes);
  for (size_t i = 0; i < wishing.size(); i++)
    wishing[i]->tokens.insert(wishing[i]->tokens.end(), behind[i].begin(), behind[i].end());
}

// Rows of one sequence see those before them: keys and values are stored before any is read.
void Batch::State::read(const std::vector<Rows>& rows) {
  std::vector<Piece> pieces;
  for (const Rows& row : rows) {
    const Request& r = row.at->second;
    for (size_t i = 0; i < row.tokens.size(); i++)
      pieces.push_back({std::span(row.tokens).subspan(i, 1), r.read + i, r.held.pages});
  }
  std::span<const float> logits = reader.read(pieces);
  stats.calls++;
  stats.draft_tokens += pieces.size() - rows.size();
  const size_t vocabulary = size_t(model.description().vocabulary);
  for (const Rows& row : rows) {
    take(row, logits.first(row.tokens.size() * vocabulary));
    logits = logits.subspan(row.tokens.size() * vocabulary);
  }
}

void Batch::State::take(const Rows& rows, std::span<const float> logits) {
  Request& r = rows.at->second;
  const size_t vocabulary = logits.size() / rows.tokens.size();
  for (size_t i = 0; i < rows.tokens.size(); i++) {
    if (i > 0) stats.accepted_tokens++;
    advance(r, 1);
    if (r.read < r.text.size()) return;
    if (!draw(rows.at, logits.subspan(i * vocabulary, vocabulary))) return;
    if (i + 1 < rows.tokens.size() && r.text.back() != rows.tokens[i + 1]) return;
  }
}

void Batch::State::advance(Request& r, size_t tokens) {
  stats.prompt_tokens += r.read < r.prompt ? std::min(tokens, r.prompt - r.read) : 0;
  r.read += tokens;
  pages.name(r.held, std::span(r.text).first(r.read));
}

void Batch::State::let_go(Request& r) {
  pages.release(r.held);
  if (r.draft_slot) draft->give_back(*r.draft_slot);
  r.draft_slot.reset();
}

bool Batch::State::draw(Requests::iterator at, std::span<const float> logits) {
  Request& r = at->second;
  try {
    const int32_t token = r.writer->draw(logits, r.text);
    if (token >= 0) r.text.push_back(token), stats.tokens++;
    if (!r.writer->ended()) {
      if (int64_t(r.text.size()) > context) make_room(r);
      return true;
    }
    end(at);
  } catch (...) {
    if (!thrown) thrown = std::current_exception();
    let_go(r);
    running.erase(at);
  }
  return false;
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
  let_go(r);
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
  require_drafts(options, false);
  if (options.draft)
    fail<InvalidArgument>("a draft is a sequence for generate(): a Batch takes its model "
                          "(BatchOptions::draft)");
  const int64_t room = room_behind(prompt.size(), options, s.context), keep = options.keep,
                drafts = options.draft_tokens;
  const size_t tokens = prompt.size();
  auto writer = std::make_unique<AnswerWriter>(model().tokenizer(), std::move(options), room);
  s.waiting.emplace(++s.last, Request{std::move(prompt), tokens, keep, drafts, std::move(writer)});
  return s.last;
}

void Batch::cancel(Id id) {
  State& s = *state_;
  if (s.waiting.erase(id) > 0) return;
  const auto at = s.running.find(id);
  if (at == s.running.end()) return;
  s.let_go(at->second);
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
  State& s = *state_;
  size_t count = 0;
  bool goes_on = true;
  const auto told = [&](size_t) { return goes_on = !on_graph || on_graph(++count); };
  s.reader.warm_up(int64_t(s.most_rows()), told);
  if (s.draft && goes_on) s.draft->warm_up(int64_t(s.most_rows()), told);
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
