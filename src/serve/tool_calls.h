// Calls of tools in the text of an answer, as it comes: in <tool_call> and </tool_call> (Hermes,
// Qwen), or an answer that is nothing but one (Llama 3). Called by the server. Must never know
// which model writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tuff/grammar.h>

#include "base/json.h"

namespace tuff::serve {

struct ToolCall {
  std::string name, arguments;  // JSON
};

// One call of one of the tools of a request, in the form that the model's chat template speaks of.
// RequestError for parameters whose schema is none, or more than grammars know.
Grammar call_grammar(const Json& tools, std::string_view chat_template);

class ToolCallReader {
 public:
  // Without tools every text is text. `tools`: of the request; null: none.
  explicit ToolCallReader(const Json& tools);

  struct Part {
    std::string text;
    std::vector<ToolCall> calls;
  };
  // What is certain now. What looks like a call and is none is text.
  Part push(std::string_view text);
  // What was held back, at the end of the answer.
  Part finish();
  size_t calls() const { return calls_; }  // so far

 private:
  bool take(Part& part, bool at_end);
  void take_call(Part& part, std::string_view json, std::string_view whole);

  std::vector<std::string> names_;
  std::string held_;
  bool begun_ = false;  // something of the answer is certain
  size_t calls_ = 0;
};

}  // namespace tuff::serve
