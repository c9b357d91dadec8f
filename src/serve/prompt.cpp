#include "serve/prompt.h"

#include <algorithm>

#include "base/check.h"
#include "serve/fields.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

// Around what users have written and what is to be plain text: characters that are none, so no
// template looks for them.
constexpr std::string_view kPlain = "\xef\xb7\x90", kPlainEnd = "\xef\xb7\x91";  // U+FDD0, U+FDD1
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

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

}  // namespace

PromptMaker::PromptMaker(Tokenizer tokenizer, const std::string& template_text)
    : tokenizer_(std::move(tokenizer)) {
  if (!template_text.empty()) template_.emplace(template_text);
  for (size_t id = 0; id < tokenizer_.size(); id++) {
    const auto token = int32_t(id);
    const std::string& text = tokenizer_.token(token);
    if (!text.empty() && (tokenizer_.is_special(token) || tokenizer_.is_end(token)))
      special_.push_back(text);
  }
  std::ranges::sort(special_);
}

std::string PromptMaker::marked(const std::string& text) const {
  std::string clean = text;
  replace_all(clean, kPlain, kReplacement);
  replace_all(clean, kPlainEnd, kReplacement);
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
Json PromptMaker::marked(const Json& value) const {
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

std::vector<int32_t> PromptMaker::encode_marked(std::string_view text) const {
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

std::string PromptMaker::spelling(std::optional<int32_t> token) const {
  return token ? tokenizer_.token(*token) : "";
}

std::vector<int32_t> PromptMaker::chat(const ChatRequest& request) const {
  if (!template_)
    throw RequestError(400,
                       "the model has no chat template: ask /v1/completions, or start the server "
                       "with --chat-template");
  if (!request.tools.is_null() && template_->text().find("tools") == std::string::npos)
    refuse("tools", "the model's chat template knows nothing of tools; leave them out");
  const std::string bos = spelling(tokenizer_.bos());
  ChatOptions options{.bos_token = bos, .eos_token = spelling(tokenizer_.eos())};
  if (!request.tools.is_null()) options.tools = marked(request.tools).dump();
  if (!request.variables.is_null()) options.variables = marked(request.variables).dump();
  std::string text;
  try {
    text = template_->render(marked(request.messages).dump(), options);
  } catch (const InvalidArgument& e) {
    refuse("messages", "the model's chat template refuses the messages: {}", e.what());
  }
  // Most templates spell the token that begins a text.
  const bool begun = !bos.empty() && text.starts_with(bos);
  if (text.find(kPlain) == std::string::npos)
    return tokenizer_.encode(text, {.add_special = !begun});
  std::vector<int32_t> ids = encode_marked(text);
  const std::vector<int32_t> around = tokenizer_.encode("");
  if (!begun && !around.empty() && around[0] == tokenizer_.bos())
    ids.insert(ids.begin(), around[0]);
  return ids;
}

std::vector<int32_t> PromptMaker::text(const Input& input, const char* name) const {
  if (const auto* text = std::get_if<std::string>(&input)) return tokenizer_.encode(*text);
  const auto& ids = std::get<std::vector<int32_t>>(input);
  for (const int32_t id : ids) {
    if (size_t(id) >= tokenizer_.size())
      refuse(name, "{} has token {}: the vocabulary has {}", name, id, tokenizer_.size());
  }
  return ids;
}

}  // namespace tuff::serve
