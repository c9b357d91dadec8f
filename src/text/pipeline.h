// What readers of tokenizers make of a file, and Tokenizer runs: added tokens, normalization,
// cutting, the model, and how tokens are read back. Called by tokenizer and by the readers.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <tuff/tokenizer.h>
#include "text/added_tokens.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace tuff {

namespace text::grammar {
struct SortedTokens;
}

struct Tokenizer::State {
  std::shared_ptr<const text::Vocabulary> vocabulary;
  text::AddedTokens added;             // found in the text as it is
  text::AddedTokens added_normalized;  // found in what the normalizer makes of it
  text::TextStep normalize;            // may be none
  text::PieceStep cut;                 // may be none
  std::unique_ptr<text::TokenModel> model;
  text::Ids before, behind;  // what add_special puts around a text

  std::vector<std::string> pieces;  // by id: the bytes that a token stands for
  std::vector<bool> special;        // by id
  std::string dropped_start;        // what decode() leaves out where a text begins with it
  std::optional<int32_t> bos, eos, unknown, pad;
  std::unordered_set<int32_t> ends;
  std::string chat_template;

  // What grammars look at, made when one first does.
  std::shared_ptr<const text::grammar::SortedTokens> sorted_tokens() const;

 private:
  mutable std::once_flag sorted_;
  mutable std::shared_ptr<const text::grammar::SortedTokens> sorted_tokens_;
};

namespace text {

// The ids of tokens that are known to end a turn, by their spelling, and `eos`.
std::unordered_set<int32_t> end_tokens(const Vocabulary& vocabulary, std::optional<int32_t> eos);

std::shared_ptr<Tokenizer::State> read_gguf_tokenizer(const Metadata& metadata);

// Texts of the files beside a tokenizer.json; empty: not there.
struct TokenizerFiles {
  std::string config, generation, chat_template;
};
std::shared_ptr<Tokenizer::State> read_json_tokenizer(std::string_view text,
                                                      const TokenizerFiles& files);

}  // namespace text
}  // namespace tuff
