#include <array>

#include "text/pipeline.h"

namespace tuff::text {
namespace {

// Spellings of tokens that end a turn or an answer, in the chat formats of models that are around:
// files name one of them at most.
constexpr std::string_view kEnds[] = {"<|eot_id|>",
                                      "<|im_end|>",
                                      "<|end|>",
                                      "<|return|>",
                                      "<|call|>",
                                      "<|calls|>",
                                      "<|flush|>",
                                      "<end_of_turn>",
                                      "<|endoftext|>",
                                      "</s>",
                                      "<|eom_id|>",
                                      "<EOT>",
                                      "_<EOT>",
                                      "[EOT]",
                                      "[EOS]",
                                      "<|end_of_text|>",
                                      "<end_of_utterance>",
                                      "<eos>",
                                      "<turn|>",
                                      "<|tool_response>",
                                      "<｜end▁of▁sentence｜>",
                                      "[e~[",
                                      "<|fim_pad|>",
                                      "<fim-pad>",
                                      "<fim_pad>",
                                      "<|fim_repo|>",
                                      "<|repo_name|>",
                                      "<fim-repo>",
                                      "<reponame>",
                                      "<|file_sep|>"};

// Where all of `with` are there, `token` ends no answer but a part of one.
struct Exception {
  std::string_view token;
  std::array<std::string_view, 2> with;
};
constexpr Exception kExceptions[] = {{"<|end|>", {"<|return|>", "<|call|>"}},
                                     {"<|end|>", {"<|calls|>", "<|flush|>"}},
                                     {"</s>", {"<|tool_response>", "<|tool_response>"}}};

}  // namespace

std::unordered_set<int32_t> end_tokens(const Vocabulary& vocabulary, std::optional<int32_t> eos) {
  std::unordered_set<int32_t> out;
  for (const std::string_view name : kEnds)
    if (const auto id = vocabulary.find(name)) out.insert(*id);
  for (const Exception& e : kExceptions)
    if (const auto id = vocabulary.find(e.token);
        id && vocabulary.find(e.with[0]) && vocabulary.find(e.with[1]))
      out.erase(*id);
  if (eos) out.insert(*eos);
  return out;
}

}  // namespace tuff::text
