// The characters of a character-level model: a token is the rank of its byte among the distinct
// bytes of the text that was learned. Called by corpora, trainers and generators. Must never know
// the text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::models {

class Vocabulary {
 public:
  // The bytes that occur in the text; InvalidArgument if there are none.
  explicit Vocabulary(std::span<const uint8_t> text);
  // As hex() writes it; InvalidArgument for anything else.
  static Vocabulary from_hex(std::string_view hex);
  std::string hex() const;  // two digits a byte, ascending: how checkpoints carry it

  size_t size() const { return bytes_.size(); }
  std::span<const uint8_t> bytes() const { return bytes_; }  // ascending; a token is an index
  bool contains(uint8_t byte) const { return token_of_[byte] >= 0; }
  // InvalidArgument for a byte that is not contained.
  uint8_t token(uint8_t byte) const;
  // InvalidArgument naming the character (in UTF-8, else the byte) that is not contained and its
  // place, or the token.
  std::vector<uint8_t> encode(std::string_view text) const;
  std::string decode(std::span<const uint8_t> tokens) const;

 private:
  std::vector<uint8_t> bytes_;
  std::array<int16_t, 256> token_of_{};  // -1: not contained
};

}  // namespace tuff::models
