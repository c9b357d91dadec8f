#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "language/model_state.h"
#include "language/pages.h"
#include "language/paged_reader.h"
#include "language/sequence_past.h"

namespace tuff::language {

// The pages are those of one text, in order.
struct Sequence::State {
  State(Model m, const SequenceOptions& options);
  void append(std::span<const int32_t> tokens);
  template <class Read>
  std::span<const float> reading(std::span<const int32_t> tokens, Read&& read);
  // Reads what was seen, of which the first `known` tokens have been read.
  std::span<const float> read_from(size_t known);
  std::span<const float> read_each_from(size_t known);
  Piece piece_from(size_t known, size_t most) const {
    const size_t count = std::min(seen.size() - known, most);
    return {std::span(seen).subspan(known, count), known, pages};
  }

  Model model;
  int64_t context;
  std::vector<int32_t> pages, seen;
  PagedReader reader;
  std::vector<float> each;  // logits of read_each()
};

Sequence::State::State(Model m, const SequenceOptions& options)
    : model(std::move(m)),
      context(model.state_->context(options.context)),
      pages(size_t((context + kPagePositions - 1) / kPagePositions)),
      reader(model.state_->config, model.state_->weights, model.state_->rope_factors(context),
             context, int64_t(pages.size()), options.cache) {
  std::iota(pages.begin(), pages.end(), 0);
}

Sequence::Sequence(Model model, const SequenceOptions& options)
    : state_(std::make_unique<State>(std::move(model), options)) {}
Sequence::~Sequence() = default;
Sequence::Sequence(Sequence&&) noexcept = default;

void Sequence::State::append(std::span<const int32_t> tokens) {
  if (tokens.empty()) fail<InvalidArgument>("a sequence reads at least one token");
  model.state_->require_tokens(tokens);
  if (seen.size() + tokens.size() > size_t(context))
    fail<InvalidArgument>("{} tokens behind {} exceed the context of {}", tokens.size(),
                          seen.size(), context);
  seen.insert(seen.end(), tokens.begin(), tokens.end());
}

template <class Read>
std::span<const float> Sequence::State::reading(std::span<const int32_t> tokens, Read&& read) {
  const size_t known = seen.size();
  append(tokens);
  try {
    return read(known);
  } catch (...) {
    seen.resize(known);  // what could not be read is not part of the text
    throw;
  }
}

std::span<const float> Sequence::read(std::span<const int32_t> tokens) {
  State& s = *state_;
  return s.reading(tokens, [&](size_t known) { return s.read_from(known); });
}

std::span<const float> Sequence::read_each(std::span<const int32_t> tokens) {
  State& s = *state_;
  return s.reading(tokens, [&](size_t known) { return s.read_each_from(known); });
}

std::span<const float> Sequence::State::read_from(size_t known) {
  std::span<const float> logits;
  while (known < seen.size()) {
    const int64_t left = int64_t(seen.size() - known);
    const Piece piece = piece_from(known, size_t(PagedReader::rows_for(left)));
    logits = reader.read({&piece, 1});
    known += piece.tokens.size();
  }
  return logits;
}

std::span<const float> Sequence::State::read_each_from(size_t known) {
  each.clear();
  while (known < seen.size()) {
    const Piece piece = piece_from(known, size_t(PagedReader::kEach));
    const std::span<const float> logits = reader.read_each(piece);
    each.insert(each.end(), logits.begin(), logits.end());
    known += piece.tokens.size();
  }
  return each;
}

void SequencePast::skip(Sequence& sequence, std::span<const int32_t> tokens) {
  sequence.state_->append(tokens);
}

std::span<const int32_t> Sequence::tokens() const { return state_->seen; }
void Sequence::truncate(size_t count) {
  if (count < state_->seen.size()) state_->seen.resize(count);
}

void Sequence::shift(size_t keep, size_t drop) {
  State& s = *state_;
  const size_t count = s.seen.size();
  if (keep > count || drop > count - keep)
    fail<InvalidArgument>("{} tokens behind the first {}: {} were read", drop, keep, count);
  if (drop == 0) return;
  const bool moves = s.reader.can_move();
  if (moves) s.reader.move({s.pages, s.pages, keep, count - keep - drop, drop});
  const auto at = s.seen.begin() + std::ptrdiff_t(keep);
  s.seen.erase(at, at + std::ptrdiff_t(drop));
  if (!moves) s.read_from(keep);
}
int64_t Sequence::context() const { return state_->context; }
const Model& Sequence::model() const { return state_->model; }
JitStats Sequence::stats() const { return state_->reader.stats(1); }

}  // namespace tuff::language
