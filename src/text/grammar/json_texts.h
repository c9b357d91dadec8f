// Strings of JSON as expressions. Called by the reader of schemas.
#pragma once

#include <span>
#include <string>

#include "text/grammar/expression.h"

namespace tuff::text::grammar {

// One character between quotation marks, escaped or not.
Expression json_character();
// What stands between quotation marks where the text is one of `e`.
Expression json_escaped(const Expression& e);
// In quotation marks, without escapes, none of `names`.
Expression other_name(std::span<const std::string> names);
// The texts of a "format"; Unsupported naming those that are known.
Expression text_format(const std::string& format);

}  // namespace tuff::text::grammar
