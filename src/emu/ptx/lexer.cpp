#include "emu/ptx/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/check.h"

namespace tuff::emu::ptx {
namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}
bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> all() {
    std::vector<Token> out;
    do {
      skip_blanks();
      out.push_back(next());
    } while (out.back().kind != Token::Kind::End);
    return out;
  }

 private:
  char at(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (position_ < text_.size()) {
      const char c = at();
      if (c == '\n') {
        ++line_;
        ++position_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++position_;
      } else if (c == '/' && at(1) == '/') {
        position_ = std::min(text_.find('\n', position_), text_.size());
      } else if (c == '/' && at(1) == '*') {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {
    const size_t end = text_.find("*/", position_ + 2);
    if (end == std::string_view::npos) wrong("a comment without an end");
    for (; position_ < end + 2; ++position_) line_ += text_[position_] == '\n';
  }

  [[noreturn]] void wrong(std::string_view what) const {
    fail<CompileError>("PTX line {}: {}", line_, what);
  }

  Token token(Token::Kind kind, size_t begin, uint64_t bits = 0) const {
    return {kind, text_.substr(begin, position_ - begin), bits, line_};
  }

  Token next() {
    const size_t begin = position_;
    const char c = at();
    if (position_ >= text_.size()) return token(Token::Kind::End, begin);
    if (starts_name(c)) return word();
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (c == '"') return string();
    if (c == '.' && starts_name(at(1))) {
      ++position_;
      while (continues_name(at())) ++position_;
      return token(Token::Kind::Directive, begin);
    }
    if (!std::isprint(static_cast<unsigned char>(c)))
      wrong(fmt::format("byte {:#x} has no meaning", uint8_t(c)));
    ++position_;
    return token(Token::Kind::Mark, begin);
  }

  // Modifiers belong to the word: ".global", "::cta", and ".1d" of textures.
  Token word() {
    const size_t begin = position_++;
    while (true) {
      if (continues_name(at())) {
        ++position_;
      } else if (at() == '.' && continues_name(at(1))) {
        ++position_;
      } else if (at() == ':' && at(1) == ':') {
        position_ += 2;
      } else {
        return token(Token::Kind::Word, begin);
      }
    }
  }

  Token string() {
    const size_t begin = position_++;
    while (at() != '"') {
      if (at() == '\0' || at() == '\n') wrong("a string without an end");
      ++position_;
    }
    ++position_;
    return token(Token::Kind::String, begin);
  }

  Token number() {
    const size_t begin = position_;
    while (continues_name(at())) ++position_;
    std::string_view digits = text_.substr(begin, position_ - begin);
    if (at() == '.' && digits.find_first_not_of("0123456789") == std::string_view::npos)
      return decimal_float(begin);
    if (digits.starts_with("0f") || digits.starts_with("0F")) {
      const uint64_t bits = integer(digits.substr(2), 16);
      if (digits.size() != 10) wrong("0f wants 8 hexadecimal digits");
      return token(Token::Kind::Single, begin, bits);
    }
    if (digits.starts_with("0d") || digits.starts_with("0D")) {
      const uint64_t bits = integer(digits.substr(2), 16);
      if (digits.size() != 18) wrong("0d wants 16 hexadecimal digits");
      return token(Token::Kind::Double, begin, bits);
    }
    if (digits.size() > 1 && (digits.back() == 'U' || digits.back() == 'u'))
      digits.remove_suffix(1);
    uint64_t bits = 0;
    if (digits.starts_with("0x") || digits.starts_with("0X"))
      bits = integer(digits.substr(2), 16);
    else if (digits.starts_with("0b") || digits.starts_with("0B"))
      bits = integer(digits.substr(2), 2);
    else if (digits.size() > 1 && digits[0] == '0')
      bits = integer(digits, 8);
    else
      bits = integer(digits, 10);
    return token(Token::Kind::Integer, begin, bits);
  }

  // Constants with a decimal point are doubles, whatever wants them (4.5.2).
  Token decimal_float(size_t begin) {
    ++position_;
    while (std::isdigit(static_cast<unsigned char>(at()))) ++position_;
    const bool exponent = at() == 'e' || at() == 'E';
    if (exponent) position_ += at(1) == '+' || at(1) == '-' ? 2 : 1;
    while (exponent && std::isdigit(static_cast<unsigned char>(at()))) ++position_;
    const std::string digits(text_.substr(begin, position_ - begin));
    return token(Token::Kind::Double, begin,
                 std::bit_cast<uint64_t>(std::strtod(digits.c_str(), nullptr)));
  }

  uint64_t integer(std::string_view digits, int base) const {
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
      wrong(fmt::format("'{}' is no number of 64 bits", digits));
    return value;
  }

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).all(); }

}  // namespace tuff::emu::ptx
