// The tokens of a vocabulary by id and by spelling. Called by models and readers of tokenizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tuff::text {

class Vocabulary {
 public:
  // Of spellings that stand there twice the first counts, as everywhere.
  explicit Vocabulary(std::vector<std::string> tokens);
  Vocabulary(const Vocabulary&) = delete;  // the map's keys are the tokens' own bytes
  size_t size() const { return tokens_.size(); }
  const std::string& operator[](int32_t id) const { return tokens_[size_t(id)]; }
  std::optional<int32_t> find(std::string_view token) const {
    const auto it = ids_.find(token);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  size_t longest() const { return longest_; }  // bytes
  // The ids of <0x00> to <0xFF>, where all of them are there; else none.
  const std::vector<int32_t>& byte_tokens() const { return bytes_; }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::vector<int32_t> bytes_;
  size_t longest_ = 0;
};

std::string byte_token(uint8_t byte);                          // "<0x0A>"
std::optional<uint8_t> byte_of_token(std::string_view token);  // of <0x0A>
// GPT-2's spelling of bytes: printable ones of Latin-1 are their own character, others come from
// U+0100 on.
std::string byte_character(uint8_t byte);
std::string byte_characters(std::string_view bytes);
std::string bytes_of_characters(std::string_view text);  // characters that spell no byte stay

}  // namespace tuff::text
