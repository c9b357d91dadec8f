#include "text/grammar/code_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace tuff::text::grammar {
namespace {

constexpr uint32_t kMostTimes = 1u << 20;

}  // namespace

CodeReader::CodeReader(std::string what, std::string_view text)
    : what_(std::move(what)), text_(text) {
  if (text.size() > kMaxSize)
    fail<InvalidArgument>("{} has {} bytes: at most {} were wanted", what_, text.size(), kMaxSize);
  if (!is_utf8(text)) fail<InvalidArgument>("{} is no UTF-8: '{:.40}'", what_, text);
}

size_t CodeReader::line() const {
  return 1 + size_t(std::ranges::count(text_.substr(0, at_), '\n'));
}

void CodeReader::refuse(std::string_view reason) const {
  const std::string_view rest = text_.substr(at_);
  fail<InvalidArgument>("{}, line {}: {} before {}", what_, line(), reason,
                        rest.empty() ? "its end"
                                     : fmt::format("'{}'", rest.substr(0, rest.find('\n'))));
}

uint32_t CodeReader::peek() const {
  if (at_end()) refuse("more was wanted");
  return first_character(text_.substr(at_)).code;
}

uint32_t CodeReader::take() {
  const uint32_t code = peek();
  at_ += first_character(text_.substr(at_)).bytes;
  return code;
}

bool CodeReader::take_if(uint32_t character) {
  const bool is = !at_end() && peek() == character;
  if (is) take();
  return is;
}

bool CodeReader::take_text(std::string_view text) {
  const bool is = text_.substr(at_).starts_with(text);
  if (is) at_ += text.size();
  return is;
}

uint32_t CodeReader::hexadecimal(int digits) {
  uint32_t code = 0;
  for (int i = 0; i < digits; i++) {
    const uint32_t c = peek();
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!digit && !letter) refuse(fmt::format("{} hexadecimal digits were wanted", digits));
    code = code * 16 + (digit ? c - '0' : (c | 0x20) - 'a' + 10);
    take();
  }
  if (code > kLastCharacter) refuse("there is no such character");
  return code;
}

uint32_t CodeReader::escape() {
  const uint32_t c = peek();
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  static constexpr std::string_view kKnown = "ntrxuU";
  if (letter && (c > 0x7f || kKnown.find(char(c)) == std::string_view::npos))
    refuse("an escape that is not known");
  take();
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'x': return hexadecimal(2);
    case 'u': return hexadecimal(4);
    case 'U': return hexadecimal(8);
    default: return c;
  }
}

Expression CodeReader::set(const std::function<std::vector<CharacterRange>()>& escaped) {
  const bool but = take_if('^');
  std::vector<CharacterRange> ranges;
  const auto one = [&]() -> std::vector<CharacterRange> {
    if (take_if('\\')) return escaped();
    const uint32_t c = take();
    return {{c, c}};
  };
  while (!take_if(']')) {
    std::vector<CharacterRange> some = one();
    const bool single = some.size() == 1 && some[0].first == some[0].last;
    if (single && !text_.substr(at_).starts_with("-]") && take_if('-')) {
      const std::vector<CharacterRange> end = one();
      if (end.size() != 1 || end[0].last < some[0].first)
        refuse("the end of a range of characters was wanted");
      some[0].last = end[0].last;
    }
    ranges.insert(ranges.end(), some.begin(), some.end());
  }
  if (ranges.empty() && !but) refuse("a set of characters has none");
  return but ? all_but(std::move(ranges)) : characters(std::move(ranges));
}

uint32_t CodeReader::number() {
  uint32_t value = 0;
  if (at_end() || peek() < '0' || peek() > '9') refuse("a number was wanted");
  while (!at_end() && peek() >= '0' && peek() <= '9') {
    value = value * 10 + (take() - '0');
    if (value > kMostTimes) refuse(fmt::format("at most {} repetitions were wanted", kMostTimes));
  }
  return value;
}

Expression CodeReader::counted(Expression part) {
  if (take_if('*')) return repeated(std::move(part), 0);
  if (take_if('+')) return repeated(std::move(part), 1);
  if (take_if('?')) return optional(std::move(part));
  if (!take_if('{')) return part;
  const uint32_t least = number();
  uint32_t most = least;
  if (take_if(',')) most = !at_end() && peek() == '}' ? kUnbounded : number();
  if (!take_if('}')) refuse("} was wanted");
  if (most < least) refuse("the least number of repetitions is above the largest");
  return repeated(std::move(part), least, most);
}

}  // namespace tuff::text::grammar
