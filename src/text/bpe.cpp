// Byte pair encoding: by a list of merges, and by scores. Both keep the symbols of a piece in a
// linked list and possible merges in a heap, so that a piece of n bytes takes n log n steps.
#include <queue>

#include "base/check.h"
#include "text/model.h"
#include "text/unicode.h"

namespace tuff::text {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

void write_unknown(std::string_view piece, const Vocabulary& vocabulary, const Fallback& fallback,
                   Ids& out) {
  if (fallback.bytes && !vocabulary.byte_tokens().empty()) {
    for (const char c : piece) out.push_back(vocabulary.byte_tokens()[uint8_t(c)]);
  } else if (fallback.unknown &&
             !(fallback.fuse_unknown && !out.empty() && out.back() == *fallback.unknown)) {
    out.push_back(*fallback.unknown);
  }
}

class Bpe : public TokenModel {
 public:
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, const Merges& merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
    merges_.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); rank++) add(merges[rank], uint32_t(rank));
  }

  void encode(std::string_view piece, Ids& out) const override {
    if (piece.empty()) return;
    if (options_.whole_words) {
      if (const auto id = vocabulary_->find(piece)) {
        out.push_back(*id);
        return;
      }
    }
    std::vector<Symbol> symbols = characters(piece);
    merge(symbols);
    for (uint32_t i = 0; i != kNone && i < symbols.size(); i = symbols[i].next)
      if (symbols[i].id >= 0) out.push_back(symbols[i].id);
  }

 private:
  struct Symbol {
    int32_t id;  // -1: no token, and in no merge
    uint32_t previous, next;
  };
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  struct Candidate {
    uint32_t rank, at;
    int32_t left, right, id;
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }

  void add(const std::pair<std::string, std::string>& merge, uint32_t rank) {
    std::string_view second = merge.second;
    if (second.starts_with(options_.inner_prefix))
      second.remove_prefix(options_.inner_prefix.size());
    const auto left = vocabulary_->find(merge.first), right = vocabulary_->find(merge.second);
    const auto both = vocabulary_->find(merge.first + std::string(second));
    if (!left || !right || !both)
      fail<InvalidArgument>(
          "tokenizer: merge {} is of '{:.100}' and '{:.100}', and the vocabulary lacks {}", rank,
          merge.first, merge.second,
          !left    ? "the first"
          : !right ? "the second"
                   : "both together");
    merges_.try_emplace(key(*left, *right), Merge{rank, *both});
  }

  std::optional<int32_t> token_of(std::string_view character, bool first, bool last) const {
    if (options_.inner_prefix.empty() && options_.end_suffix.empty())
      return vocabulary_->find(character);
    return vocabulary_->find((first ? "" : options_.inner_prefix) + std::string(character) +
                             (last ? options_.end_suffix : ""));
  }

  std::vector<Symbol> characters(std::string_view piece) const {
    Ids ids;
    ids.reserve(piece.size());
    while (!piece.empty()) {
      const size_t bytes = next_character(piece).bytes;
      const std::string_view character = piece.substr(0, bytes);
      if (const auto id = token_of(character, ids.empty(), bytes == piece.size())) {
        ids.push_back(*id);
      } else {
        const size_t before = ids.size();
        write_unknown(character, *vocabulary_, options_.fallback, ids);
        // A place that nothing is merged across.
        if (ids.size() == before && !(options_.fallback.fuse_unknown && options_.fallback.unknown))
          ids.push_back(-1);
      }
      piece.remove_prefix(bytes);
    }
    std::vector<Symbol> out(ids.size());
    for (uint32_t i = 0; i < out.size(); i++)
      out[i] = {ids[i], i == 0 ? kNone : i - 1, i + 1 == out.size() ? kNone : i + 1};
    return out;
  }

  void merge(std::vector<Symbol>& symbols) const {
    std::vector<Candidate> initial;
    const auto candidate = [&](uint32_t at, auto&& take) {
      const Symbol& s = symbols[at];
      if (s.next == kNone) return;
      const auto it = merges_.find(key(s.id, symbols[s.next].id));
      if (it != merges_.end())
        take(Candidate{it->second.rank, at, s.id, symbols[s.next].id, it->second.id});
    };
    for (uint32_t i = 0; i < symbols.size(); i++)
      candidate(i, [&](const Candidate& c) { initial.push_back(c); });
    std::priority_queue<Candidate> queue({}, std::move(initial));
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& s = symbols[c.at];
      if (s.id != c.left || s.next == kNone || symbols[s.next].id != c.right) continue;
      Symbol& gone = symbols[s.next];
      s.id = c.id;
      s.next = gone.next;
      if (s.next != kNone) symbols[s.next].previous = c.at;
      gone = {-1, kNone, kNone};
      const auto push = [&](const Candidate& n) { queue.push(n); };
      if (s.previous != kNone) candidate(s.previous, push);
      candidate(c.at, push);
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  BpeOptions options_;
  std::unordered_map<uint64_t, Merge> merges_;
};

