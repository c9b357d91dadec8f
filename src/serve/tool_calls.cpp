#include "serve/tool_calls.h"

#include <algorithm>
#include <optional>

#include "serve/fields.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>", kSpaces = " \t\r\n";

// {"name": ..., "arguments": {...}}; Llama calls them parameters.
std::optional<ToolCall> read_call(std::string_view text) {
  try {
    const Json call = parse_object(text);
    const auto name = call.find("name");
    if (name == call.end() || !name->is_string()) return {};
    auto arguments = call.find("arguments");
    if (arguments == call.end()) arguments = call.find("parameters");
    if (arguments == call.end()) return ToolCall{*name, "{}"};
    return ToolCall{*name, arguments->is_string() ? arguments->get<std::string>()
                                                  : arguments->dump()};
  } catch (const RequestError&) {
    return {};
  }
}

// How much of the end belongs to a call if one follows: its beginning, and spaces before it.
size_t certain(const std::string& text) {
  size_t end = text.size();
  for (size_t n = std::min(kOpen.size() - 1, text.size()); n > 0 && end == text.size(); n--)
    if (text.ends_with(kOpen.substr(0, n))) end -= n;
  const size_t last = text.substr(0, end).find_last_not_of(kSpaces);
  return last == std::string::npos ? 0 : last + 1;
}

// A schema that has moved to a place in another one.
Json moved(Json schema, const std::string& to) {
  if (schema.is_object()) {
    const auto ref = schema.find("$ref");
    if (ref != schema.end() && ref->is_string() && ref->get_ref<const std::string&>().starts_with("#"))
      *ref = "#" + to + ref->get<std::string>().substr(1);
  }
  if (schema.is_structured())
    for (Json& part : schema) part = moved(std::move(part), to);
  return schema;
}

}  // namespace

Grammar call_grammar(const Json& tools, std::string_view chat_template) {
  const bool marked = chat_template.find(kOpen) != std::string_view::npos;
  const char* arguments = marked ? "arguments" : "parameters";
  Json calls = Json::array();
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    const std::string at = fmt::format("/anyOf/{}/properties/{}", calls.size(), arguments);
    const Json none = {{"type", "object"}, {"properties", Json::object()}};
    const Json parameters = moved(function.value("parameters", none), at);
    calls.push_back({{"properties", {{"name", {{"const", function["name"]}}}, {arguments, parameters}}},
                     {"required", {"name", arguments}}});
  }
  const std::string schema = Json({{"anyOf", calls}}).dump();
  try {
    return marked ? Grammar::from_json_schema(schema, std::string(kOpen) + "\n",
                                              "\n" + std::string(kClose))
                  : Grammar::from_json_schema(schema);
  } catch (const Error& e) {
    refuse("tools", "tools, of which one is to be called: {}", e.what());
  }
}

ToolCallReader::ToolCallReader(const Json& tools) {
  if (tools.is_null()) return;
  for (const Json& tool : tools) names_.push_back(tool["function"]["name"]);
}

void ToolCallReader::take_call(Part& part, std::string_view json, std::string_view whole) {
  if (std::optional<ToolCall> call = read_call(json)) {
    part.calls.push_back(std::move(*call));
    calls_++;
  } else {
    part.text += whole;
  }
}

// Takes the front of what is held that is certain; false where nothing is.
bool ToolCallReader::take(Part& part, bool at_end) {
  const size_t first = held_.find_first_not_of(kSpaces);
  if (!begun_ && first == std::string::npos && !at_end) return false;
  if (!begun_ && first != std::string::npos && held_[first] == '{') {
    if (!at_end) return false;  // an answer that may be nothing but a call
    const std::optional<ToolCall> call = read_call(held_);
    begun_ = true;
    if (!call || std::ranges::find(names_, call->name) == names_.end()) return true;
    take_call(part, held_, held_);
    held_.clear();
    return false;
  }
  const size_t open = held_.find(kOpen);
  if (open == std::string::npos) {
    const size_t n = at_end ? held_.size() : certain(held_);
    begun_ |= n > 0;
    part.text += held_.substr(0, n);
    held_.erase(0, n);
    return false;
  }
  const size_t close = held_.find(kClose, open);
  if (close == std::string::npos && !at_end) return false;
  const size_t end = std::min(close, held_.size());
  const std::string before = held_.substr(0, open);
  if (before.find_first_not_of(kSpaces) != std::string::npos)
    part.text += before.substr(0, before.find_last_not_of(kSpaces) + 1);
  const std::string whole = held_.substr(open, end + kClose.size() - open);
  take_call(part, std::string_view(held_).substr(open + kOpen.size(), end - open - kOpen.size()),
            whole);
  held_.erase(0, std::min(end + kClose.size(), held_.size()));
  begun_ = true;
  return true;
}

ToolCallReader::Part ToolCallReader::push(std::string_view text) {
  if (names_.empty()) return {std::string(text), {}};
  held_ += text;
  Part part;
  while (take(part, false)) {
  }
  return part;
}

ToolCallReader::Part ToolCallReader::finish() {
  Part part;
  while (!held_.empty() && take(part, true)) {
  }
  return part;
}

}  // namespace tuff::serve
