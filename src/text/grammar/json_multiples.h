// Numbers of JSON that are whole multiples of one, as expressions: their digits are read one by
// one, and what is known of them is the rest that they leave. Called by the reader of schemas.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "text/grammar/expression.h"
#include "text/grammar/json_numbers.h"

namespace tuff::text::grammar {

inline constexpr uint64_t kMostStep = 256;   // without the zeros at its end
inline constexpr uint32_t kMostDecimals = 6;

// step / 10 ** decimals.
struct Step {
  uint64_t step = 1;
  uint32_t decimals = 0;
};
// Of a number of JSON as it is written; none for one that is no more than 0 or beyond those bounds.
std::optional<Step> step_of(std::string_view number);

// Makes a rule; its number.
using AddRule = std::function<size_t(std::string name, Expression body)>;

// With as many decimals as the step has. None where no such number is between the bounds, or where
// one of these has too many digits together with the decimals.
std::optional<Expression> multiples(const Step& step, const std::optional<NumberBound>& least,
                                    const std::optional<NumberBound>& most, const AddRule& add);

}  // namespace tuff::text::grammar
