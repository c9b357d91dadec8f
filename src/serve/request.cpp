#include "serve/request.h"

#include <algorithm>
#include <limits>

#include "base/parse_number.h"
#include "serve/fields.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

constexpr int64_t kMostTokens = int64_t(1) << 30;
constexpr int64_t kMostChoices = 64;
constexpr size_t kMostInputs = 256;
constexpr size_t kMostStops = 16;
constexpr size_t kMostBiases = 1024;
constexpr int64_t kMostToken = std::numeric_limits<int32_t>::max();

void read_stops(Fields& f, std::vector<std::string>& stops) {
  const Json* value = f.find("stop");
  if (!value) return;
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > kMostStops)
    refuse("stop", "stop has {} texts: at most {} were wanted", list.size(), kMostStops);
  for (const Json& s : list) {
    if (!s.is_string() || s.get_ref<const std::string&>().empty())
      refuse("stop", "stop has {}: a text that is not empty was wanted", shown(s));
    stops.push_back(s);
  }
}

void read_biases(Fields& f, std::vector<std::pair<int32_t, double>>& biases) {
  const Json* value = f.find("logit_bias");
  if (!value) return;
  if (!value->is_object() || value->size() > kMostBiases)
    refuse("logit_bias", "logit_bias is {}: an object of at most {} members was wanted",
           shown(*value), kMostBiases);
  for (const auto& [name, bias] : value->items()) {
    const std::optional<int32_t> token = parse_number<int32_t>(name);
    if (!token || *token < 0)
      refuse("logit_bias", "logit_bias has {}: ids of tokens were wanted", shown(Json(name)));
    if (!bias.is_number() || !(bias.get<double>() >= -100 && bias.get<double>() <= 100))
      refuse("logit_bias", "logit_bias of token {} is {}: a number from -100 to 100 was wanted",
             *token, shown(bias));
    biases.emplace_back(*token, bias.get<double>());
  }
}

void read_sampling(Fields& f, Generation& g) {
  language::Sampling& s = g.options.sampling;
  s.temperature = f.number("temperature", s.temperature, 0, 100);
  // 0 leaves the likeliest token, as the smallest number above it does.
  s.top_p = std::max(f.number("top_p", s.top_p, 0, 1), std::numeric_limits<double>::min());
  s.top_k = f.integer("top_k", s.top_k, 0, kMostToken);
  s.min_p = f.number("min_p", s.min_p, 0, 1);
  s.typical_p = f.number("typical_p", s.typical_p, 0.01, 1);
  s.repeat_penalty = f.number("repeat_penalty", s.repeat_penalty, 0.01, 100);
  s.presence_penalty = f.number("presence_penalty", 0, -2, 2);
  s.frequency_penalty = f.number("frequency_penalty", 0, -2, 2);
  // OpenAI counts the whole text.
  if (s.presence_penalty != 0 || s.frequency_penalty != 0) s.penalty_tokens = -1;
  read_biases(f, s.bias);
  g.seed = f.integer("seed", -1, std::numeric_limits<int64_t>::min(),
                     std::numeric_limits<int64_t>::max());
}

template <class Read>
Grammar grammar_of(const char* name, const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    refuse(name, "{}: {}", name, e.what());
  }
}

Grammar read_schema(Fields& format) {
  static constexpr const char* kName = "response_format.json_schema";
  Fields described(format.required("json_schema", "an object"), fmt::format("{}.", kName));
  described.ignore({"name", "description", "strict"});
  const Json& schema = described.required("schema", "a JSON schema");
  described.end();
  return grammar_of(kName, [&] { return Grammar::from_json_schema(schema.dump()); });
}

void read_format(Fields& f, Generation& g) {
  const Json* value = f.find("response_format");
  if (!value) return;
  Fields format(*value, "response_format.");
  const std::string type = format.text("type", "");
  if (type == "text") return;
  if (type == "json_object") {
    g.options.grammar = Grammar::json_object();
  } else if (type == "json_schema") {
    g.options.grammar = read_schema(format);
  } else {
    refuse("response_format.type",
           "response_format.type is {}: text, json_object or json_schema was wanted",
           shown(Json(type)));
  }
}

// llama.cpp's member beside OpenAI's.
void read_grammar(Fields& f, Generation& g) {
  const std::string grammar = f.text("grammar", "");
  if (grammar.empty()) return;
  if (g.options.grammar.defined()) refuse("grammar", "grammar goes without response_format");
  g.options.grammar = grammar_of("grammar", [&] { return Grammar::parse(grammar); });
}

