#include "base/utf8.h"

namespace tuff {

Utf8Character first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto first = uint8_t(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc0 || first >= 0xf8 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fu >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    if ((uint8_t(c) & 0xc0) != 0x80) return {};
    code = code << 6 | (uint8_t(c) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace tuff
