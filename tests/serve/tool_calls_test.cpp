// Calls of tools in answers that come piece by piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/tool_calls.h"

namespace tuff::serve {
namespace {

using testing::ElementsAre;

const Json kTools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");

struct Read {
  std::string text;
  std::vector<std::string> calls;
};

// In pieces of `n` bytes.
Read read(const std::string& text, size_t n, const Json& tools = kTools) {
  ToolCallReader reader(tools);
  Read out;
  const auto take = [&](const ToolCallReader::Part& part) {
    out.text += part.text;
    for (const ToolCall& c : part.calls) out.calls.push_back(c.name + c.arguments);
  };
  for (size_t i = 0; i < text.size(); i += n) take(reader.push(text.substr(i, n)));
  take(reader.finish());
  EXPECT_EQ(reader.calls(), out.calls.size());
  return out;
}

TEST(ToolCalls, AreTakenOutOfTheText) {
  const std::string text =
      "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n"
      "<tool_call>{\"name\": \"g\"}</tool_call>";
  for (size_t n = 1; n < text.size(); n += 3) {
    const Read r = read(text, n);
    EXPECT_EQ(r.text, "Let me see.") << n;
    EXPECT_THAT(r.calls, ElementsAre("f{\"x\":1}", "g{}")) << n;
  }
}

TEST(ToolCalls, WhatOnlyLooksLikeOneIsText) {
  for (const std::string text :
       {"a <tool_cal b", "a < b", "<tool_call>no JSON</tool_call> c", "{\"name\": \"other\"}",
        "{\"a\": 1}", "  x  ", "<tool_call>{\"name\": 5}"})
    for (size_t n = 1; n < 5; n++) {
      const Read r = read(text, n);
      EXPECT_EQ(r.text, text) << n;
      EXPECT_TRUE(r.calls.empty());
    }
}

TEST(ToolCalls, AnAnswerThatIsNothingElse) {
  const Read r = read("{\"name\": \"f\", \"parameters\": {\"x\": [1]}}", 2);
  EXPECT_EQ(r.text, "");
  EXPECT_THAT(r.calls, ElementsAre("f{\"x\":[1]}"));
}

TEST(ToolCalls, AnEndThatIsMissing) {
  EXPECT_THAT(read("<tool_call>{\"name\": \"f\"}", 4).calls, ElementsAre("f{}"));
}

TEST(ToolCalls, WithoutToolsEverythingIsText) {
  const std::string text = "<tool_call>{\"name\": \"f\"}</tool_call>";
  EXPECT_EQ(read(text, 3, Json()).text, text);
}

Json tool(const char* name, Json parameters) {
  return {{"type", "function"}, {"function", {{"name", name}, {"parameters", std::move(parameters)}}}};
}

// What a grammar allows is read as a call.
TEST(ToolCalls, AForcedAnswerIsACall) {
  const Json tree = Json::parse(R"({"$ref": "#/$defs/t", "$defs": {"t": {"type": "object",
      "properties": {"v": {"type": "integer"}, "sub": {"$ref": "#/$defs/t"}}, "required": ["v"]}}})");
  const Json tools = {tool("weather", {{"properties", {{"city", {{"type", "string"}}}}}}),
                      tool("plant", tree), {{"type", "function"}, {"function", {{"name", "now"}}}}};
  const std::string hermes = "... <tool_call></tool_call> ...", llama = "{{ tools }}";
  const std::string calls[] = {R"({"name": "weather", "arguments": {"city": "Oslo"}})",
                               R"({"name":"plant","arguments":{"v":1,"sub":{"v":-2}}})",
                               R"({"name": "now", "arguments": {}})"};
  for (const std::string& call : calls) {
    const std::string text = "<tool_call>\n" + call + "\n</tool_call>";
    EXPECT_TRUE(call_grammar(tools, hermes).accepts(text)) << text;
    std::string bare = call;
    bare.replace(bare.find("arguments"), 9, "parameters");
    EXPECT_TRUE(call_grammar(tools, llama).accepts(bare)) << bare;
    for (const std::string& whole : {text, bare}) {
      ToolCallReader reader(tools);
      const ToolCallReader::Part first = reader.push(whole), last = reader.finish();
      EXPECT_EQ(first.calls.size() + last.calls.size(), 1u);
      EXPECT_EQ(first.text + last.text, "");
    }
  }
  for (const char* other : {"Hello", R"({"name":"plant","arguments":{"sub":{"v":1}}})",
                            R"({"name":"rm","arguments":{}})"}) {
    EXPECT_FALSE(call_grammar(tools, hermes).accepts(other));
    EXPECT_FALSE(call_grammar(tools, hermes).accepts("<tool_call>\n" + std::string(other) +
                                                     "\n</tool_call>"));
  }
  EXPECT_THROW(call_grammar(Json::array({tool("f", {{"not", Json::object()}})}), llama), RequestError);
}

}  // namespace
}  // namespace tuff::serve
