#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "language/model_state.h"
#include "language/pages.h"
#include "language/paged_reader.h"

namespace tuff::language {

// The pages are those of one text, in order.
struct Sequence::State {
  State(Model m, const SequenceOptions& options);
  // Reads what was seen, of which the first `known` tokens have been read.
  void read_from(size_t known);

  Model model;
  int64_t context;
  std::vector<int32_t> pages, seen;
  PagedReader reader;
  std::span<const float> logits;
};

Sequence::State::State(Model m, const SequenceOptions& options)
    : model(std::move(m)),
      context(PagedReader::context_of(model.description(), options.context)),
      pages(size_t((context + kPagePositions - 1) / kPagePositions)),
      reader(model.state_->config, model.state_->weights, model.state_->rope_factors(context),
             context, int64_t(pages.size()), options.cache_dtype) {
  std::iota(pages.begin(), pages.end(), 0);
}

Sequence::Sequence(Model model, const SequenceOptions& options)
    : state_(std::make_unique<State>(std::move(model), options)) {}
Sequence::~Sequence() = default;
Sequence::Sequence(Sequence&&) noexcept = default;

std::span<const float> Sequence::read(std::span<const int32_t> tokens) {
  State& s = *state_;
  if (tokens.empty()) fail<InvalidArgument>("a sequence reads at least one token");
  PagedReader::require_tokens(tokens, s.model.description());
  if (s.seen.size() + tokens.size() > size_t(s.context))
    fail<InvalidArgument>("{} tokens behind {} exceed the context of {}", tokens.size(),
                          s.seen.size(), s.context);
  const size_t known = s.seen.size();
  s.seen.insert(s.seen.end(), tokens.begin(), tokens.end());
  try {
    s.read_from(known);
  } catch (...) {
    s.seen.resize(known);  // what could not be read is not part of the text
    throw;
  }
  return s.logits;
}

void Sequence::State::read_from(size_t known) {
  while (known < seen.size()) {
    const size_t left = seen.size() - known;
    const size_t count = std::min(left, size_t(PagedReader::rows_for(int64_t(left))));
    const Piece piece{std::span(seen).subspan(known, count), known, pages};
    logits = reader.read({&piece, 1});
    known += count;
  }
}

std::span<const int32_t> Sequence::tokens() const { return state_->seen; }
void Sequence::truncate(size_t count) {
  if (count < state_->seen.size()) state_->seen.resize(count);
}
int64_t Sequence::context() const { return state_->context; }
const Model& Sequence::model() const { return state_->model; }
JitStats Sequence::stats() const { return state_->reader.stats(1); }

}  // namespace tuff::language
