// What tokenizers ask of Unicode: characters of bytes that may be no UTF-8, categories, cases and
// normal forms, by utf8proc. Called by all of text. Must never know of vocabularies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace tuff::text {

inline constexpr uint32_t kReplacement = 0xfffd;
inline constexpr std::string_view kReplacementText = "\xef\xbf\xbd";

enum class NormalForm { NFC, NFD, NFKC, NFKD };

// The first character; a byte that begins none is a character of its own, of the code kReplacement.
Utf8Character next_character(std::string_view text);
void append_character(std::string& to, uint32_t code);
// Parts of a text that are no UTF-8 stay as they are.
std::string normalized(std::string_view text, NormalForm form);
std::string lowercased(std::string_view text);
std::string uppercased(std::string_view text);
std::string without_marks(std::string_view text);  // of the category Mn

bool is_space(uint32_t code);        // White_Space
bool is_control(uint32_t code);      // Cc, Cf, Cn, Co, Cs
bool is_punctuation(uint32_t code);  // P*, and all of ASCII that is neither letter, digit nor space
bool is_numeric(uint32_t code);      // N*
bool is_word(uint32_t code);         // what \w matches: letters, marks, digits, connectors, joiners
bool is_ideograph(uint32_t code);    // of CJK, as BERT counts them

}  // namespace tuff::text
