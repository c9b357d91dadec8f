// The text that the character-level GPT learns: bytes, vocabulary, tokens, held-out tenth.
// Called by `tuff train gpt`. Must never know the model or where the tokens go.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/vocabulary.h"

namespace tuff::models {

inline constexpr uint64_t kMaxCorpusBytes = uint64_t{1} << 30;

// Any byte value may occur.
class Corpus {
 public:
  // InvalidArgument for an empty text or one above kMaxCorpusBytes.
  Corpus(std::vector<uint8_t> text, std::string origin);

  const std::string& origin() const { return origin_; }  // for the done line
  uint64_t size_bytes() const { return tokens_.size(); }
  const std::string& hash_hex() const { return hash_hex_; }  // XXH64 of the text
  const Vocabulary& vocabulary() const { return vocabulary_; }

  // The first nine tenths (rounded down) are for training, the rest for validation.
  std::span<const uint8_t> train_tokens() const { return {tokens_.data(), train_size_}; }
  std::span<const uint8_t> heldout_tokens() const {
    return {tokens_.data() + train_size_, tokens_.size() - train_size_};
  }
  // InvalidArgument unless both parts are longer than context + 1 tokens.
  void require_context(uint32_t context) const;

 private:
  std::string origin_, hash_hex_;
  std::vector<uint8_t> tokens_;
  Vocabulary vocabulary_;
  size_t train_size_ = 0;
};

// Files as they are, folders recursively in sorted order; names that begin with '.' are left out.
// IoError for what cannot be read; InvalidArgument above kMaxCorpusBytes together.
std::vector<std::string> read_text_files(std::span<const std::string> paths);
// The same, joined. Errors as those and the constructor's.
Corpus load_corpus(std::span<const std::string> paths);

// A fixed snapshot of the project's own sources and documents (examples/data/corpus.txt).
Corpus embedded_corpus();

}  // namespace tuff::models
