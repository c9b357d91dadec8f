// Templates as tokens: data, and what stands between {{ }}, {% %}. Called by the parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuff::text::jinja {

struct Token {
  enum class Kind {
    Data,
    OutputBegin,
    OutputEnd,
    BlockBegin,
    BlockEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End
  };
  Kind kind = Kind::End;
  std::string text;  // of a string what it holds
  int line = 0;
};

// With trim_blocks and lstrip_blocks, as chat templates are written. InvalidArgument naming the
// line.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace tuff::text::jinja
