// TokenFilter: the tokens that may go on with an answer that a grammar describes. Called by whatever
// draws tokens. Must never know what logits come from.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include <tuff/grammar.h>
#include <tuff/tokenizer.h>

#include "text/grammar/matcher.h"

namespace tuff::text::grammar {

// The tokens that write bytes, in the order of these.
struct SortedTokens {
  explicit SortedTokens(const Tokenizer::State& vocabulary);
  struct Row {
    int32_t token;
    uint32_t shared;  // bytes at its beginning that the row before has too
  };
  std::vector<Row> rows;
};

class TokenFilter {
 public:
  // Of a grammar that is defined.
  TokenFilter(const Grammar& grammar, Tokenizer tokenizer);
  // The logits, with -infinity for what may not come; ends of an answer may where the text is
  // whole. Valid until the next call. InvalidArgument where no token may come.
  std::span<const float> filtered(std::span<const float> logits);
  // One of the tokens that may come.
  void push(int32_t token);
  // Whether the text is whole and nothing can follow.
  bool ended() const;

 private:
  using Mask = std::vector<bool>;  // by token
  std::string_view bytes_of(int32_t token) const;
  const Mask& mask();
  Mask first_mask();
  Mask found_mask();

  Tokenizer tokenizer_;
  std::shared_ptr<const SortedTokens> tokens_;
  Matcher matcher_;
  Matcher::State state_;
  bool begun_ = false;
  std::unordered_map<Matcher::State, Mask> masks_;  // where the text has begun
  Mask first_;
  std::vector<float> logits_;
};

}  // namespace tuff::text::grammar
