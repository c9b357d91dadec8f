#include "serve/prompt.h"

#include "base/check.h"
#include "serve/request_error.h"
#include "serve/tool_calls.h"

namespace tuff::serve {

PromptMaker::PromptMaker(Tokenizer tokenizer, const std::string& template_text)
    : tokenizer_(std::move(tokenizer)) {
  if (!template_text.empty()) chats_.emplace(tokenizer_, template_text);
}

std::vector<int32_t> PromptMaker::chat(const ChatRequest& request) const {
  if (!chats_)
    throw RequestError(400,
                       "the model has no chat template: ask /v1/completions, or start the server "
                       "with --chat-template");
  const bool has_tools = !request.tools.is_null();
  if (has_tools && chats_->chat_template().text().find("tools") == std::string::npos)
    refuse("tools", "the model's chat template knows nothing of tools; leave them out");
  ChatOptions options;
  if (!request.variables.is_null()) options.variables = chats_->marked(request.variables).dump();
  try {
    return chats_->encode_whole(chats_->render(request.messages, request.tools, options));
  } catch (const InvalidArgument& e) {
    refuse("messages", "the model's chat template refuses the messages: {}", e.what());
  }
}

Grammar PromptMaker::call(const ChatRequest& request) const {
  return call_grammar(request.forced, chats_->chat_template().text());
}

std::vector<int32_t> PromptMaker::text(const Input& input, const char* name) const {
  if (const auto* text = std::get_if<std::string>(&input)) return tokenizer_.encode(*text);
  const auto& ids = std::get<std::vector<int32_t>>(input);
  for (const int32_t id : ids) {
    if (size_t(id) >= tokenizer_.size())
      refuse(name, "{} has token {}: the vocabulary has {}", name, id, tokenizer_.size());
  }
  return ids;
}

}  // namespace tuff::serve
