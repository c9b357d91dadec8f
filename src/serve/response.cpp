#include "serve/response.h"

#include <algorithm>

#include "serve/tool_calls.h"

namespace tuff::serve {
namespace {

constexpr double kLeastLogprob = -9999;  // JSON has no infinity

double finite(float logprob) { return std::max(double(logprob), kLeastLogprob); }

const char* finish_reason(language::Finish finish) {
  return finish == language::Finish::Length ? "length" : "stop";
}

size_t characters(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

// {"token", "logprob", "bytes"} of chats.
Json token_json(const Tokenizer& tokenizer, const language::TokenChoice& t) {
  const std::string& text = tokenizer.piece(t.token);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(uint8_t(c));
  return {{"token", text}, {"logprob", finite(t.logprob)}, {"bytes", std::move(bytes)}};
}

void append(Json& list, const Json& more) {
  for (const Json& item : more) list.push_back(item);
}

class ChatFormat : public AnswerFormat {
 public:
  ChatFormat(ResponseHead head, const Tokenizer& tokenizer, size_t choices, const Json& tools)
      : AnswerFormat(std::move(head), "chat.completion", "chat.completion.chunk"),
        tokenizer_(tokenizer),
        choices_(choices, Choice{ToolCallReader(tools)}) {}

  std::vector<Json> add(size_t choice, const Piece& piece) override {
    Choice& c = choices_[choice];
    const Json logprobs = logprobs_json(piece.logprobs);
    append(c.logprobs, logprobs);
    c.with_logprobs |= !piece.logprobs.empty();
    return deltas(choice, c.reader.push(piece.text), logprobs);
  }
  std::vector<Json> finish(size_t choice, const Outcome& outcome) override {
    Choice& c = choices_[choice];
    std::vector<Json> out = deltas(choice, c.reader.finish(), Json::array());
    c.finish = c.reader.calls() > 0 ? "tool_calls" : finish_reason(outcome.finish);
    if (!std::exchange(c.begun, true)) out.push_back(delta(choice, first_delta(), {}));
    out.push_back(delta(choice, Json::object(), {}));
    out.back()["finish_reason"] = c.finish;
    return out;
  }
  Json choices() const override {
    Json list = Json::array();
    for (const Choice& c : choices_) {
      Json message = {{"role", "assistant"}, {"content", c.text}, {"refusal", nullptr}};
      if (!c.calls.empty()) {
        if (c.text.empty()) message["content"] = nullptr;
        message["tool_calls"] = c.calls;
      }
      Json logprobs;
      if (c.with_logprobs) logprobs = {{"content", c.logprobs}, {"refusal", nullptr}};
      list.push_back({{"index", list.size()},
                      {"message", std::move(message)},
                      {"logprobs", std::move(logprobs)},
                      {"finish_reason", c.finish}});
    }
    return list;
  }

 private:
  struct Choice {
    ToolCallReader reader;
    std::string text = {};
    Json calls = Json::array(), logprobs = Json::array();
    std::string finish = {};
    bool begun = false, with_logprobs = false;
  };
  static Json first_delta() { return {{"role", "assistant"}, {"content", ""}}; }

  Json logprobs_json(const std::vector<language::TokenLogprobs>& logprobs) const {
    Json list = Json::array();
    for (const language::TokenLogprobs& l : logprobs) {
      Json top = Json::array();
      for (const language::TokenChoice& t : l.top) top.push_back(token_json(tokenizer_, t));
      list.push_back(token_json(tokenizer_, l.chosen));
      list.back()["top_logprobs"] = std::move(top);
    }
    return list;
  }
  static Json delta(size_t choice, Json delta, const Json& logprobs) {
    Json out = {{"index", choice}, {"delta", std::move(delta)}, {"logprobs", nullptr},
                {"finish_reason", nullptr}};
    if (!logprobs.empty()) out["logprobs"] = {{"content", logprobs}, {"refusal", nullptr}};
    return out;
  }
  std::vector<Json> deltas(size_t choice, ToolCallReader::Part part, const Json& logprobs) {
    Choice& c = choices_[choice];
    Json calls = Json::array();
    for (ToolCall& call : part.calls) {
      const size_t index = c.calls.size();
      c.calls.push_back(
          {{"id", fmt::format("call_{}_{}", choice, index)},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", std::move(call.arguments)}}}});
      calls.push_back({{"index", index}});
      calls.back().update(c.calls.back());
    }
    c.text += part.text;
    std::vector<Json> out;
    const bool empty = part.text.empty() && calls.empty() && logprobs.empty();
    if (!empty && !std::exchange(c.begun, true)) out.push_back(delta(choice, first_delta(), {}));
    Json said = Json::object();
    if (!part.text.empty()) said["content"] = std::move(part.text);
    if (!calls.empty()) said["tool_calls"] = std::move(calls);
    if (!empty) out.push_back(delta(choice, std::move(said), logprobs));
    return out;
  }

  Tokenizer tokenizer_;
  std::vector<Choice> choices_;
};

class CompletionFormat : public AnswerFormat {
 public:
  CompletionFormat(ResponseHead head, const Tokenizer& tokenizer, std::vector<std::string> echoed)
      : AnswerFormat(std::move(head), "text_completion", "text_completion"),
        tokenizer_(tokenizer) {
    for (std::string& text : echoed) {
      Choice c;
      c.text = c.unsaid = std::move(text);
      choices_.push_back(std::move(c));
    }
  }

  std::vector<Json> add(size_t choice, const Piece& piece) override {
    Choice& c = choices_[choice];
    const Json logprobs = logprobs_json(c, piece.logprobs);
    c.text += piece.text;
    const std::string text = std::exchange(c.unsaid, {}) + piece.text;
    if (text.empty() && logprobs.is_null()) return {};
    return {said(choice, text, logprobs)};
  }
  std::vector<Json> finish(size_t choice, const Outcome& outcome) override {
    Choice& c = choices_[choice];
    c.finish = finish_reason(outcome.finish);
    Json last = said(choice, std::exchange(c.unsaid, {}), {});
    last["finish_reason"] = c.finish;
    return {std::move(last)};
  }
  Json choices() const override {
    Json list = Json::array();
    for (const Choice& c : choices_)
      list.push_back({{"text", c.text},
                      {"index", list.size()},
                      {"logprobs", c.logprobs},
                      {"finish_reason", c.finish}});
    return list;
  }

 private:
  struct Choice {
    std::string text = {}, unsaid = {}, finish = {};
    Json logprobs = {};      // lists of four kinds; null: none
    size_t characters = 0;  // before the next token
  };
  static Json said(size_t choice, const std::string& text, const Json& logprobs) {
    return {{"text", text}, {"index", choice}, {"logprobs", logprobs}, {"finish_reason", nullptr}};
  }
  Json logprobs_json(Choice& c, const std::vector<language::TokenLogprobs>& logprobs) const {
    if (logprobs.empty()) return {};
    const Json none = {{"tokens", Json::array()},
                       {"token_logprobs", Json::array()},
                       {"top_logprobs", Json::array()},
                       {"text_offset", Json::array()}};
    Json out = none;
    for (const language::TokenLogprobs& l : logprobs) {
      const std::string& text = tokenizer_.piece(l.chosen.token);
      Json top = Json::object();
      for (const language::TokenChoice& t : l.top)
        top[tokenizer_.piece(t.token)] = finite(t.logprob);
      out["tokens"].push_back(text);
      out["token_logprobs"].push_back(finite(l.chosen.logprob));
      out["top_logprobs"].push_back(std::move(top));
      out["text_offset"].push_back(c.characters);
      c.characters += characters(text);
    }
    if (c.logprobs.is_null()) c.logprobs = none;
    for (auto& [name, list] : c.logprobs.items()) append(list, out[name]);
    return out;
  }

  Tokenizer tokenizer_;
  std::vector<Choice> choices_;
};

}  // namespace

std::string body_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string event_text(const Json& json) { return "data: " + body_text(json) + "\n\n"; }

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.completion},
          {"total_tokens", usage.prompt + usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

Json AnswerFormat::body(const char* object, Json choices) const {
  return {{"id", head_.id},
          {"object", object},
          {"created", head_.created},
          {"model", head_.model},
          {"choices", std::move(choices)}};
}

Json AnswerFormat::chunk(Json choice) const {
  return body(chunk_object_, Json::array({std::move(choice)}));
}

Json AnswerFormat::usage_chunk(const Usage& usage) const {
  Json out = body(chunk_object_, Json::array());
  out["usage"] = usage_json(usage);
  return out;
}

Json AnswerFormat::whole(const Usage& usage) const {
  Json out = body(object_, choices());
  out["usage"] = usage_json(usage);
  return out;
}

std::unique_ptr<AnswerFormat> chat_format(ResponseHead head, const Tokenizer& tokenizer,
                                          size_t choices, const Json& tools) {
  return std::make_unique<ChatFormat>(std::move(head), tokenizer, choices, tools);
}

std::unique_ptr<AnswerFormat> completion_format(ResponseHead head, const Tokenizer& tokenizer,
                                                std::vector<std::string> echoed) {
  return std::make_unique<CompletionFormat>(std::move(head), tokenizer, std::move(echoed));
}

}  // namespace tuff::serve
