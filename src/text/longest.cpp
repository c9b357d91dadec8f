// Models that look for tokens which a text begins with: unigram and WordPiece.
#include <limits>

#include "base/check.h"
#include "text/model.h"
#include "text/prefix_table.h"
#include "text/unicode.h"

namespace tuff::text {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst score, as SentencePiece has it

class Unigram : public TokenModel {
 public:
  Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores,
          const std::vector<bool>& usable, Fallback fallback)
      : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), fallback_(fallback) {
    double worst = 0;
    for (size_t id = 0; id < vocabulary_->size(); id++) {
      if (!usable[id]) continue;
      table_.add((*vocabulary_)[int32_t(id)], int32_t(id));
      worst = std::min(worst, scores_[id]);
    }
    table_.sort();
    unknown_score_ = worst - kUnknownPenalty;
  }

  void encode(std::string_view piece, Ids& out) const override {
    const std::vector<Best> best = best_ways(piece);
    std::vector<std::pair<size_t, size_t>> parts;  // from the last one on
    for (size_t end = piece.size(); end > 0; end = best[end].begin)
      parts.emplace_back(best[end].begin, end);
    bool unknown_before = false;
    for (size_t i = parts.size(); i-- > 0;) {
      const auto [begin, end] = parts[i];
      const int32_t id = best[end].id;
      if (id >= 0) {
        out.push_back(id);
      } else {
        write_unknown(piece.substr(begin, end - begin), unknown_before, out);
      }
      unknown_before = id < 0;
    }
  }

 private:
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    size_t begin = 0;
    int32_t id = -1;  // -1: a character that is no token
  };

  // Of what ends at each byte of the piece.
  std::vector<Best> best_ways(std::string_view piece) const {
    std::vector<Best> best(piece.size() + 1);
    best[0].score = 0;
    for (size_t at = 0; at < piece.size();) {
      const size_t bytes = next_character(piece.substr(at)).bytes;
      bool whole = false;
      const auto take = [&](size_t end, double score, int32_t id) {
        if (score > best[end].score) best[end] = {score, at, id};
      };
      table_.each_prefix(piece.substr(at), [&](PrefixTable::Match m) {
        whole |= m.bytes == bytes;
        take(at + m.bytes, best[at].score + scores_[size_t(m.value)], m.value);
      });
      if (!whole) take(at + bytes, best[at].score + unknown_score_, -1);
      at += bytes;
    }
    return best;
  }

  void write_unknown(std::string_view text, bool unknown_before, Ids& out) const {
    if (fallback_.bytes && !vocabulary_->byte_tokens().empty()) {
      for (const char c : text) out.push_back(vocabulary_->byte_tokens()[uint8_t(c)]);
    } else if (fallback_.unknown && !(unknown_before && fallback_.fuse_unknown)) {
      out.push_back(*fallback_.unknown);
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<double> scores_;
  Fallback fallback_;
  PrefixTable table_;
  double unknown_score_ = 0;
};

class WordPiece : public TokenModel {
 public:
  WordPiece(const Vocabulary& vocabulary, WordPieceOptions options) : options_(std::move(options)) {
    for (size_t i = 0; i < vocabulary.size(); i++) {
      const std::string_view token = vocabulary[int32_t(i)];
      add(first_, token, options_.first_prefix, int32_t(i));
      add(inner_, token, options_.inner_prefix, int32_t(i));
    }
    first_.sort();
    inner_.sort();
  }

  void encode(std::string_view word, Ids& out) const override {
    const size_t before = out.size();
    for (size_t at = 0; at < word.size();) {
      const auto m = (at == 0 ? first_ : inner_).longest(word.substr(at));
      if (m.value < 0 || (at == 0 && characters(word) > options_.max_characters)) {
        out.resize(before);
        out.push_back(options_.unknown);
        return;
      }
      out.push_back(m.value);
      at += m.bytes;
    }
  }

 private:
  static void add(PrefixTable& table, std::string_view token, std::string_view prefix, int32_t id) {
    if (token.starts_with(prefix) && token.size() > prefix.size())
      table.add(token.substr(prefix.size()), id);
  }
  static size_t characters(std::string_view word) {
    size_t n = 0;
    for (; !word.empty(); n++) word.remove_prefix(next_character(word).bytes);
    return n;
  }
  WordPieceOptions options_;
  PrefixTable first_, inner_;
};

}  // namespace

std::unique_ptr<TokenModel> unigram_model(std::shared_ptr<const Vocabulary> vocabulary,
                                          std::vector<double> scores, std::vector<bool> usable,
                                          Fallback fallback) {
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), usable, fallback);
}

std::unique_ptr<TokenModel> word_piece_model(const Vocabulary& vocabulary,
                                             WordPieceOptions options) {
  return std::make_unique<WordPiece>(vocabulary, std::move(options));
}

}  // namespace tuff::text
