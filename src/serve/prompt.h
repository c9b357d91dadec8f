// Prompts of what requests say: chats by the model's template, texts as they are. What users write
// never becomes a special token: a message that spells "<|im_end|>" does not end its turn.
// Called by the server, from any thread. Must never know of HTTP or run a model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tuff/tokenizer.h>

#include "serve/request.h"
#include "text/chat_prompts.h"

namespace tuff::serve {

class PromptMaker {
 public:
  // `template_text`: of chats; empty: the model has none. InvalidArgument for one that is damaged.
  PromptMaker(Tokenizer tokenizer, const std::string& template_text);
  // RequestError for what the template refuses, and for tools that it knows nothing of.
  std::vector<int32_t> chat(const ChatRequest& request) const;
  // What the answer is held to where a tool is to be called.
  Grammar call(const ChatRequest& request) const;
  // Of the application that asks: special tokens may be spelled. `name`: of the member.
  std::vector<int32_t> text(const Input& input, const char* name) const;

 private:
  Tokenizer tokenizer_;
  std::optional<text::ChatPrompts> chats_;
};

}  // namespace tuff::serve
