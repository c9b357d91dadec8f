// Chats as prompts: the Jinja templates that models come with. Called by users and by whatever runs
// language models. Must never know of tokens or models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuff {

/// What a template is told beside the messages.
struct ChatOptions {
  bool add_generation_prompt = true;           ///< whether the model's turn is begun
  std::string bos_token = {}, eos_token = {};  ///< as the vocabulary spells them
  std::string tools = {};      ///< a JSON list of what the model may call; empty: none
  std::string variables = {};  ///< a JSON object of more names: {"enable_thinking": false}
  /// Seconds since 1970 that strftime_now() prints in local time; none: the clock's.
  std::optional<int64_t> now = {};
};

/// A chat template: Jinja as far as such templates use it, rendered as transformers renders them
/// with jinja2 (trim_blocks, lstrip_blocks). It does not change, copies share, and any thread may
/// use it. Templates are not trusted: they change nothing outside of themselves and end after a
/// bounded number of steps.
class ChatTemplate {
 public:
  /// InvalidArgument naming line and construct for what is no template, or more than tuff knows.
  explicit ChatTemplate(std::string_view text);
  /// The prompt of a JSON list of messages: [{"role": "user", "content": "Hello"}]. InvalidArgument
  /// for what is no such list; naming the line for what the template cannot do with it, also where
  /// it raises an exception itself.
  std::string render(std::string_view messages, const ChatOptions& options = {}) const;
  const std::string& text() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace tuff
