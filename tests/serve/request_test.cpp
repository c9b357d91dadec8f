// Requests of OpenAI's API: what they mean, and errors that name the member and its value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/fields.h"
#include "serve/request.h"
#include "serve/request_error.h"

namespace tuff::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

template <class F>
std::pair<std::string, std::string> error_of(F&& f) {
  try {
    f();
  } catch (const RequestError& e) {
    EXPECT_EQ(e.status(), 400);
    return {e.param(), e.what()};
  }
  return {};
}

constexpr const char* kHello = R"("messages": [{"role": "user", "content": "hello"}])";

ChatRequest chat(const std::string& more) {
  return read_chat_request(fmt::format("{{{}{}}}", kHello, more));
}

TEST(ChatRequest, HasWhatItSays) {
  const ChatRequest r = chat(
      R"(, "model": "m", "n": 2, "stream": true, "stream_options": {"include_usage": true},
      "temperature": 0.5, "top_p": 0, "seed": 7, "stop": ["a", "b"], "max_tokens": null,
      "max_completion_tokens": 9, "presence_penalty": 1, "frequency_penalty": -1,
      "logit_bias": {"5": -100}, "logprobs": true, "top_logprobs": 3, "user": "u",
      "response_format": {"type": "text"}, "tool_choice": "auto")");
  const Generation& g = r.generation;
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(g.choices, 2);
  EXPECT_TRUE(g.stream && g.include_usage);
  EXPECT_EQ(g.seed, 7);
  EXPECT_EQ(g.options.tokens, 9);
  EXPECT_THAT(g.options.stop, ElementsAre("a", "b"));
  EXPECT_EQ(g.options.logprobs, 3);
  EXPECT_EQ(g.options.sampling.temperature, 0.5);
  EXPECT_GT(g.options.sampling.top_p, 0) << "the sampler takes no 0";
  EXPECT_EQ(g.options.sampling.penalty_tokens, -1);
  EXPECT_THAT(g.options.sampling.bias, ElementsAre(Pair(5, -100.0)));
  EXPECT_TRUE(r.tools.is_null());
}

TEST(ChatRequest, MessagesAreAsTemplatesTakeThem) {
  const ChatRequest r = read_chat_request(R"({"messages": [
    {"role": "developer", "content": [{"type": "text", "text": "a"},
                                      {"type": "text", "text": "b"}]},
    {"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
      "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "2"}]})");
  EXPECT_EQ(r.messages[0], Json({{"role", "system"}, {"content", "ab"}}));
  EXPECT_EQ(r.messages[1]["content"], "");
  EXPECT_EQ(r.messages[1]["tool_calls"][0]["function"]["arguments"], Json({{"x", 1}}));
  EXPECT_EQ(r.messages[2]["tool_call_id"], "1");
}

TEST(ChatRequest, ErrorsNameMemberAndValue) {
  const std::vector<std::tuple<const char*, const char*, const char*>> rows = {
      {R"(, "temperature": -1)", "temperature", "temperature is -1: a number from 0 to 100"},
      {R"(, "temperature": "hot")", "temperature", "temperature is \"hot\": a number"},
      {R"(, "temperature": 1e999)", "", "no JSON"},
      {R"(, "n": 0)", "n", "n is 0: a whole number from 1 to 64"},
      {R"(, "n": 1.5)", "n", "n is 1.5"},
      {R"(, "seed": 18446744073709551615)", "seed", "seed is 18446744073709551615"},
      {R"(, "stream": 1)", "stream", "stream is 1: true or false"},
      {R"(, "stop": [""])", "stop", "stop has \"\""},
      {R"(, "stop": {"a": 1})", "stop", "stop has {\"a\":1}"},
      {R"(, "logit_bias": {"x": 1})", "logit_bias", "logit_bias has \"x\""},
      {R"(, "logit_bias": {"-1": 1})", "logit_bias", "logit_bias has \"-1\""},
      {R"(, "logit_bias": {"1": 101})", "logit_bias", "logit_bias of token 1 is 101"},
      {R"(, "top_logprobs": 2)", "top_logprobs", "go with \"logprobs\": true"},
      {R"(, "stream_options": {"include_usage": true})", "stream_options", "\"stream\": true"},
      {R"(, "response_format": {"type": "json_schema"})", "response_format.json_schema", "missing"},
      {R"(, "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})",
       "response_format.json_schema", "/not is not known"},
      {R"(, "grammar": "root ::= x")", "grammar", "there is no rule x"},
      {R"(, "grammar": "root ::= \"x\"", "response_format": {"type": "json_object"})", "grammar",
       "goes without response_format"},
      {R"(, "response_format": {"type": "xml"})", "response_format.type", "\"xml\""},
      {R"(, "tool_choice": "required")", "tool_choice", "tool_choice is \"required\": \"auto\","},
      {R"(, "tool_choice": {"type": "function", "function": {"name": "f"}})", "tool_choice",
       "names \"f\", which tools lack"},
      {R"(, "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required",
          "grammar": "root ::= \"x\"")", "tool_choice", "goes without response_format"},
      {R"(, "tools": [{"type": "function"}])", "tools[0].function", "is missing"},
      {R"(, "tools": [{"type": "code"}])", "tools[0].type", "\"code\""},
      {R"(, "temprature": 1)", "temprature", "did you mean temperature?"},
      {R"(, "chat_template_kwargs": [])", "chat_template_kwargs", "an object was wanted"}};
  for (const auto& [more, param, text] : rows)
    EXPECT_THAT(error_of([&] { chat(more); }), Pair(param, HasSubstr(text))) << more;
}

