#include "text/added_tokens.h"

#include "text/unicode.h"

namespace tuff::text {
namespace {

size_t character_before(std::string_view text, size_t at) {
  do at--;
  while (at > 0 && (uint8_t(text[at]) & 0xc0) == 0x80);
  return at;
}

bool word_before(std::string_view text, size_t at) {
  return at > 0 && is_word(next_character(text.substr(character_before(text, at))).code);
}

bool word_behind(std::string_view text, size_t at) {
  return at < text.size() && is_word(next_character(text.substr(at)).code);
}

size_t without_spaces_before(std::string_view text, size_t least, size_t at) {
  while (at > least) {
    const size_t before = character_before(text, at);
    if (before < least || !is_space(next_character(text.substr(before)).code)) break;
    at = before;
  }
  return at;
}

size_t behind_spaces(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Character c = next_character(text.substr(at));
    if (!is_space(c.code)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); i++) {
    if (tokens_[i].content.empty()) continue;
    table_.add(tokens_[i].content, int32_t(i));
    if (!tokens_[i].special) ordinary_.add(tokens_[i].content, int32_t(i));
  }
  table_.sort();
  ordinary_.sort();
}

std::vector<Fragment> AddedTokens::split(std::string_view text, bool with_special) const {
  const PrefixTable& table = with_special ? table_ : ordinary_;
  std::vector<Fragment> out;
  size_t rest = 0;  // what no fragment holds yet
  for (size_t at = 0; at < text.size() && !table.empty();) {
    const PrefixTable::Match m = table.longest(text.substr(at));
    const size_t end = at + m.bytes;
    const AddedToken* token = m.value < 0 ? nullptr : &tokens_[size_t(m.value)];
    if (!token || (token->single_word && (word_before(text, at) || word_behind(text, end)))) {
      at += token ? m.bytes : 1;
      continue;
    }
    const size_t begin = token->left_strip ? without_spaces_before(text, rest, at) : at;
    if (begin > rest) out.push_back({text.substr(rest, begin - rest)});
    at = rest = token->right_strip ? behind_spaces(text, end) : end;
    out.push_back({text.substr(begin, rest - begin), token->id});
  }
  if (rest < text.size()) out.push_back({text.substr(rest)});
  return out;
}

}  // namespace tuff::text
