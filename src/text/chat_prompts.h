// ChatPrompts: chats as tokens, by a model's template. What messages hold never becomes a special
// token: one that spells "<|im_end|>" does not end its turn. Called by whoever asks a model or
// trains one. Must never run a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tuff/chat_template.h>
#include <tuff/tokenizer.h>

#include "base/json.h"

namespace tuff::text {

class ChatPrompts {
 public:
  // InvalidArgument for a template that is damaged.
  ChatPrompts(Tokenizer tokenizer, std::string_view template_text);
  // The text that the template makes of messages and tools (null: none), with marks around what is
  // to be plain. `options`: beside tools and the spellings of BOS and EOS, which are the
  // tokenizer's. InvalidArgument for what the template refuses.
  std::string render(const Json& messages, const Json& tools, ChatOptions options) const;
  // The ids of such a text, or of a part of it.
  std::vector<int32_t> encode(std::string_view rendered) const;
  // With BOS, where the vocabulary wants it and the template has not spelled it.
  std::vector<int32_t> encode_whole(std::string_view rendered) const;
  const ChatTemplate& chat_template() const { return template_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  // As render() has a value: marks around the special tokens that it spells.
  Json marked(const Json& value) const;

 private:
  std::string marked(const std::string& text) const;

  Tokenizer tokenizer_;
  ChatTemplate template_;
  std::string bos_, eos_;
  std::vector<std::string> special_;  // as texts spell them, sorted
};

}  // namespace tuff::text
