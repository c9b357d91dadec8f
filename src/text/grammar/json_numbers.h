// Numbers of JSON between bounds, as expressions. Called by the reader of schemas.
#pragma once

#include <cstdint>
#include <optional>

#include "text/grammar/expression.h"

namespace tuff::text::grammar {

// Both bounds belong to it.
struct WholeBounds {
  std::optional<int64_t> least = {}, most = {};
};

Expression whole_numbers(const WholeBounds& bounds);

struct NumberBound {
  int64_t value;
  bool exclusive = false;
};

// With and without a fraction; with an exponent only where there is no bound.
Expression numbers(const std::optional<NumberBound>& least,
                   const std::optional<NumberBound>& most);

}  // namespace tuff::text::grammar
