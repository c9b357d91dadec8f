#include "text/vocabulary.h"

#include <array>

#include "base/check.h"
#include "text/unicode.h"

namespace tuff::text {
namespace {

constexpr uint32_t kShifted = 0x100;  // of the first byte that is not its own character

bool is_own_character(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

const std::array<uint32_t, 256>& code_of_byte() {
  static const auto codes = [] {
    std::array<uint32_t, 256> out{};
    uint32_t shifted = kShifted;
    for (uint32_t b = 0; b < out.size(); b++) out[b] = is_own_character(b) ? b : shifted++;
    return out;
  }();
  return codes;
}

constexpr std::string_view kHex = "0123456789ABCDEF";

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  ids_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); i++) {
    if (!tokens_[i].empty()) ids_.emplace(tokens_[i], int32_t(i));
    longest_ = std::max(longest_, tokens_[i].size());
  }
  for (uint32_t b = 0; b < 256; b++) {
    const auto id = find(byte_token(uint8_t(b)));
    if (!id) {
      bytes_.clear();
      break;
    }
    bytes_.push_back(*id);
  }
}

std::string byte_token(uint8_t byte) {
  return {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
}

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const size_t high = kHex.find(token[3]), low = kHex.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return uint8_t(high << 4 | low);
}

std::string byte_character(uint8_t byte) {
  std::string out;
  append_character(out, code_of_byte()[byte]);
  return out;
}

std::string byte_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 2);
  for (const char c : bytes) append_character(out, code_of_byte()[uint8_t(c)]);
  return out;
}

std::string bytes_of_characters(std::string_view text) {
  static const auto bytes = [] {
    std::unordered_map<uint32_t, uint8_t> out;
    for (uint32_t b = 0; b < 256; b++) out.emplace(code_of_byte()[b], uint8_t(b));
    return out;
  }();
  std::string out;
  while (!text.empty()) {
    const Utf8Character c = next_character(text);
    const auto it = bytes.find(c.code);
    if (it == bytes.end()) {
      out += text.substr(0, c.bytes);
    } else {
      out += char(it->second);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace tuff::text
