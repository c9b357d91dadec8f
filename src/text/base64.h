// Bytes as files of text hold them (RFC 4648). Called by the reader of tokenizer.json, and where
// answers of the server have vectors.
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"

namespace tuff::text {

inline constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string to_base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; j++)
      bits = bits << 8 | (i + j < bytes.size() ? uint8_t(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; j++)
      out += i + j <= bytes.size() ? kBase64Digits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

// InvalidArgument for characters that do not belong there.
inline std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos)
      fail<InvalidArgument>("tokenizer: byte {:#x} is none of base64", uint8_t(c));
    bits = bits << 6 | uint32_t(digit);
    count += 6;
    if (count >= 8) out += char(uint8_t(bits >> (count -= 8)));
  }
  return out;
}

}  // namespace tuff::text
