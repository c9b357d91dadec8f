// Characters of UTF-8 (RFC 3629: neither overlong forms nor surrogates). Called by what shows and
// writes the names and texts of files. Must never know where a text comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuff {

struct Utf8Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the text begins with none
};

Utf8Character first_character(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace tuff
