#include "render/user_function.h"

#include <algorithm>
#include <cctype>

namespace tuff::render {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

size_t skip_literal(std::string_view text, size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}
// To the end of a line that no backslash continues.
size_t skip_line(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at, text.size());
}

// Blanks stand for comments, literals and lines of the preprocessor.
std::string bare(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view two = text.substr(at, 2);
    size_t next = at + 1;
    if (two == "//" || (c == '#' && line_begins)) {
      next = skip_line(text, at);
    } else if (two == "/*") {
      const size_t end = text.find("*/", at + 2);
      next = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      next = skip_literal(text, at);
    }
    out += next == at + 1 ? c : ' ';
    line_begins = c == '\n' || (line_begins && (is_blank(c) || next > at + 1));
    at = next;
  }
  return out;
}

// Behind the bracket that closes the one at `at`.
size_t behind_bracket(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); at++) {
    if (text[at] == '(') depth++;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return text.size();
}
size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && is_blank(text[at])) at++;
  return at;
}

std::string trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return std::string(s);
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= list.size(); at++) {
    const char c = at < list.size() ? list[at] : ',';
    if (c == '(') depth++;
    if (c == ')') depth--;
    if (c != ',' || depth > 0) continue;
    out.push_back(trimmed(list.substr(begin, at - begin)));
    begin = at + 1;
  }
  if (out.size() == 1 && (out[0].empty() || out[0] == "void")) out.clear();
  return out;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> parameters_of(std::string_view given,
                                                      std::string_view name) {
  const std::string text = bare(given);
  int depth = 0;  // of braces
  for (size_t at = 0; at < text.size(); at++) {
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (depth > 0 || (at > 0 && is_word(text[at - 1])) || text.compare(at, name.size(), name) != 0)
      continue;
    const size_t open = skip_blanks(text, at + name.size());
    if (open == text.size() || text[open] != '(') continue;
    const size_t close = behind_bracket(text, open), body = skip_blanks(text, close);
    if (body == text.size() || text[body] != '{') continue;
    return split(std::string_view(text).substr(open + 1, close - open - 2));
  }
  return std::nullopt;
}

// What a pointer points to is constant where the word stands before its star.
PointerParameter pointer_of(std::string_view parameter) {
  const size_t star = parameter.rfind('*');
  if (star == std::string_view::npos) return {};
  return {true, has_word(parameter.substr(0, star), "const")};
}

}  // namespace tuff::render
