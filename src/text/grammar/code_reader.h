// What the readers of grammars and of patterns have in common: characters one by one, escapes, sets
// and counts. Called by them. Must never know of rules.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "text/grammar/expression.h"

namespace tuff::text::grammar {

class CodeReader {
 public:
  // `what` is named in errors.
  CodeReader(std::string what, std::string_view text);
  bool at_end() const { return at_ == text_.size(); }
  uint32_t peek() const;  // not at the end
  uint32_t take();
  bool take_if(uint32_t character);
  bool take_text(std::string_view text);
  // Behind a backslash: n, t, r, what \xHH, \uHHHH and \UHHHHHHHH stand for, or the character itself
  // if it is no letter or digit.
  uint32_t escape();
  CharacterRange escaped_range() {
    const uint32_t code = escape();
    return {code, code};
  }
  // Behind [: its ranges, up to ]. `escaped` reads what follows a backslash as ranges.
  Expression set(const std::function<std::vector<CharacterRange>()>& escaped);
  // With what stands behind it: * + ? {2} {2,} {2,5}.
  Expression counted(Expression part);
  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  size_t line() const;
  uint32_t hexadecimal(int digits);
  uint32_t number();

  std::string what_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tuff::text::grammar