TEST(ChatRequest, ErrorsOfMessages) {
  const std::vector<std::tuple<const char*, const char*, const char*>> rows = {
      {R"({})", "messages", "messages is missing"},
      {R"({"messages": []})", "messages", "messages is []"},
      {R"({"messages": ["a"]})", "messages[0]", "messages[0] is \"a\": an object"},
      {R"({"messages": [{"role": "king", "content": ""}]})", "messages[0].role", "\"king\""},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content", "is missing"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content", "is 5"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content[0].type", "\"image_url\""},
      {R"({"messages": [{"role": "assistant", "tool_calls": [{"function":
        {"name": "f", "arguments": "["}}]}]})",
       "messages[0].tool_calls[0].function.arguments", "JSON object"}};
  for (const auto& [body, param, text] : rows)
    EXPECT_THAT(error_of([&, b = body] { read_chat_request(b); }), Pair(param, HasSubstr(text)))
        << body;
}

TEST(CompletionRequest, TakesTextsAndTokens) {
  const CompletionRequest one = read_completion_request(R"({"prompt": "a"})");
  EXPECT_EQ(one.generation.options.tokens, 16);
  EXPECT_EQ(std::get<std::string>(one.prompts.at(0)), "a");
  const CompletionRequest ids = read_completion_request(R"({"prompt": [1, 2]})");
  EXPECT_THAT(std::get<1>(ids.prompts.at(0)), ElementsAre(1, 2));
  EXPECT_EQ(read_completion_request(R"({"prompt": ["a", [1], "b"]})").prompts.size(), 3u);
  EXPECT_THAT(error_of([] { read_completion_request(R"({"prompt": [1, -1]})"); }),
              Pair("prompt", "prompt has -1: ids of tokens were wanted"));
  EXPECT_THAT(error_of([] { read_completion_request(R"({"prompt": []})"); }),
              Pair("prompt", HasSubstr("0 texts")));
  EXPECT_THAT(error_of([] { read_completion_request(R"({"prompt": "a", "best_of": 3})"); }),
              Pair("best_of", HasSubstr("n = 1")));
}

TEST(EmbeddingRequest, TakesTheFormatsThatThereAre) {
  EXPECT_TRUE(read_embedding_request(R"({"input": "a", "encoding_format": "base64"})").base64);
  EXPECT_THAT(error_of([] { read_embedding_request(R"({"input": "a", "dimensions": 3})"); }),
              Pair("dimensions", HasSubstr("leave it out")));
}

TEST(Body, IsBounded) {
  EXPECT_THAT(error_of([] { parse_object("[1"); }).second, HasSubstr("no JSON: parse error"));
  EXPECT_THAT(error_of([] { parse_object("[]"); }).second, HasSubstr("a JSON object was wanted"));
  EXPECT_THAT(error_of([] { parse_object("\xff"); }).second, HasSubstr("no JSON"));
  EXPECT_THAT(error_of([] { parse_object(R"({"a": ")" "\xff" R"("})"); }).second,
              HasSubstr("no JSON"));
  EXPECT_THAT(error_of([] { parse_object(std::string(1 << 20, '[')); }).second,
              HasSubstr("nested deeper than 64"));
  std::string many = "{";
  for (int i = 0; i < 20000; i++) many += fmt::format("\"{}\": 1,", i);
  EXPECT_THAT(error_of([&] { parse_object(many + "\"a\": 1}"); }).second,
              HasSubstr("more than 10000 members"));
}

}  // namespace
}  // namespace tuff::serve
