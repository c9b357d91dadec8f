#include "text/grammar/json_numbers.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace tuff::text::grammar {
namespace {

// Of a number without bounds: a double has no more.
constexpr uint32_t kMostDigits = 16;

Expression digit(char first, char last) {
  return characters({{uint32_t(uint8_t(first)), uint32_t(uint8_t(last))}});
}
Expression digits(uint32_t least, uint32_t most) { return repeated(digit('0', '9'), least, most); }

// Decimal numbers of as many digits as both have, from `low` to `high`.
Expression between(std::string_view low, std::string_view high) {
  if (low.empty()) return {};
  const auto rest = uint32_t(low.size() - 1);
  const std::string zeros(rest, '0'), nines(rest, '9');
  if (low[0] == high[0])
    return sequence({digit(low[0], low[0]), between(low.substr(1), high.substr(1))});
  std::vector<Expression> some;
  char first = low[0], last = high[0];
  if (low.substr(1) != zeros) {
    some.push_back(sequence({digit(first, first), between(low.substr(1), nines)}));
    first++;
  }
  if (high.substr(1) != nines) {
    some.push_back(sequence({digit(last, last), between(zeros, high.substr(1))}));
    last--;
  }
  if (first <= last) some.push_back(sequence({digit(first, last), digits(rest, rest)}));
  return choice(std::move(some));
}

constexpr uint64_t kNoBound = std::numeric_limits<uint64_t>::max();

// From `low` to `high`; without a bound up to as many digits as there may be.
Expression from(uint64_t low, uint64_t high) {
  const std::string first = fmt::to_string(low);
  std::vector<Expression> some;
  const bool open = high == kNoBound;
  const std::string last = open ? std::string() : fmt::to_string(high);
  for (size_t size = first.size(); open || size <= last.size(); size++) {
    if (open && size > first.size()) {
      const auto most = std::max(uint32_t(size), kMostDigits);
      some.push_back(sequence({digit('1', '9'), digits(uint32_t(size) - 1, most - 1)}));
      break;
    }
    const std::string least = size == first.size() ? first : "1" + std::string(size - 1, '0');
    const std::string most = size == last.size() ? last : std::string(size, '9');
    some.push_back(between(least, most));
  }
  return choice(std::move(some));
}

uint64_t distance_from_0(int64_t value) {
  return value < 0 ? uint64_t(0) - uint64_t(value) : uint64_t(value);
}

Expression fraction() { return sequence({literal("."), digits(1, kMostDigits)}); }
Expression fraction_above_0() {
  return sequence({literal("."), repeated(literal("0"), 0, kMostDigits), digit('1', '9'),
                   digits(0, kMostDigits)});
}

// Not below 0, with a fraction: whole parts from `low` on, below `high`, and at `high` itself
// nothing but zeros.
Expression with_fraction(const NumberBound& low, const std::optional<NumberBound>& high) {
  std::vector<Expression> some;
  const auto whole = [&](int64_t first, std::optional<int64_t> last) {
    return from(uint64_t(first), last ? uint64_t(*last) : kNoBound);
  };
  const std::optional<int64_t> below = high ? std::optional(high->value - 1) : std::nullopt;
  const int64_t first = low.value + (low.exclusive ? 1 : 0);
  if (low.exclusive && (!high || low.value < high->value))
    some.push_back(sequence({whole(low.value, low.value), fraction_above_0()}));
  if (!below || first <= *below)
    some.push_back(sequence({whole(first, below), optional(fraction())}));
  if (high && !high->exclusive && first <= high->value)
    some.push_back(sequence({whole(high->value, high->value),
                             optional(sequence({literal("."), repeated(literal("0"), 1, 1)}))}));
  return choice(std::move(some));
}

bool is_empty(const Expression& e) {
  return e.kind == Expression::Kind::Choice && e.parts.empty();
}

}  // namespace

Expression whole_numbers(const WholeBounds& bounds) {
  const std::optional<int64_t> least = bounds.least, most = bounds.most;
  std::vector<Expression> some;
  if (!most || *most >= 0)
    some.push_back(from(uint64_t(std::max<int64_t>(least.value_or(0), 0)),
                        most ? uint64_t(*most) : kNoBound));
  if (!least || *least < 0) {
    const uint64_t low = most && *most < 0 ? distance_from_0(*most) : 1;
    const uint64_t high = least ? distance_from_0(*least) : kNoBound;
    some.push_back(sequence({literal("-"), from(low, high)}));
  }
  return choice(std::move(some));
}

Expression numbers(const std::optional<NumberBound>& least,
                   const std::optional<NumberBound>& most) {
  if (!least && !most) {
    const Expression exponent = sequence(
        {characters({{'e', 'e'}, {'E', 'E'}}),
         optional(characters({{'+', '+'}, {'-', '-'}})), digits(1, 2)});
    return sequence({optional(literal("-")), from(0, kNoBound), optional(fraction()),
                     optional(exponent)});
  }
  std::vector<Expression> some;
  const bool low_negative = !least || least->value < 0;
  if (!most || most->value >= 0)
    some.push_back(with_fraction(low_negative ? NumberBound{0} : *least, most));
  if (low_negative) {
    const std::optional<NumberBound> high =
        least ? std::optional(NumberBound{-least->value, least->exclusive}) : std::nullopt;
    const NumberBound low = most && most->value <= 0 ? NumberBound{-most->value, most->exclusive}
                                                     : NumberBound{0, true};
    some.push_back(sequence({literal("-"), with_fraction(low, high)}));
  }
  std::erase_if(some, [](const Expression& e) {
    return is_empty(e) || (e.kind == Expression::Kind::Sequence && is_empty(e.parts.back()));
  });
  return choice(std::move(some));
}

}  // namespace tuff::text::grammar
