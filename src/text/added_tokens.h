// Tokens that are found in a text before anything else is done to it: special tokens, and those
// that were added to a vocabulary. Called by pipelines. Must never know of models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/prefix_table.h"

namespace tuff::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // found only where special tokens are asked for
  bool left_strip = false;   // takes the spaces before it with it
  bool right_strip = false;  // and those behind it
  bool single_word = false;  // not inside of a word
};

// A part of a text: a token, or text that holds none.
struct Fragment {
  std::string_view text;
  int32_t token = -1;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  bool empty() const { return tokens_.empty(); }
  // From left to right, the longest at each place.
  std::vector<Fragment> split(std::string_view text, bool with_special) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixTable table_, ordinary_;  // all; those that are not special
};

}  // namespace tuff::text
