#include "text/grammar/json_texts.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "text/grammar/pattern.h"

namespace tuff::text::grammar {
namespace {

constexpr CharacterRange kControl{0, 0x1f}, kQuote{'"', '"'}, kBackslash{'\\', '\\'};

constexpr size_t kMostNameBytes = 256;

// Surrogates stand in pairs.
Expression escapes() {
  const Expression hex = characters({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  const Expression d = characters({{'d', 'd'}, {'D', 'D'}});
  const Expression others = characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const Expression high = characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
  const Expression low = characters({{'C', 'F'}, {'c', 'f'}});
  const Expression code = choice({sequence({others, repeated(hex, 3, 3)}),
                                  sequence({d, characters({{'0', '7'}}), repeated(hex, 2, 2)}),
                                  sequence({d, high, repeated(hex, 2, 2), literal("\\u"), d, low,
                                            repeated(hex, 2, 2)})});
  std::vector<CharacterRange> letters;
  for (const char c : std::string_view("\"\\/bfnrt")) letters.push_back({uint32_t(c), uint32_t(c)});
  return sequence({literal("\\"), choice({characters(letters), sequence({literal("u"), code})})});
}

// Of a set of characters, those from `first` to `last`.
std::vector<CharacterRange> within(const std::vector<CharacterRange>& ranges, uint32_t first,
                                   uint32_t last) {
  std::vector<CharacterRange> out;
  for (const CharacterRange& r : ranges) {
    const CharacterRange cut{std::max(r.first, first), std::min(r.last, last)};
    if (cut.first <= cut.last) out.push_back(cut);
  }
  return out;
}

Expression escaped_set(const std::vector<CharacterRange>& ranges) {
  static constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}, {'\f', "\\f"}};
  std::vector<CharacterRange> plain;
  for (const CharacterRange& r : all_but({kControl, kQuote, kBackslash}).ranges)
    for (const CharacterRange& cut : within(ranges, r.first, r.last)) plain.push_back(cut);
  std::vector<Expression> some;
  if (!plain.empty()) some.push_back(characters(std::move(plain)));
  for (const auto& [c, escape] : kEscapes)
    if (!within(ranges, uint32_t(c), uint32_t(c)).empty()) some.push_back(literal(escape));
  return some.empty() ? characters({}) : choice(std::move(some));
}

using Names = std::span<const std::string>;

// What may follow where the names, sorted, have their first `at` bytes behind them.
Expression unlike(Names names, size_t at, const Expression& plain) {
  std::vector<Expression> some;
  const bool whole = !names.empty() && names[0].size() == at;
  if (whole) names = names.subspan(1);
  if (!whole && at > 0) some.emplace_back();  // ends where no name does
  std::vector<CharacterRange> taken{kControl, kQuote, kBackslash};
  while (!names.empty()) {
    const Utf8Character c = first_character(std::string_view(names[0]).substr(at));
    const std::string spelling = names[0].substr(at, c.bytes);
    const auto same = [&](const std::string& n) { return n.compare(at, c.bytes, spelling) == 0; };
    const auto count = size_t(std::ranges::find_if_not(names, same) - names.begin());
    taken.push_back({c.code, c.code});
    some.push_back(sequence(
        {literal(spelling), unlike(names.first(count), at + c.bytes, plain)}));
    names = names.subspan(count);
  }
  some.push_back(sequence({all_but(std::move(taken)), repeated(plain, 0)}));
  return choice(std::move(some));
}

}  // namespace

Expression json_character() {
  return choice({all_but({kControl, kQuote, kBackslash}), escapes()});
}

Expression json_escaped(const Expression& e) {
  if (e.kind == Expression::Kind::Characters) return escaped_set(e.ranges);
  Expression out = e;
  for (Expression& part : out.parts) part = json_escaped(part);
  return out;
}

Expression other_name(Names names) {
  std::vector<std::string> sorted(names.begin(), names.end());
  // One that takes an escape is spelled by none of these.
  std::erase_if(sorted, [](const std::string& n) {
    return !is_utf8(n) || n.find_first_of("\"\\") != std::string::npos ||
           std::ranges::any_of(n, [](char c) { return uint8_t(c) < 0x20; });
  });
  std::ranges::sort(sorted);
  for (const std::string& n : sorted)
    if (n.size() > kMostNameBytes)
      fail<Unsupported>("a JSON schema has the name '{:.40}...' beside additional ones: at most {} "
                        "bytes were wanted", n, kMostNameBytes);
  const Expression plain = all_but({kControl, kQuote, kBackslash});
  return sequence({literal("\""), unlike(sorted, 0, plain), literal("\"")});
}

Expression text_format(const std::string& format) {
  static constexpr const char* kDate =
      R"([12]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))";
  static constexpr const char* kTime =
      R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
  static const std::pair<std::string_view, std::string> kFormats[] = {
      {"date", kDate},
      {"time", kTime},
      {"date-time", std::string(kDate) + "T" + kTime},
      {"duration", R"(P(\d{1,9}W|\d{1,9}D(T\d{1,9}H)?|T\d{1,9}[HMS]))"},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"},
      {"email", R"([A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@([A-Za-z0-9-]+\.)+[A-Za-z]{2,})"},
      {"hostname", R"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*)"},
      {"ipv4",
       R"(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))"},
      {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"},
      {"uri", R"([a-z][a-z0-9+.-]*:(//)?[A-Za-z0-9_.~:/?#@!$&()*+,;=%-]+)"}};
  std::string known;
  for (const auto& [name, pattern] : kFormats) {
    if (format == name) return read_pattern("^" + pattern + "$");
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  fail<Unsupported>("the format \"{}\" is not known; known are {}", format, known);
}

}  // namespace tuff::text::grammar
