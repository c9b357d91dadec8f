// Bytes as files of text hold them (RFC 4648). Called by the reader of tokenizer.json.
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"

namespace tuff::text {

// InvalidArgument for characters that do not belong there.
inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos)
      fail<InvalidArgument>("tokenizer: byte {:#x} is none of base64", uint8_t(c));
    bits = bits << 6 | uint32_t(digit);
    count += 6;
    if (count >= 8) out += char(uint8_t(bits >> (count -= 8)));
  }
  return out;
}

}  // namespace tuff::text
