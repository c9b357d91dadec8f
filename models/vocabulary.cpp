#include "models/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/utf8.h"

namespace tuff::models {
namespace {

// The character around a byte: begin and length. A byte that belongs to none stands alone.
std::pair<size_t, size_t> character_at(std::string_view text, size_t at) {
  constexpr size_t kLongest = 4;
  for (size_t begin = at;; begin--) {
    const size_t bytes = first_character(text.substr(begin)).bytes;
    if (begin + bytes > at) return {begin, bytes};
    if (begin == 0 || at - begin + 1 == kLongest) return {at, size_t{1}};
  }
}

std::string shown(std::string_view character) {
  const auto byte = uint8_t(character[0]);
  if (character.size() == 1 && (byte < 0x20 || byte >= 0x7f)) return fmt::format("0x{:02x}", byte);
  return fmt::format("'{}'", character);
}

}  // namespace

Vocabulary::Vocabulary(std::span<const uint8_t> text) {
  if (text.empty()) fail<InvalidArgument>("vocabulary: no characters are given");
  token_of_.fill(-1);
  for (const uint8_t byte : text) token_of_[byte] = 0;
  for (uint32_t byte = 0; byte < token_of_.size(); ++byte) {
    if (token_of_[byte] < 0) continue;
    token_of_[byte] = static_cast<int16_t>(bytes_.size());
    bytes_.push_back(static_cast<uint8_t>(byte));
  }
}

Vocabulary Vocabulary::from_hex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 2 <= hex.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc() || end != hex.data() + i + 2) break;
    bytes.push_back(byte);
  }
  if (bytes.empty() || bytes.size() * 2 != hex.size() ||
      std::ranges::adjacent_find(bytes, std::ranges::greater_equal()) != bytes.end())
    fail<InvalidArgument>("vocabulary: '{}' is not a list of ascending bytes in hexadecimal",
                          hex.substr(0, 80));
  return Vocabulary(bytes);
}

std::string Vocabulary::hex() const {
  std::string out;
  for (const uint8_t byte : bytes_) out += fmt::format("{:02x}", byte);
  return out;
}

uint8_t Vocabulary::token(uint8_t byte) const {
  if (!contains(byte)) fail<InvalidArgument>("byte 0x{:02x} is not in the vocabulary", byte);
  return static_cast<uint8_t>(token_of_[byte]);
}

std::vector<uint8_t> Vocabulary::encode(std::string_view text) const {
  std::vector<uint8_t> tokens;
  tokens.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (!contains(byte)) {
      const auto [begin, length] = character_at(text, i);
      fail<InvalidArgument>(
          "{} at byte {} is not among the {} characters of the text that was learned",
          shown(text.substr(begin, length)), begin, size());
    }
    tokens.push_back(static_cast<uint8_t>(token_of_[byte]));
  }
  return tokens;
}

std::string Vocabulary::decode(std::span<const uint8_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const uint8_t token : tokens) {
    if (token >= size())
      fail<InvalidArgument>("token {} is outside the vocabulary of {}", token, size());
    text.push_back(static_cast<char>(bytes_[token]));
  }
  return text;
}

}  // namespace tuff::models
