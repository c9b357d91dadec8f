#include "text/grammar/token_filter.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "text/pipeline.h"

namespace tuff {

std::shared_ptr<const text::grammar::SortedTokens> Tokenizer::State::sorted_tokens() const {
  std::call_once(sorted_, [this] {
    sorted_tokens_ = std::make_shared<const text::grammar::SortedTokens>(*this);
  });
  return sorted_tokens_;
}

namespace text::grammar {
namespace {

constexpr size_t kMostStates = 8192;
constexpr size_t kMostMasks = 512;

}  // namespace

SortedTokens::SortedTokens(const Tokenizer::State& vocabulary) {
  const std::vector<std::string>& pieces = vocabulary.pieces;
  for (size_t t = 0; t < pieces.size(); t++) {
    const bool writes = !vocabulary.special[t] && !vocabulary.ends.contains(int32_t(t));
    if (writes && !pieces[t].empty()) rows.push_back({int32_t(t), 0});
  }
  const auto piece = [&](const Row& r) -> const std::string& { return pieces[size_t(r.token)]; };
  std::ranges::sort(rows, {}, piece);
  for (size_t i = 1; i < rows.size(); i++) {
    const std::string &a = piece(rows[i - 1]), &b = piece(rows[i]);
    rows[i].shared = uint32_t(std::ranges::mismatch(a, b).in1 - a.begin());
  }
}

TokenFilter::TokenFilter(const Grammar& grammar, Tokenizer tokenizer)
    : tokenizer_(std::move(tokenizer)),
      tokens_(tokenizer_.state_->sorted_tokens()),
      matcher_(grammar.automaton_),
      state_(matcher_.start()) {}

// As TextStream tells them.
std::string_view TokenFilter::bytes_of(int32_t token) const {
  std::string_view bytes = tokenizer_.piece(token);
  const std::string& start = tokenizer_.state_->dropped_start;
  if (!begun_ && bytes.starts_with(start)) bytes.remove_prefix(start.size());
  return bytes;
}

// A first token may lose what others keep, so each is looked at by itself.
TokenFilter::Mask TokenFilter::first_mask() {
  Mask mask(tokenizer_.size());
  for (const SortedTokens::Row& row : tokens_->rows) {
    const std::string_view bytes = bytes_of(row.token);
    Matcher::State at = matcher_.start();
    for (size_t i = 0; i < bytes.size() && at != Matcher::kNone; i++)
      at = matcher_.next(at, uint8_t(bytes[i]));
    mask[size_t(row.token)] = at != Matcher::kNone && !bytes.empty();
  }
  return mask;
}

TokenFilter::Mask TokenFilter::found_mask() {
  Mask mask(tokenizer_.size());
  std::vector<Matcher::State> path{state_};  // behind each byte of the last token that was read
  uint32_t refused_at = std::numeric_limits<uint32_t>::max();  // the byte of it that may not come
  for (const SortedTokens::Row& row : tokens_->rows) {
    if (row.shared > refused_at) continue;
    const std::string& bytes = tokenizer_.piece(row.token);
    path.resize(std::min<size_t>(path.size(), row.shared + 1));
    refused_at = std::numeric_limits<uint32_t>::max();
    for (size_t i = path.size() - 1; i < bytes.size(); i++) {
      const Matcher::State to = matcher_.next(path.back(), uint8_t(bytes[i]));
      if (to == Matcher::kNone) {
        refused_at = uint32_t(i);
        break;
      }
      path.push_back(to);
    }
    mask[size_t(row.token)] = path.size() == bytes.size() + 1;
  }
  return mask;
}

const TokenFilter::Mask& TokenFilter::mask() {
  matcher_.renew_steps();
  if (!begun_) {
    if (first_.empty()) first_ = first_mask();
    return first_;
  }
  if (matcher_.size() > kMostStates || masks_.size() > kMostMasks) {
    masks_.clear();
    state_ = matcher_.forget_others(state_);
  }
  const auto known = masks_.find(state_);
  return known != masks_.end() ? known->second : masks_[state_] = found_mask();
}

std::span<const float> TokenFilter::filtered(std::span<const float> logits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const Mask& may = mask();
  const bool whole = matcher_.accepts(state_);
  logits_.assign(logits.size(), kNever);
  for (size_t t = 0; t < std::min(logits.size(), may.size()); t++)
    if (may[t]) logits_[t] = logits[t];
  if (whole) {
    for (const int32_t end : tokenizer_.state_->ends)
      if (size_t(end) < logits.size()) logits_[size_t(end)] = logits[size_t(end)];
  }
  const bool any = std::ranges::any_of(logits_, [](float l) { return l > kNever; });
  if (!any)
    fail<InvalidArgument>("no token of the vocabulary goes on as the grammar wants{}",
                          whole ? ", and none ends an answer" : "");
  return logits_;
}

void TokenFilter::push(int32_t token) {
  for (const char b : bytes_of(token)) {
    state_ = matcher_.next(state_, uint8_t(b));
    TUFF_CHECK(state_ != Matcher::kNone, "token {} was not to come", token);
  }
  begun_ = true;
}

bool TokenFilter::ended() const { return matcher_.accepts(state_) && !matcher_.goes_on(state_); }

}  // namespace text::grammar
}  // namespace tuff
