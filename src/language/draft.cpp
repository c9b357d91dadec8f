#include "language/draft.h"

#include <algorithm>

#include "base/check.h"
#include "language/model_state.h"

namespace tuff::language {
namespace {

constexpr int64_t kMostDrafted = PagedReader::kEach - 1;  // with the token before them: one call
constexpr size_t kLongestMatch = 3, kShortestMatch = 2;  // tokens

size_t pages_of(int64_t context) { return size_t((context - 1) / kPagePositions + 1); }

int64_t context_of(const Model& draft, int64_t context) {
  return std::min(context, draft.description().context);
}

}  // namespace

void require_drafts(const GenerateOptions& options, bool has_model) {
  const int64_t least = has_model ? 1 : 0;
  if (options.draft_tokens < least || options.draft_tokens > kMostDrafted)
    fail<InvalidArgument>("draft_tokens is {}: a number from {} to {} was wanted{}",
                          options.draft_tokens, least, kMostDrafted,
                          has_model ? " of the draft model" : "");
}

void require_same_vocabulary(const Model& model, const Model& draft) {
  const Tokenizer &wanted = model.tokenizer(), &got = draft.tokenizer();
  if (got.size() != wanted.size())
    fail<InvalidArgument>("the draft model has {} tokens, the model {}: a draft has the same "
                          "vocabulary", got.size(), wanted.size());
  for (int32_t t = 0; t < int32_t(wanted.size()); t++)
    if (got.token(t) != wanted.token(t))
      fail<InvalidArgument>("token {} of the draft model is \"{}\", of the model \"{}\": a draft "
                            "has the same vocabulary", t, got.token(t), wanted.token(t));
}

std::span<const int32_t> followed_before(std::span<const int32_t> text, size_t most) {
  for (size_t n = kLongestMatch; n >= kShortestMatch && most > 0; n--) {
    if (text.size() <= n) continue;
    const auto end = text.last(n);
    for (size_t at = text.size() - n; at-- > 0;) {
      if (!std::ranges::equal(text.subspan(at, n), end)) continue;
      const auto behind = text.subspan(at + n);
      return behind.first(std::min(behind.size(), most));
    }
  }
  return {};
}

size_t equal_tokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

int32_t likeliest(std::span<const float> logits) {
  return int32_t(std::ranges::max_element(logits) - logits.begin());
}

std::vector<int32_t> proposed(Sequence& draft, std::span<const int32_t> text, size_t most) {
  std::vector<int32_t> out;
  // All but the last one that is proposed are read.
  const size_t context = size_t(draft.context());
  most = std::min(most, context + 1 - std::min(text.size(), context + 1));
  if (most == 0) return out;
  const size_t known = std::min(equal_tokens(text, draft.tokens()), text.size() - 1);
  draft.truncate(known);
  std::span<const float> logits = draft.read(text.subspan(known));
  while (out.push_back(likeliest(logits)), out.size() < most) logits = draft.read({&out.back(), 1});
  return out;
}

DraftModel::DraftModel(const Model& model, size_t answers, int64_t context, CacheType cache)
    : model_(model),
      context_(context_of(model, context)),
      reader_(model_.state_->config, model_.state_->weights,
              model_.state_->rope_factors(context_), context_,
              int64_t(answers * pages_of(context_)), cache),
      slots_(answers) {
  int32_t next = 0;
  for (size_t i = 0; i < answers; i++) {
    for (size_t p = 0; p < pages_of(context_); p++) slots_[i].pages.push_back(next++);
    free_.push_back(i);
  }
}

size_t DraftModel::take_slot() {
  TUFF_CHECK(!free_.empty());
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

size_t DraftModel::that_fit(const Wish& w) const {
  const size_t context = size_t(context_);
  return std::min(w.most, context + 1 - std::min(w.text.size(), context + 1));
}

// All but what one call reads beside others.
void DraftModel::read_prompt(Slot& slot, std::span<const int32_t> text) {
  const size_t known = std::min(equal_tokens(text, slot.read), text.size() - 1);
  slot.read.resize(known);
  while (text.size() - slot.read.size() > size_t(PagedReader::kEach)) {
    const auto left = text.subspan(slot.read.size()).first(text.size() - slot.read.size() - 1);
    const int64_t rows = PagedReader::rows_for(int64_t(left.size()));
    const auto tokens = left.first(std::min(left.size(), size_t(rows)));
    const Piece piece{tokens, slot.read.size(), slot.pages};
    reader_.read({&piece, 1});
    slot.read.insert(slot.read.end(), tokens.begin(), tokens.end());
  }
}

std::vector<std::vector<int32_t>> DraftModel::propose(std::span<const Wish> wishes) {
  std::vector<std::vector<int32_t>> out(wishes.size());
  std::vector<std::vector<int32_t>> next(wishes.size());  // tokens that the next call reads
  size_t rounds = 0;
  for (size_t i = 0; i < wishes.size(); i++) {
    const Wish& w = wishes[i];
    if (that_fit(w) == 0) continue;
    rounds = std::max(rounds, that_fit(w));
    Slot& slot = slots_[w.slot];
    read_prompt(slot, w.text);
    const auto left = w.text.subspan(slot.read.size());
    next[i].assign(left.begin(), left.end());
  }
  for (size_t round = 0; round < rounds; round++) {
    std::vector<Piece> rows;
    for (size_t i = 0; i < wishes.size(); i++) {
      const Slot& slot = slots_[wishes[i].slot];
      for (size_t t = 0; t < next[i].size(); t++)
        rows.push_back({std::span(next[i]).subspan(t, 1), slot.read.size() + t, slot.pages});
    }
    const std::span<const float> logits = reader_.read(rows);
    const size_t vocabulary = logits.size() / rows.size();
    size_t row = 0;
    for (size_t i = 0; i < wishes.size(); i++) {
      if (next[i].empty()) continue;
      row += next[i].size();
      std::vector<int32_t>& read = slots_[wishes[i].slot].read;
      read.insert(read.end(), next[i].begin(), next[i].end());
      out[i].push_back(likeliest(logits.subspan((row - 1) * vocabulary, vocabulary)));
      next[i].clear();
      if (out[i].size() < that_fit(wishes[i])) next[i].push_back(out[i].back());
    }
  }
  return out;
}

}  // namespace tuff::language
