#include "text/chat_prompts.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode.h"

namespace tuff::text {
namespace {

// Around what users have written and what is to be plain text: characters that are none, so no
// template looks for them.
constexpr std::string_view kPlain = "\xef\xb7\x90", kPlainEnd = "\xef\xb7\x91";  // U+FDD0, U+FDD1

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// How much of `text` one of the sorted spellings is, the longest one.
size_t longest_at(const std::vector<std::string>& spellings, std::string_view text) {
  size_t longest = 0;
  auto row = std::ranges::lower_bound(spellings, text.substr(0, 1));
  for (; row != spellings.end() && (*row)[0] == text[0]; ++row)
    if (row->size() > longest && text.starts_with(*row)) longest = row->size();
  return longest;
}

// Whether one of them goes on where `text` ends.
bool begins_one(const std::vector<std::string>& spellings, std::string_view text) {
  const auto row = std::ranges::lower_bound(spellings, text);
  return row != spellings.end() && row->starts_with(text);
}

// The end of a text that may become a special token by what stands behind it: from, to.
std::pair<size_t, size_t> unfinished(const std::vector<std::string>& spellings,
                                     const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n\v\f") + 1;  // templates may trim it
  size_t most = 0;
  for (const std::string& s : spellings) most = std::max(most, s.size());
  for (size_t from = end - std::min(end, most); from < end; from++)
    if (begins_one(spellings, std::string_view(text).substr(from, end - from))) return {from, end};
  return {text.size(), text.size()};
}

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ChatPrompts::ChatPrompts(Tokenizer tokenizer, std::string_view template_text)
    : tokenizer_(std::move(tokenizer)), template_(template_text) {
  const auto spelling = [&](std::optional<int32_t> token) {
    return token ? tokenizer_.token(*token) : "";
  };
  bos_ = spelling(tokenizer_.bos()), eos_ = spelling(tokenizer_.eos());
  for (size_t id = 0; id < tokenizer_.size(); id++) {
    const auto token = int32_t(id);
    const std::string& text = tokenizer_.token(token);
    if (!text.empty() && (tokenizer_.is_special(token) || tokenizer_.is_end(token)))
      special_.push_back(text);
  }
  std::ranges::sort(special_);
}

std::string ChatPrompts::marked(const std::string& text) const {
  std::string clean = text;
  replace_all(clean, kPlain, kReplacementText);
  replace_all(clean, kPlainEnd, kReplacementText);
  const auto [tail, end] = unfinished(special_, clean);
  std::string out;
  for (size_t at = 0; at < clean.size();) {
    const std::string_view rest = std::string_view(clean).substr(at);
    const size_t n = at >= tail && at < end ? end - at : longest_at(special_, rest);
    out += n ? fmt::format("{}{}{}", kPlain, rest.substr(0, n), kPlainEnd) : rest.substr(0, 1);
    at += n ? n : 1;
  }
  return out;
}

// Every text in it, names of members too.
Json ChatPrompts::marked(const Json& value) const {
  if (value.is_string()) return marked(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (const auto& [name, v] : value.items()) {
    if (value.is_array()) {
      out.push_back(marked(v));
    } else {
      out[marked(name)] = marked(v);
    }
  }
  return out;
}

std::string ChatPrompts::render(const Json& messages, const Json& tools,
                                ChatOptions options) const {
  options.bos_token = bos_, options.eos_token = eos_;
  if (!tools.is_null()) options.tools = text_of(marked(tools));
  return template_.render(text_of(marked(messages)), options);
}

std::vector<int32_t> ChatPrompts::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  const auto append = [&](std::string_view part, bool plain) {
    const std::vector<int32_t> more =
        tokenizer_.encode(part, {.add_special = false, .parse_special = !plain});
    ids.insert(ids.end(), more.begin(), more.end());
  };
  while (!text.empty()) {
    const size_t begin = std::min(text.find(kPlain), text.size());
    append(text.substr(0, begin), false);
    text.remove_prefix(std::min(begin + kPlain.size(), text.size()));
    const size_t end = std::min(text.find(kPlainEnd), text.size());
    append(text.substr(0, end), true);
    text.remove_prefix(std::min(end + kPlainEnd.size(), text.size()));
  }
  return ids;
}

std::vector<int32_t> ChatPrompts::encode_whole(std::string_view rendered) const {
  std::vector<int32_t> ids = encode(rendered);
  const std::vector<int32_t> around = tokenizer_.encode("");
  const bool begun = !bos_.empty() && rendered.starts_with(bos_);
  if (!begun && !around.empty() && around[0] == tokenizer_.bos())
    ids.insert(ids.begin(), around[0]);
  return ids;
}

}  // namespace tuff::text
