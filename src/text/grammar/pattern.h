// Regular expressions in schemas (ECMA 262), as far as they describe texts without looking around.
// Called by the reader of schemas. Must never know of JSON.
#pragma once

#include <string>

#include "text/grammar/expression.h"

namespace tuff::text::grammar {

// A text that has a match; ^ and $ stand at the ends of its alternatives. InvalidArgument for what
// is no pattern; Unsupported naming what tuff does not know.
Expression read_pattern(const std::string& pattern);

}  // namespace tuff::text::grammar