void read_generation(Fields& f, Generation& g) {
  g.choices = f.integer("n", 1, 1, kMostChoices);
  g.stream = f.flag("stream", false);
  if (const Json* o = f.find("stream_options")) {
    Fields options(*o, "stream_options.");
    g.include_usage = options.flag("include_usage", false);
    options.ignore({"include_obfuscation"});
    options.end();
    if (!g.stream) refuse("stream_options", "stream_options go with \"stream\": true");
  }
  read_sampling(f, g);
  read_stops(f, g.options.stop);
  read_format(f, g);
  read_grammar(f, g);
  f.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
            "prompt_cache_retention"});
}

// The texts of a content in parts.
std::string joined_parts(const Json& parts, const std::string& where) {
  std::string out;
  for (size_t i = 0; i < parts.size(); i++) {
    const std::string at = fmt::format("{}[{}].", where, i);
    Fields part(parts[i], at);
    const std::string type = part.text("type", "");
    if (type != "text")
      refuse(at + "type", "{}type is {}: the model reads parts of type \"text\" alone", at,
             shown(Json(type)));
    const Json& text = part.required("text", "a text");
    if (!text.is_string()) refuse(at + "text", "{}text is {}: a text was wanted", at, shown(text));
    out += text.get_ref<const std::string&>();
  }
  return out;
}

// Templates print arguments as JSON; requests have them as text.
Json parsed_arguments(const std::string& text, const std::string& where) {
  try {
    return text.empty() ? Json::object() : parse_object(text);
  } catch (const RequestError&) {
    refuse(where, "{} is {}: the text of a JSON object was wanted", where, shown(Json(text)));
  }
}

void read_calls(Json& calls, const std::string& where) {
  if (!calls.is_array()) refuse(where, "{} is {}: a list was wanted", where, shown(calls));
  for (size_t i = 0; i < calls.size(); i++) {
    const std::string at = fmt::format("{}[{}].", where, i);
    Fields call(calls[i], at);
    call.required("function", "an object");
    Json& function = calls[i]["function"];
    Fields f(function, at + "function.");
    if (f.text("name", "").empty())
      refuse(at + "function.name", "{}function.name is missing: a text was wanted", at);
    const Json* arguments = f.find("arguments");
    if (!arguments || !arguments->is_string()) continue;
    function["arguments"] = parsed_arguments(*arguments, at + "function.arguments");
  }
}

void read_message(Json& message, const std::string& where) {
  static constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  Fields f(message, where);
  const std::string role = f.text("role", "");
  if (std::ranges::find(kRoles, role) == std::end(kRoles))
    refuse(where + "role",
           "{}role is {}: system, developer, user, assistant or tool was wanted", where,
           shown(Json(role)));
  if (role == "developer") message["role"] = "system";
  const bool calls = f.find("tool_calls") != nullptr;
  if (calls) read_calls(message["tool_calls"], where + "tool_calls");
  const Json* content = f.find("content");
  if (!content) {
    if (!calls) refuse(where + "content", "{}content is missing: a text was wanted", where);
    message["content"] = "";
  } else if (content->is_array()) {
    message["content"] = joined_parts(*content, where + "content");
  } else if (!content->is_string()) {
    refuse(where + "content", "{}content is {}: a text or a list of parts was wanted", where,
           shown(*content));
  }
}

Json read_messages(Fields& f) {
  Json messages = f.required("messages", "a list of messages");
  if (!messages.is_array() || messages.empty())
    refuse("messages", "messages is {}: a list of one message at least was wanted",
           shown(messages));
  for (size_t i = 0; i < messages.size(); i++)
    read_message(messages[i], fmt::format("messages[{}].", i));
  return messages;
}

void read_tool(const Json& tool, const std::string& where) {
  Fields f(tool, where);
  if (const std::string type = f.text("type", ""); type != "function")
    refuse(where + "type", "{}type is {}: \"function\" was wanted", where, shown(Json(type)));
  Fields function(f.required("function", "an object"), where + "function.");
  if (function.text("name", "").empty())
    refuse(where + "function.name", "{}function.name is missing: a text was wanted", where);
}

// The tools that a choice names: all that are required, or the one of a name.
Json forced_tools(const Json& tools, const Json& choice) {
  if (choice == "required" && !tools.empty()) return tools;
  if (choice.is_object()) {
    Fields wanted(choice, "tool_choice.");
    wanted.text("type", "");
    Fields function(wanted.required("function", "an object"), "tool_choice.function.");
    const std::string name = function.text("name", "");
    for (const Json& tool : tools)
      if (tool["function"]["name"] == name) return Json::array({tool});
    refuse("tool_choice", "tool_choice names {}, which tools lack", shown(Json(name)));
  }
  refuse("tool_choice",
         "tool_choice is {}: \"auto\", \"none\", or, with tools, \"required\" or a tool's name was "
         "wanted",
         shown(choice));
}

