// Bodies and chunks of answers, replies between threads, metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "language/fixtures.h"
#include "serve/metrics.h"
#include "serve/request_error.h"
#include "serve/response.h"

namespace tuff::serve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Responses : public testing::Test {
 protected:
  const Tokenizer tokenizer_ = language::fixture_model("qwen2").tokenizer();
  const ResponseHead head_{"id", "m", 5};
  Piece piece(const std::string& text, int32_t token) {
    return {text, {token}, {{{token, -0.5f}, {{token, -0.5f}, {3, -INFINITY}}}}};
  }
};

TEST_F(Responses, AChatInChunksIsTheWholeOne) {
  auto format = chat_format(head_, tokenizer_, 2, {});
  std::vector<Json> said = format->add(1, piece("a", 0));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0]["delta"], Json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(said[1]["index"], 1);
  EXPECT_EQ(said[1]["delta"], Json({{"content", "a"}}));
  EXPECT_EQ(said[1]["logprobs"]["content"][0]["top_logprobs"][1]["logprob"], -9999);
  EXPECT_EQ(format->add(1, {}).size(), 0u);
  said = format->finish(1, {.finish = language::Finish::Length});
  EXPECT_EQ(said.back()["finish_reason"], "length");
  said = format->finish(0, {.finish = language::Finish::End});
  EXPECT_EQ(said.size(), 2u) << "an empty answer has a role too";
  const Json whole = format->whole({.prompt = 4, .completion = 2});
  EXPECT_EQ(whole["choices"][1]["message"]["content"], "a");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(whole["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(whole["usage"]["total_tokens"], 6);
  EXPECT_EQ(format->chunk({})["object"], "chat.completion.chunk");
  EXPECT_EQ(event_text(Json(1)), "data: 1\n\n");
}

TEST_F(Responses, ToolCallsAreDeltas) {
  const Json tools = Json::parse(R"([{"function": {"name": "f"}}])");
  auto format = chat_format(head_, tokenizer_, 1, tools);
  const std::vector<Json> said =
      format->add(0, {"<tool_call>{\"name\": \"f\"}</tool_call>", {1}, {}});
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1]["delta"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(said[1]["delta"]["tool_calls"][0]["index"], 0);
  EXPECT_EQ(format->finish(0, {}).back()["finish_reason"], "tool_calls");
  EXPECT_TRUE(format->choices()[0]["message"]["content"].is_null());
}

TEST_F(Responses, CompletionsHaveListsOfLogprobs) {
  auto format = completion_format(head_, tokenizer_, {"echo"});
  EXPECT_EQ(format->add(0, piece("b", 1))[0]["text"], "echob");
  format->add(0, piece("c", 2));
  format->finish(0, {});
  const Json choice = format->choices()[0];
  EXPECT_EQ(choice["text"], "echobc");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), 2u);
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json({0, 1}));
}

TEST(Reply, KeepsWhatNobodyHasTaken) {
  Reply reply(1);
  EXPECT_FALSE(reply.wait(1ms));
  const std::vector<int32_t> tokens{5};
  std::thread writer([&] {
    reply.put(0, {"a", tokens, {}});
    reply.put(0, {"b", tokens, {}});
    reply.end(0, {.tokens = 2});
  });
  writer.join();
  EXPECT_TRUE(reply.wait(1ms));
  EXPECT_EQ(reply.outcome(0), nullptr) << "text is left";
  EXPECT_EQ(reply.take(0).text, "ab");
  ASSERT_NE(reply.outcome(0), nullptr);
  EXPECT_EQ(reply.outcome(0)->tokens, 2u);
}

TEST(Metrics, AreInPrometheussForm) {
  Metrics m;
  m.request("/health", 200);
  m.request("/health", 200);
  m.first_token(0.02);
  m.first_token(1000);
  const std::string text = m.text({.running = 3, .tokens = 7});
  EXPECT_THAT(text, HasSubstr("tuff_requests_total{route=\"/health\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE tuff_tokens_total counter\ntuff_tokens_total 7\n"));
  EXPECT_THAT(text, HasSubstr("tuff_answers_running 3\n"));
  EXPECT_THAT(text, HasSubstr("tuff_first_token_seconds_bucket{le=\"0.025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tuff_first_token_seconds_bucket{le=\"+Inf\"} 2\n"));
}

TEST(Errors, AreInOpenAisForm) {
  const Json body = Json::parse(error_body(RequestError(429, "busy", "n", "full")));
  EXPECT_EQ(body["error"], Json({{"message", "busy"},
                                 {"type", "rate_limit_error"},
                                 {"param", "n"},
                                 {"code", "full"}}));
}

}  // namespace
}  // namespace tuff::serve
