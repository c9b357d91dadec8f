#include "text/jinja/lexer.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"

namespace tuff::text::jinja {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
         uint8_t(c) >= 0x80;
}

constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "*",
                                           "/",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

std::string with_plain_newlines(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\r') {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') i++;
    } else {
      out += text[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : source_(with_plain_newlines(text)), text_(source_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) data();
    add(Token::Kind::End, "");
    return std::move(tokens_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> reason, Args&&... args) const {
    fail<InvalidArgument>("template: line {}: {}", line_,
                          fmt::format(reason, std::forward<Args>(args)...));
  }
  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void advance(size_t n) {
    line_ += int(std::count(text_.begin() + std::ptrdiff_t(at_),
                            text_.begin() + std::ptrdiff_t(at_ + n), '\n'));
    at_ += n;
  }
  void skip_blanks() {
    size_t n = 0;
    while (at_ + n < text_.size() && is_blank(text_[at_ + n])) n++;
    advance(n);
  }

  // Up to the next tag, and that.
  void data() {
    size_t tag = at_;
    for (;; tag++) {
      tag = text_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 == text_.size()) tag = text_.size();
      if (tag == text_.size() ||
          std::string_view("{%#").find(text_[tag + 1]) != std::string_view::npos)
        break;
    }
    const char kind = tag < text_.size() ? text_[tag + 1] : 0;
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : 0;
    std::string_view before = text_.substr(at_, tag - at_);
    if (sign == '-' && kind) {
      while (!before.empty() && is_blank(before.back())) before.remove_suffix(1);
    } else if (kind && kind != '{' && sign != '+') {
      before = without_indent(before);
    }
    if (!before.empty()) add(Token::Kind::Data, std::string(before));
    advance(tag - at_);
    if (!kind) return;
    const size_t signed_bytes = sign == '-' || (sign == '+' && kind != '{') ? 3 : 2;
    if (kind == '#') {
      comment();
    } else if (kind == '{') {
      expression(Token::Kind::OutputBegin, Token::Kind::OutputEnd, signed_bytes, "}}");
    } else if (!raw(signed_bytes)) {
      expression(Token::Kind::BlockBegin, Token::Kind::BlockEnd, signed_bytes, "%}");
    }
  }
  // The spaces of a line that begins with a block go.
  std::string_view without_indent(std::string_view before) const {
    const size_t newline = before.rfind('\n');
    if (newline == std::string_view::npos && !line_begins_) return before;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    return std::ranges::all_of(before.substr(begin), is_blank) ? before.substr(0, begin) : before;
  }
  // Behind a tag's end: what "-" and the trimming of blocks take away.
  void end_tag(bool strips, bool keeps, bool trims) {
    line_begins_ = false;
    if (strips) {
      const size_t before = at_;
      skip_blanks();
      line_begins_ = at_ > before && text_[at_ - 1] == '\n';
    } else if (trims && !keeps && next_is("\n")) {
      advance(1);
      line_begins_ = true;
    }
  }

  void comment() {
    const size_t end = text_.find("#}", at_ + 2);
    if (end == std::string_view::npos) refuse("a comment without its end '#}}'");
    const bool strips = text_[end - 1] == '-', keeps = text_[end - 1] == '+';
    advance(end + 2 - at_);
    end_tag(strips, keeps, true);
  }

  // {% raw %} ... {% endraw %}
  bool raw(size_t begin_bytes) {
    size_t p = at_ + begin_bytes;
    const auto blanks = [&] {
      while (p < text_.size() && is_blank(text_[p])) p++;
    };
    blanks();
    if (!text_.substr(p).starts_with("raw")) return false;
    p += 3;
    blanks();
    const bool strips = text_.substr(p).starts_with("-%}");
    if (!strips && !text_.substr(p).starts_with("%}")) return false;
    advance(p + (strips ? 3 : 2) - at_);
    end_tag(strips, false, true);
    raw_data();
    return true;
  }
  void raw_data() {
    for (size_t p = at_; (p = text_.find("{%", p)) != std::string_view::npos; p += 2) {
      size_t q = p + 2;
      const bool strips = q < text_.size() && text_[q] == '-';
      q += strips ? 1 : 0;
      while (q < text_.size() && is_blank(text_[q])) q++;
      if (!text_.substr(q).starts_with("endraw")) continue;
      q += 6;
      while (q < text_.size() && is_blank(text_[q])) q++;
      const bool end_strips = text_.substr(q).starts_with("-%}");
      if (!end_strips && !text_.substr(q).starts_with("%}")) continue;
      std::string_view data = text_.substr(at_, p - at_);
      while (strips && !data.empty() && is_blank(data.back())) data.remove_suffix(1);
      if (!strips) data = without_indent(data);
      if (!data.empty()) add(Token::Kind::Data, std::string(data));
      advance(q + (end_strips ? 3 : 2) - at_);
      end_tag(end_strips, false, true);
      return;
    }
    refuse("'raw' without 'endraw'");
  }

  void expression(Token::Kind begin, Token::Kind end, size_t begin_bytes, std::string_view close) {
    add(begin, std::string(text_.substr(at_, begin_bytes)));
    advance(begin_bytes);
    brackets_.clear();
    for (;;) {
      skip_blanks();
      if (at_ == text_.size()) refuse("'{}' is missing", close);
      const bool sign = brackets_.empty() && (next_is("-") || next_is("+")) &&
                        text_.substr(at_ + 1).starts_with(close);
      if (sign || (brackets_.empty() && next_is(close))) {
        const bool strips = sign && next_is("-"), block = end == Token::Kind::BlockEnd;
        add(end, std::string(close));
        advance(close.size() + (sign ? 1 : 0));
        end_tag(strips, sign, block);
        return;
      }
      token();
    }
  }

  void token() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      string(c);
    } else if (is_digit(c)) {
      number();
    } else if (is_name(c)) {
      size_t n = 0;
      while (at_ + n < text_.size() && is_name(text_[at_ + n])) n++;
      add(Token::Kind::Name, std::string(text_.substr(at_, n)));
      advance(n);
    } else {
      operation();
    }
  }
  void operation() {
    for (const std::string_view op : kOperators) {
      if (!next_is(op)) continue;
      if (op == "(" || op == "[" || op == "{") brackets_ += op == "(" ? ')' : op == "[" ? ']' : '}';
      if (op == ")" || op == "]" || op == "}") {
        if (brackets_.empty() || brackets_.back() != op[0]) refuse("unexpected '{}'", op);
        brackets_.pop_back();
      }
      add(Token::Kind::Operator, std::string(op));
      advance(op.size());
      return;
    }
    refuse("unexpected '{}'",
           std::string(text_.substr(at_, next_character(text_.substr(at_)).bytes)));
  }
  void number() {
    std::string digits;
    size_t p = at_;
    bool real = false;
    const auto take = [&] {
      for (; p < text_.size() && (is_digit(text_[p]) || text_[p] == '_'); p++)
        if (text_[p] != '_') digits += text_[p];
    };
    take();
    if (p + 1 < text_.size() && text_[p] == '.' && is_digit(text_[p + 1])) {
      real = true;
      digits += text_[p++];
      take();
    }
    size_t exponent = p + 1;
    if (p < text_.size() && (text_[p] == 'e' || text_[p] == 'E')) {
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) exponent++;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        real = true;
        digits += std::string(text_.substr(p, exponent - p));
        p = exponent;
        take();
      }
    }
    add(real ? Token::Kind::Float : Token::Kind::Integer, std::move(digits));
    advance(p - at_);
  }

  void string(char quote) {
    std::string out;
    size_t p = at_ + 1;
    while (p < text_.size() && text_[p] != quote) {
      if (text_[p] != '\\') {
        out += text_[p++];
      } else {
        p = escape(p + 1, out);
      }
    }
    if (p >= text_.size()) refuse("a text without its end {}", quote);
    add(Token::Kind::String, std::move(out));
    advance(p + 1 - at_);
  }
  // Behind a backslash; where the text goes on.
  size_t escape(size_t p, std::string& out) const {
    if (p >= text_.size()) return p;
    const char c = text_[p];
    constexpr std::string_view kNames = "nrtabfv\\'\"", kMeant = "\n\r\t\a\b\f\v\\'\"";
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      out += kMeant[at];
    } else if (c == '\n') {
      // continues on the next line
    } else if (const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; digits) {
      uint32_t code = 0;
      for (size_t i = 1; i <= digits; i++) {
        const char d = p + i < text_.size() ? text_[p + i] : '?';
        const size_t value = std::string_view("0123456789abcdef").find(char(d | 0x20));
        if (!is_name(d) || value == std::string_view::npos)
          refuse("'\\{}' wants {} hexadecimal digits", c, digits);
        code = code << 4 | uint32_t(value);
      }
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        refuse("{:#x} is no character", code);
      append_character(out, code);
      return p + 1 + digits;
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t n = 0;
      for (; n < 3 && p + n < text_.size() && text_[p + n] >= '0' && text_[p + n] <= '7'; n++)
        code = code * 8 + uint32_t(text_[p + n] - '0');
      append_character(out, code);
      return p + n;
    } else {
      out += '\\';
      out += c;
    }
    return p + 1;
  }

  std::string source_;
  std::string_view text_;
  std::vector<Token> tokens_;
  std::string brackets_;  // what closes those that are open
  size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;  // whether what stands before at_ ended a line
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).run(); }

}  // namespace tuff::text::jinja
