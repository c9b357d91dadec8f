#include "text/unicode.h"

#include <cstdlib>
#include <memory>

#include <utf8proc.h>

#include "base/check.h"

namespace tuff::text {
namespace {

utf8proc_category_t category(uint32_t code) { return utf8proc_category(utf8proc_int32_t(code)); }

bool between(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) {
  return c >= first && c <= last;
}

std::string mapped(std::string_view text, utf8proc_option_t options) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             utf8proc_ssize_t(text.size()), &out, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(out, std::free);
  if (size < 0)
    fail<InvalidArgument>("tokenizer: a text of {} bytes cannot be normalized: {}", text.size(),
                          utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(out), size_t(size)};
}

// Of the parts that are UTF-8.
template <class F>
std::string mapped_where_valid(std::string_view text, F&& f) {
  if (is_utf8(text)) return f(text);
  std::string out;
  while (!text.empty()) {
    size_t valid = 0;
    while (const size_t bytes = first_character(text.substr(valid)).bytes) valid += bytes;
    out += f(text.substr(0, valid));
    if (valid < text.size()) out += text[valid++];
    text.remove_prefix(valid);
  }
  return out;
}

template <class F>
std::string each_character(std::string_view text, F&& f) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (c.bytes == 0) {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    f(out, c.code, text.substr(0, c.bytes));
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

Utf8Character next_character(std::string_view text) {
  const Utf8Character c = first_character(text);
  return c.bytes ? c : Utf8Character{kReplacement, text.empty() ? 0u : 1u};
}

void append_character(std::string& to, uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(utf8proc_int32_t(code), bytes);
  to.append(reinterpret_cast<const char*>(bytes), size_t(n));
}

std::string normalized(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::NFC || form == NormalForm::NFKC;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::NFKC || form == NormalForm::NFKD) options |= UTF8PROC_COMPAT;
  return mapped_where_valid(
      text, [&](std::string_view part) { return mapped(part, utf8proc_option_t(options)); });
}

std::string lowercased(std::string_view text) {
  return each_character(text, [](std::string& out, uint32_t code, std::string_view) {
    // The one character of which more than one becomes (SpecialCasing.txt).
    if (code == 0x130) {
      out += "i\xcc\x87";
    } else {
      append_character(out, uint32_t(utf8proc_tolower(utf8proc_int32_t(code))));
    }
  });
}

std::string uppercased(std::string_view text) {
  return each_character(text, [](std::string& out, uint32_t code, std::string_view) {
    if (code == 0xdf) {  // the one of Latin-1 of which two become
      out += "SS";
    } else {
      append_character(out, uint32_t(utf8proc_toupper(utf8proc_int32_t(code))));
    }
  });
}

std::string without_marks(std::string_view text) {
  return each_character(text, [](std::string& out, uint32_t code, std::string_view bytes) {
    if (category(code) != UTF8PROC_CATEGORY_MN) out += bytes;
  });
}

bool is_space(uint32_t code) {
  if ((code >= 9 && code <= 13) || code == 0x20 || code == 0x85) return true;
  return between(category(code), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_control(uint32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_CN || between(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

bool is_punctuation(uint32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  return between(category(code), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_numeric(uint32_t code) {
  return between(category(code), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_word(uint32_t code) {
  const auto c = category(code);
  return between(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_ME) || c == UTF8PROC_CATEGORY_ND ||
         c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC || code == 0x200c || code == 0x200d;
}

bool is_ideograph(uint32_t code) {
  // The ranges of BERT's reference; 0x2b920 is what the package tokenizers has.
  constexpr uint32_t kRanges[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                     {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                     {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (const auto& [first, last] : kRanges)
    if (code >= first && code <= last) return true;
  return false;
}

}  // namespace tuff::text
