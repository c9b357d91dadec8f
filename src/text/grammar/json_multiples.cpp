#include "text/grammar/json_multiples.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace tuff::text::grammar {
namespace {

constexpr size_t kMostMultipleDigits = 16;  // as of other numbers: a double has no more

class MultipleWriter {
 public:
  MultipleWriter(const Step& step, const AddRule& add)
      : step_(step.step), decimals_(step.decimals), add_(add) {
    // Zeros at its end are those of the numbers.
    for (; decimals_ == 0 && step_ % 10 == 0; step_ /= 10) zeros_ += '0';
  }
  uint64_t unit() const { return zeros_.empty() ? 1 : std::stoull("1" + zeros_); }

  // From `low` to `high`, above 0, in the units of its last digit; 0: without an end.
  std::optional<Expression> positive(uint64_t low, uint64_t high) {
    const std::string first = fmt::to_string(low);
    const std::string last =
        high == 0 ? std::string(std::max(first.size(), kMostMultipleDigits), '9')
                  : fmt::to_string(high);
    std::vector<Expression> some;
    const size_t least = size_t(decimals_) + 1;
    const size_t most = std::max(last.size(), least);
    for (size_t size = std::max(first.size(), least); size <= most; size++) {
      const std::string begin = size == least || size == first.size()
                                    ? std::string(size - first.size(), '0') + first
                                    : "1" + std::string(size - 1, '0');
      const std::string end = size > last.size() ? std::string(size - last.size(), '0') + last
                              : size == last.size() ? last
                                                    : std::string(size, '9');
      if (auto e = between(begin, end, 0)) some.push_back(std::move(*e));
    }
    if (some.empty()) return {};
    return sequence({choice(std::move(some)), literal(zeros_)});
  }

 private:
  // Digits from `low` to `high`, as many as both have, behind others that leave a rest.
  std::optional<Expression> between(std::string_view low, std::string_view high, uint64_t rest) {
    const size_t left = low.size();
    if (left == 0) return rest == 0 ? std::optional(Expression()) : std::nullopt;
    const std::string zeros(left - 1, '0'), nines(left - 1, '9');
    std::vector<Expression> some;
    for (char d = low[0]; d <= high[0]; d++) {
      const uint64_t then = (rest * 10 + uint64_t(d - '0')) % step_;
      auto e = behind(d == low[0] ? low.substr(1) : zeros, d == high[0] ? high.substr(1) : nines,
                      then);
      if (e) some.push_back(sequence({literal(std::string(1, d)), std::move(*e)}));
    }
    if (some.empty()) return {};
    Expression e = choice(std::move(some));
    return left == decimals_ ? sequence({literal("."), std::move(e)}) : std::move(e);
  }
  std::optional<Expression> behind(std::string_view low, std::string_view high, uint64_t rest) {
    const auto all = [](std::string_view text, char digit) {
      return text.find_first_not_of(digit) == text.npos;
    };
    if (low.empty() || !all(low, '0') || !all(high, '9')) return between(low, high, rest);
    const auto [known, added] = any_.try_emplace({low.size(), rest});
    if (added)
      if (auto e = between(low, high, rest))
        any_[{low.size(), rest}] = add_("multiple", std::move(*e));
    const std::optional<size_t> number = any_[{low.size(), rest}];
    return number ? std::optional(rule(*number)) : std::nullopt;
  }

  uint64_t step_;
  uint32_t decimals_;
  std::string zeros_;
  const AddRule& add_;
  std::map<std::pair<size_t, uint64_t>, std::optional<size_t>> any_;  // of so many digits, any
};

}  // namespace

std::optional<Step> step_of(std::string_view number) {
  const size_t point = std::min(number.find('.'), number.size());
  std::string digits(number.substr(0, point));
  if (point < number.size()) digits += number.substr(point + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return {};
  size_t decimals = point < number.size() ? number.size() - point - 1 : 0;
  for (; decimals > 0 && digits.back() == '0'; decimals--) digits.pop_back();
  size_t zeros = 0;
  if (decimals == 0)
    while (zeros + 1 < digits.size() && digits[digits.size() - 1 - zeros] == '0') zeros++;
  if (digits.size() > kMostMultipleDigits || decimals > kMostDecimals) return {};
  const uint64_t step = std::stoull(digits);
  const uint64_t rest = std::stoull(digits.substr(0, digits.size() - zeros));
  if (step == 0 || rest > kMostStep) return {};
  return Step{step, uint32_t(decimals)};
}

std::optional<Expression> multiples(const Step& step, const std::optional<NumberBound>& lowest,
                                    const std::optional<NumberBound>& highest, const AddRule& add) {
  MultipleWriter writer(step, add);
  int64_t scale = 1;
  for (uint32_t i = 0; i < step.decimals; i++) scale *= 10;
  std::optional<int64_t> least, most;
  if (lowest && __builtin_mul_overflow(lowest->value, scale, &least.emplace())) return {};
  if (highest && __builtin_mul_overflow(highest->value, scale, &most.emplace())) return {};
  if (lowest && lowest->exclusive) ++*least;
  if (highest && highest->exclusive) --*most;
  // In units of the last digit that is written by rest; what lies between two of them is none.
  const auto unit = int64_t(writer.unit());
  const auto above = [&](int64_t n) { return uint64_t(n / unit + (n % unit > 0 ? 1 : 0)); };
  const auto below = [&](int64_t n) { return uint64_t(n / unit); };
  std::vector<Expression> some;
  // Not below 0 from `low` to `high`.
  const auto side = [&](const char* sign, std::optional<int64_t> low, std::optional<int64_t> high) {
    const uint64_t first = std::max<uint64_t>(low ? above(std::max<int64_t>(*low, 1)) : 1, 1);
    if (high && (*high <= 0 || below(*high) < first)) return;
    if (auto e = writer.positive(first, high ? below(*high) : 0))
      some.push_back(sequence({literal(sign), std::move(*e)}));
  };
  if ((!least || *least <= 0) && (!most || *most >= 0)) some.push_back(literal("0"));
  side("", least, most);
  const auto negated = [](std::optional<int64_t> n) {
    return n ? std::optional(-*n) : std::nullopt;
  };
  if (!least || *least < 0) side("-", negated(most), negated(least));
  if (some.empty()) return {};
  return choice(std::move(some));
}

}  // namespace tuff::text::grammar
