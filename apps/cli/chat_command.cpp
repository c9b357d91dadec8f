// `tuff chat`: a conversation with a language model, or one answer of it.
#include <cstdio>
#include <iostream>
#include <memory>

#include <tuff/language.h>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/device.h"
#include "engine/stats.h"

namespace tuff::cli {
namespace {

struct ChatOptions {
  std::string model, prompt, device;
  bool raw = false, json = false;
  int64_t tokens = -1, context = 0;
  language::Sampling sampling;
  std::vector<std::string> stop;
};

const char* finish_name(language::Finish finish) {
  static constexpr const char* kNames[] = {"end", "stop", "length", "cancelled"};
  return kNames[size_t(finish)];
}

double per_second(size_t tokens, double seconds) {
  return seconds > 0 ? double(tokens) / seconds : 0;
}

language::Answer answer(language::Sequence& sequence, const std::vector<int32_t>& prompt,
                        const ChatOptions& o) {
  const auto show = [&](std::string_view text) {
    if (!o.json) std::fwrite(text.data(), 1, text.size(), stdout), std::fflush(stdout);
    return !os::interrupted();
  };
  return language::generate(sequence, prompt, {o.tokens, o.sampling, o.stop, show});
}

void print_answer(const language::Answer& a, const ChatOptions& o, const std::string& device) {
  print_json({{"event", "answer"},
              {"device", device},
              {"model", o.model},
              {"text", a.text},
              {"tokens", a.tokens},
              {"finish", finish_name(a.finish)},
              {"prompt_tokens", a.prompt_tokens},
              {"prompt_tokens_per_second", per_second(a.prompt_tokens, a.prompt_seconds)},
              // The first one belongs to the prompt's time.
              {"tokens_per_second",
               a.tokens.size() < 2 ? 0 : per_second(a.tokens.size() - 1, a.seconds)},
              {"seconds_to_first_token", a.prompt_seconds},
              {"kernels_compiled", engine::counters().kernels_compiled.load()}});
}

int chat(const ChatOptions& o) {
  os::catch_interrupts();
  const std::string device = engine::canonical_device(o.device);
  const language::Model model = language::Model::open(o.model, {.device = device});
  language::Sequence sequence(model, {.context = o.context});
  const language::Answer a = answer(sequence, model.tokenizer().encode(o.prompt), o);
  if (o.json) {
    print_answer(a, o, device);
  } else {
    std::puts("");
  }
  return os::interrupted() ? kExitInterrupted : kExitOk;
}

void add_sampling(CLI::App& c, language::Sampling& s) {
  add_setting(c, "--temperature", s.temperature, "0 takes the likeliest token each time", "F",
              between(0, 100));
  add_setting(c, "--top-k", s.top_k, "Of so many likeliest tokens; 0: of all", "N",
              CLI::NonNegativeNumber);
  add_setting(c, "--top-p", s.top_p, "Of the likeliest tokens that together have this probability",
              "F", between(0, 1));
  add_setting(c, "--min-p", s.min_p, "Of tokens with this part of the likeliest's probability", "F",
              between(0, 1));
  add_setting(c, "--repeat-penalty", s.repeat_penalty,
              "What logits of tokens that occur are divided by", "F", between(0.01, 100));
  add_setting(c, "--seed", s.seed, "Of sampling", "N");
}

}  // namespace

void add_chat_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand("chat", "Answers of a language model");
  auto o = std::make_shared<ChatOptions>();
  c->add_option("model", o->model, "A GGUF file")->required()->type_name("MODEL");
  c->add_option("--prompt", o->prompt, "What is asked")->type_name("TEXT");
  c->add_flag("--raw", o->raw, "The prompt is the text to go on with; no chat template is used");
  add_setting(*c, "--tokens", o->tokens, "At most so many in an answer; -1: what the context holds",
              "N", CLI::Range(int64_t(-1), int64_t(1) << 30));
  add_setting(*c, "--context", o->context, "Tokens that fit; 0: the model's, at most 4096", "N",
              CLI::NonNegativeNumber);
  c->add_option("--stop", o->stop, "A text that ends an answer; may be repeated")
      ->type_name("TEXT");
  add_sampling(*c, o->sampling);
  add_device_option(*c, o->device);
  c->add_flag("--json", o->json,
              "A JSON object: text, token ids, tokens per second of prompt and answer");
  c->callback([o, &chosen] { chosen = [o] { return chat(*o); }; });
}

}  // namespace tuff::cli
