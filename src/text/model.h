// How pieces of a text become tokens: the models of tokenizers. Called by pipelines. Must never
// know of files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace tuff::text {

using Ids = std::vector<int32_t>;

// Immutable; any thread may encode.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual void encode(std::string_view piece, Ids& out) const = 0;
};

// What the models share: how a piece that has no token is written.
struct Fallback {
  std::optional<int32_t> unknown;  // none: it is left out
  bool fuse_unknown = false;       // one for neighbours
  bool bytes = false;              // tokens <0x00> to <0xFF> instead, if the vocabulary has them
};

// Characters of a piece, merged by a list of pairs: the pair that stands first in it, of equal ones
// the leftmost, until none is left.
struct BpeOptions {
  Fallback fallback;
  bool whole_words = false;  // a piece that is a token is that token, whatever merges give
  std::string inner_prefix;  // of characters that do not begin a piece ("##")
  std::string end_suffix;    // of the last character ("</w>")
};
using Merges = std::vector<std::pair<std::string, std::string>>;
// InvalidArgument naming a merge of tokens that the vocabulary lacks.
std::unique_ptr<TokenModel> bpe_model(std::shared_ptr<const Vocabulary> vocabulary,
                                      const Merges& merges, BpeOptions options);

// SentencePiece's BPE: any two neighbours that are a token together are merged, the best score
// first, of equal ones the leftmost. Tokens that `mergeable` leaves out come about in no text.
std::unique_ptr<TokenModel> scored_bpe_model(std::shared_ptr<const Vocabulary> vocabulary,
                                             std::vector<float> scores, std::vector<bool> mergeable,
                                             Fallback fallback);

// SentencePiece's unigram: of all ways to write a piece the one of the largest sum of scores.
std::unique_ptr<TokenModel> unigram_model(std::shared_ptr<const Vocabulary> vocabulary,
                                          std::vector<double> scores, std::vector<bool> usable,
                                          Fallback fallback);

// The longest token that a word begins with, then the longest of the rest; a word that cannot be
// written is unknown.
struct WordPieceOptions {
  int32_t unknown = 0;
  std::string first_prefix, inner_prefix = "##";
  size_t max_characters = SIZE_MAX;  // of words that are looked at
};
std::unique_ptr<TokenModel> word_piece_model(const Vocabulary& vocabulary,
                                             WordPieceOptions options);

// A piece is a token or unknown.
std::unique_ptr<TokenModel> word_level_model(std::shared_ptr<const Vocabulary> vocabulary,
                                             Fallback fallback);

}  // namespace tuff::text
