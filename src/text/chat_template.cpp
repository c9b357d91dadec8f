#include <tuff/chat_template.h>

#include <ctime>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/functions.h"

namespace tuff {

using text::jinja::Arguments;
using text::jinja::Value;

struct ChatTemplate::State {
  std::string text;
  text::jinja::Block block;
};

namespace {

Value json_value(const char* what, std::string_view text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded())
    fail<InvalidArgument>("chat template: the {} are no JSON: '{:.80}'", what, text);
  return text::jinja::from_json(json);
}

Value strftime_now(std::optional<int64_t> now, const Arguments& args) {
  const auto a = text::jinja::bound("strftime_now", args, {"format"});
  if (!a[0]) fail<InvalidArgument>("strftime_now: a format is missing");
  const std::string& format = text::jinja::text_of("strftime_now", *a[0]);
  const std::time_t seconds = now ? std::time_t(*now) : std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  char out[256];
  const size_t n = std::strftime(out, sizeof out, format.c_str(), &local);
  if (n == 0 && !format.empty())
    fail<InvalidArgument>("strftime_now: '{:.80}' makes no text of less than {} bytes", format,
                          sizeof out);
  return std::string(out, n);
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view text)
    : state_(std::make_shared<const State>(State{std::string(text), text::jinja::parse(text)})) {}

const std::string& ChatTemplate::text() const { return state_->text; }

std::string ChatTemplate::render(std::string_view messages, const ChatOptions& options) const {
  std::vector<std::pair<std::string, Value>> variables;
  const Value list = json_value("messages", messages);
  if (!list.list())
    fail<InvalidArgument>("chat template: the messages are {}; a list belongs there",
                          text::jinja::type_name(list));
  variables.emplace_back("messages", list);
  variables.emplace_back("documents", Value());
  variables.emplace_back("tools",
                         options.tools.empty() ? Value() : json_value("tools", options.tools));
  variables.emplace_back("add_generation_prompt", options.add_generation_prompt);
  if (!options.bos_token.empty()) variables.emplace_back("bos_token", options.bos_token);
  if (!options.eos_token.empty()) variables.emplace_back("eos_token", options.eos_token);
  if (!options.variables.empty()) {
    const Value more = json_value("variables", options.variables);
    if (!more.dict())
      fail<InvalidArgument>("chat template: the variables are {}; an object belongs there",
                            text::jinja::type_name(more));
    for (const auto& [name, value] : *more.dict()) variables.emplace_back(*name.text(), value);
  }
  const auto call = [now = options.now](const Arguments& args) { return strftime_now(now, args); };
  variables.emplace_back(
      "strftime_now",
      text::jinja::Function{"strftime_now",
                            std::make_shared<const std::function<Value(const Arguments&)>>(call)});
  return text::jinja::evaluate(state_->block, std::move(variables));
}

}  // namespace tuff
