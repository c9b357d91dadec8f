// UTF-8 against the encoding of every code point, and what RFC 3629 forbids.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tuff {
namespace {

std::string encoded(uint32_t code, size_t bytes) {
  std::string out;
  for (size_t i = 1; i < bytes; i++, code >>= 6)
    out.insert(out.begin(), char(0x80 | (code & 0x3f)));
  constexpr uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out.insert(out.begin(), char(kLead[bytes] | code));
  return out;
}

TEST(Utf8, EveryCodePoint) {
  for (uint32_t code = 0; code <= 0x1fffff; code++) {
    const size_t least = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const bool valid = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    for (size_t bytes = least; bytes <= 4; bytes++) {
      const std::string text = encoded(code, bytes) + "a";
      const Utf8Character c = first_character(text);
      const bool wanted = valid && bytes == least;
      ASSERT_EQ(c.bytes, wanted ? bytes : 0) << code << " in " << bytes;
      if (wanted) {
        ASSERT_EQ(c.code, code);
      }
      ASSERT_EQ(is_utf8(text), wanted) << code;
      if (bytes > 1) {
        ASSERT_FALSE(is_utf8(text.substr(0, bytes - 1))) << code;
      }
    }
  }
}

TEST(Utf8, BytesThatBeginNothing) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_EQ(first_character("").bytes, 0u);
  for (int byte = 0x80; byte < 0x100; byte++)
    EXPECT_FALSE(is_utf8(std::string(1, char(byte)) + "aaaa")) << byte;
  for (int byte = 0xf8; byte < 0x100; byte++)
    EXPECT_FALSE(is_utf8(std::string(1, char(byte)) + "\x80\x80\x80\x80\x80")) << byte;
}

}  // namespace
}  // namespace tuff