void read_tools(Fields& f, ChatRequest& r) {
  const Json* tools = f.find("tools");
  const Json* choice = f.find("tool_choice");
  f.ignore({"parallel_tool_calls"});
  if (tools && !tools->is_array())
    refuse("tools", "tools is {}: a list was wanted", shown(*tools));
  for (size_t i = 0; tools && i < tools->size(); i++)
    read_tool((*tools)[i], fmt::format("tools[{}].", i));
  if (choice && *choice == "none") return;
  const Json list = tools ? *tools : Json::array();
  if (choice && *choice != "auto") r.forced = forced_tools(list, *choice);
  if (!list.empty()) r.tools = list;
}

Json read_variables(Fields& f) {
  const Json* variables = f.find("chat_template_kwargs");
  if (variables && !variables->is_object())
    refuse("chat_template_kwargs", "chat_template_kwargs is {}: an object was wanted",
           shown(*variables));
  return variables ? *variables : Json();
}

bool is_ids(const Json& value) {
  return value.is_array() && !value.empty() && value[0].is_number();
}

std::vector<int32_t> read_ids(const Json& list, const char* name) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id > kMostToken)
      refuse(name, "{} has {}: ids of tokens were wanted", name, shown(id));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

Input read_input(const Json& value, const char* name) {
  if (value.is_string()) return value.get<std::string>();
  if (is_ids(value)) return read_ids(value, name);
  refuse(name, "{} is {}: a text, ids of tokens, or a list of these was wanted", name,
         shown(value));
}

// One, or a list of them.
std::vector<Input> read_inputs(Fields& f, const char* name) {
  const Json& value = f.required(name, "a text");
  if (!value.is_array() || is_ids(value)) return {read_input(value, name)};
  if (value.empty() || value.size() > kMostInputs)
    refuse(name, "{} has {} texts: 1 to {} were wanted", name, value.size(), kMostInputs);
  std::vector<Input> inputs;
  for (const Json& v : value) inputs.push_back(read_input(v, name));
  return inputs;
}

}  // namespace

ChatRequest read_chat_request(std::string_view body) {
  const Json object = parse_object(body);
  Fields f(object);
  ChatRequest r;
  r.model = f.text("model", "");
  r.messages = read_messages(f);
  read_tools(f, r);
  r.variables = read_variables(f);
  Generation& g = r.generation;
  read_generation(f, g);
  if (!r.forced.is_null() && g.options.grammar.defined())
    refuse("tool_choice", "tool_choice goes without response_format and grammar");
  g.options.tokens = f.integer("max_tokens", -1, 1, kMostTokens);
  g.options.tokens = f.integer("max_completion_tokens", g.options.tokens, 1, kMostTokens);
  const bool logprobs = f.flag("logprobs", false);
  const int64_t top = f.integer("top_logprobs", 0, 0, 20);
  if (logprobs) g.options.logprobs = top;
  if (top > 0 && !logprobs) refuse("top_logprobs", "top_logprobs go with \"logprobs\": true");
  f.ignore({"reasoning_effort", "modalities", "verbosity"});
  f.end();
  return r;
}

CompletionRequest read_completion_request(std::string_view body) {
  const Json object = parse_object(body);
  Fields f(object);
  CompletionRequest r;
  r.model = f.text("model", "");
  r.prompts = read_inputs(f, "prompt");
  r.echo = f.flag("echo", false);
  Generation& g = r.generation;
  read_generation(f, g);
  g.options.tokens = f.integer("max_tokens", 16, 1, kMostTokens);
  g.options.logprobs = f.integer("logprobs", -1, 0, 5);
  if (r.echo && g.options.logprobs >= 0)
    refuse("logprobs", "echo goes without logprobs: those of a prompt are not told");
  if (f.integer("best_of", g.choices, 1, kMostChoices) != g.choices)
    refuse("best_of", "best_of is not n = {}: tuff returns every answer that it writes", g.choices);
  if (!f.text("suffix", "").empty())
    refuse("suffix", "suffix: tuff writes what follows a prompt alone; leave it out");
  f.end();
  return r;
}

EmbeddingRequest read_embedding_request(std::string_view body) {
  const Json object = parse_object(body);
  Fields f(object);
  EmbeddingRequest r;
  r.model = f.text("model", "");
  r.inputs = read_inputs(f, "input");
  const std::string format = f.text("encoding_format", "float");
  r.base64 = format == "base64";
  if (!r.base64 && format != "float")
    refuse("encoding_format", "encoding_format is {}: float or base64 was wanted",
           shown(Json(format)));
  if (f.find("dimensions"))
    refuse("dimensions", "dimensions: a vector has the model's; leave it out");
  f.ignore({"user"});
  f.end();
  return r;
}

}  // namespace tuff::serve