class ScoredBpe : public TokenModel {
 public:
  ScoredBpe(std::shared_ptr<const Vocabulary> vocabulary, std::vector<float> scores,
            std::vector<bool> mergeable, Fallback fallback)
      : vocabulary_(std::move(vocabulary)),
        scores_(std::move(scores)),
        mergeable_(std::move(mergeable)),
        fallback_(fallback) {}

  void encode(std::string_view piece, Ids& out) const override {
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < piece.size();) {
      const auto bytes = uint32_t(next_character(piece.substr(at)).bytes);
      const auto i = uint32_t(symbols.size());
      symbols.push_back({uint32_t(at), bytes, i - 1, i + 1});  // of the first one: kNone
      at += bytes;
    }
    if (symbols.empty()) return;
    symbols.back().next = kNone;
    merge(piece, symbols);
    for (uint32_t i = 0; i != kNone; i = symbols[i].next) {
      const std::string_view text = piece.substr(symbols[i].begin, symbols[i].bytes);
      if (const auto id = token_of(text)) {
        out.push_back(*id);
      } else {
        write_unknown(text, *vocabulary_, fallback_, out);
      }
    }
  }

 private:
  struct Symbol {
    uint32_t begin, bytes, previous, next;  // no bytes: merged into the one before
  };
  struct Candidate {
    float score;
    uint32_t at, left_bytes, bytes;
    bool operator<(const Candidate& o) const {
      return score != o.score ? score < o.score : at > o.at;
    }
  };

  std::optional<int32_t> token_of(std::string_view text) const {
    const auto id = vocabulary_->find(text);
    return id && mergeable_[size_t(*id)] ? id : std::nullopt;
  }

  void merge(std::string_view piece, std::vector<Symbol>& symbols) const {
    std::vector<Candidate> initial;
    const auto candidate = [&](uint32_t at, auto&& take) {
      const Symbol& s = symbols[at];
      if (s.next == kNone) return;
      const uint32_t bytes = s.bytes + symbols[s.next].bytes;
      if (bytes > vocabulary_->longest()) return;
      if (const auto id = token_of(piece.substr(s.begin, bytes)))
        take(Candidate{scores_[size_t(*id)], at, s.bytes, bytes});
    };
    for (uint32_t i = 0; i < symbols.size(); i++)
      candidate(i, [&](const Candidate& c) { initial.push_back(c); });
    std::priority_queue<Candidate> queue({}, std::move(initial));
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& s = symbols[c.at];
      if (s.bytes != c.left_bytes || s.next == kNone || s.bytes + symbols[s.next].bytes != c.bytes)
        continue;
      Symbol& gone = symbols[s.next];
      s.bytes = c.bytes;
      s.next = gone.next;
      if (s.next != kNone) symbols[s.next].previous = c.at;
      gone.bytes = 0;
      const auto push = [&](const Candidate& n) { queue.push(n); };
      if (s.previous != kNone) candidate(s.previous, push);
      candidate(c.at, push);
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<float> scores_;
  std::vector<bool> mergeable_;
  Fallback fallback_;
};

class WordLevel : public TokenModel {
 public:
  WordLevel(std::shared_ptr<const Vocabulary> vocabulary, Fallback fallback)
      : vocabulary_(std::move(vocabulary)), fallback_(fallback) {}
  void encode(std::string_view piece, Ids& out) const override {
    if (const auto id = vocabulary_->find(piece)) {
      out.push_back(*id);
    } else {
      write_unknown(piece, *vocabulary_, fallback_, out);
    }
  }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  Fallback fallback_;
};

}  // namespace

std::unique_ptr<TokenModel> bpe_model(std::shared_ptr<const Vocabulary> vocabulary,
                                      const Merges& merges, BpeOptions options) {
  return std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options));
}

std::unique_ptr<TokenModel> scored_bpe_model(std::shared_ptr<const Vocabulary> vocabulary,
                                             std::vector<float> scores, std::vector<bool> mergeable,
                                             Fallback fallback) {
  return std::make_unique<ScoredBpe>(std::move(vocabulary), std::move(scores), std::move(mergeable),
                                     fallback);
}

std::unique_ptr<TokenModel> word_level_model(std::shared_ptr<const Vocabulary> vocabulary,
                                             Fallback fallback) {
  return std::make_unique<WordLevel>(std::move(vocabulary), fallback);
}

}  // namespace tuff::text
