// `tuff chat`: a conversation with a language model, or one answer of it.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include <tuff/language.h>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/terminal.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "text/chat_prompts.h"

namespace tuff::cli {
namespace {

struct ConversationOptions {
  ModelChoice model;
  std::string prompt, system, device, cache = "f16";
  bool raw = false, json = false;
  int64_t tokens = -1, context = 0, keep = -1;
  language::Sampling sampling;
  DraftChoice draft;
  std::vector<std::string> stop;
  std::string grammar, json_schema;  // files
};

const char* finish_name(language::Finish finish) {
  static constexpr const char* kNames[] = {"end", "stop", "length", "cancelled", "failed"};
  return kNames[size_t(finish)];
}

double per_second(size_t tokens, double seconds) {
  return seconds > 0 ? double(tokens) / seconds : 0;
}

// What a terminal may be shown of a piece of an answer.
std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, n));
    if (n < text.size()) out += text[n];
    text.remove_prefix(std::min(n + 1, text.size()));
  }
  return out;
}

Grammar grammar_of(const ConversationOptions& o) {
  if (!o.grammar.empty()) return Grammar::parse(os::read_text(o.grammar));
  if (!o.json_schema.empty()) return Grammar::from_json_schema(os::read_text(o.json_schema));
  return {};
}

class Conversation {
 public:
  explicit Conversation(const ConversationOptions& o)
      : o_(o),
        grammar_(grammar_of(o)),
        device_(engine::canonical_device(o.device)),
        model_(open_model(o.model, device_)),
        sequence_(model_,
                  {.context = o.context, .cache = language::cache_type(o.cache)}) {
    if (const auto draft = open_draft(o.draft, device_))
      draft_.emplace(*draft, language::SequenceOptions{.context = std::min(
                                 sequence_.context(), draft->description().context)});
    if (!o.raw) chats_.emplace(model_.tokenizer(), template_text());
    reset();
  }

  void reset() {
    messages_ = Json::array();
    if (!o_.system.empty()) say("system", o_.system);
  }
  const language::Model& model() const { return model_; }

  void ask(const std::string& text) {
    language::Answer a;
    if (o_.raw) {
      a = write(model_.tokenizer().encode(text));
    } else {
      say("user", text);
      a = write(prompt_that_fits());
      say("assistant", a.text);
    }
    o_.json ? print(a) : show_speed(a);
    if (a.finish == language::Finish::Failed) fail<InvalidArgument>("{}", a.error);
  }

 private:
  std::string template_text() const {
    const std::string& text = model_.tokenizer().chat_template();
    if (text.empty())
      fail<InvalidArgument>("{} has no chat template: --raw continues a text", o_.model.path);
    return text;
  }
  void say(const char* role, const std::string& text) {
    messages_.push_back({{"role", role}, {"content", text}});
  }
  std::vector<int32_t> prompt() const {
    return chats_->encode_whole(chats_->render(messages_, {}, {}));
  }
  // A long conversation forgets its oldest exchange, not what the system said.
  std::vector<int32_t> prompt_that_fits() {
    std::vector<int32_t> tokens = prompt();
    const size_t first = messages_[0]["role"] == "system" ? 1 : 0;
    while (int64_t(tokens.size()) >= sequence_.context() && messages_.size() > first + 2) {
      messages_.erase(first), messages_.erase(first);
      tokens = prompt();
    }
    return tokens;
  }
  language::Answer write(const std::vector<int32_t>& prompt) {
    const auto show = [&](const language::AnswerPiece& piece) {
      if (!o_.json) std::cout << shown(piece.text) << std::flush;
      return !os::interrupted();
    };
    return language::generate(sequence_, prompt,
                              {.tokens = o_.tokens,
                               .sampling = o_.sampling,
                               .stop = o_.stop,
                               .grammar = grammar_,
                               .on_piece = show,
                               .draft_tokens = o_.draft.count(),
                               .draft = draft_ ? &*draft_ : nullptr,
                               .keep = o_.keep});
  }

  // The first token belongs to the prompt's time.
  static double speed(const language::Answer& a) {
    return a.tokens.size() < 2 ? 0 : per_second(a.tokens.size() - 1, a.seconds);
  }
  static void show_speed(const language::Answer& a) {
    const Style style = Style::of_stderr();
    std::cout << "\n" << std::flush;
    std::cerr << fmt::format("{}{} tokens, {:.1f} a second; {} of the prompt, {:.1f} a second{}\n",
                             style.dim, a.tokens.size(), speed(a), a.prompt_tokens,
                             per_second(a.prompt_tokens, a.prompt_seconds), style.plain);
  }
  void print(const language::Answer& a) const {
    print_json({{"event", "answer"},
                {"device", device_},
                {"model", o_.model.path},
                {"text", a.text},
                {"tokens", a.tokens},
                {"finish", finish_name(a.finish)},
                {"prompt_tokens", a.prompt_tokens},
                {"prompt_tokens_per_second", per_second(a.prompt_tokens, a.prompt_seconds)},
                {"tokens_per_second", speed(a)},
                {"seconds_to_first_token", a.prompt_seconds},
                {"kernels_compiled", engine::counters().kernels_compiled.load()}});
  }

  const ConversationOptions& o_;
  Grammar grammar_;
  std::string device_;
  language::Model model_;
  language::Sequence sequence_;
  std::optional<language::Sequence> draft_;
  std::optional<text::ChatPrompts> chats_;
  Json messages_;
};

void greet(const language::Description& d) {
  const Style style = Style::of_stderr();
  std::cerr << fmt::format("{}{} ({}, {:.0f} million parameters). /reset forgets, /exit ends.{}\n",
                           style.dim, printable(d.name), d.architecture, double(d.parameters) / 1e6,
                           style.plain);
}

void converse(Conversation& conversation) {
  greet(conversation.model().description());
  std::string line;
  while (!os::interrupted() && (std::cerr << "> " << std::flush, std::getline(std::cin, line))) {
    if (line == "/exit") return;
    if (line == "/reset") {
      conversation.reset();
    } else if (!line.empty()) {
      conversation.ask(line);
    }
  }
}

int chat(const ConversationOptions& o) {
  os::catch_interrupts();
  Conversation conversation(o);
  if (o.prompt.empty()) {
    converse(conversation);
  } else {
    conversation.ask(o.prompt);
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
  add_setting(c, "--typical-p", s.typical_p,
              "Of tokens that surprise as is to be expected, with this probability together", "F",
              between(0.01, 1));
  add_setting(c, "--repeat-penalty", s.repeat_penalty,
              "What logits of tokens that occur are divided by", "F", between(0.01, 100));
  add_setting(c, "--seed", s.seed, "Of sampling", "N");
}

}  // namespace

void add_chat_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand("chat", "A conversation with a language model");
  auto o = std::make_shared<ConversationOptions>();
  add_model_choice(*c, o->model);
  c->add_option("--prompt", o->prompt, "One question; without it they are read line by line")
      ->type_name("TEXT");
  CLI::Option* system =
      c->add_option("--system", o->system, "What the model is told first")->type_name("TEXT");
  c->add_flag("--raw", o->raw, "A prompt is a text to go on with; no chat template is used")
      ->excludes(system);
  add_setting(*c, "--tokens", o->tokens, "At most so many in an answer; -1: what the context holds",
              "N", CLI::Range(int64_t(-1), int64_t(1) << 30));
  add_setting(*c, "--context", o->context, "Tokens that fit; 0: the model's, at most 4096", "N",
              CLI::NonNegativeNumber);
  add_cache_option(*c, o->cache);
  add_setting(*c, "--keep", o->keep,
              "An answer that outgrows the context goes on, and the older half of what follows so "
              "many first tokens is forgotten; -1: it ends",
              "N", CLI::Range(int64_t(-1), int64_t(1) << 30));
  c->add_option("--stop", o->stop, "A text that ends an answer; may be repeated")
      ->type_name("TEXT");
  CLI::Option* grammar =
      c->add_option("--grammar", o->grammar, "Answers are what this grammar (GBNF) says")
          ->type_name("FILE");
  c->add_option("--json-schema", o->json_schema, "Answers are JSON of this schema")
      ->type_name("FILE")
      ->excludes(grammar);
  add_sampling(*c, o->sampling);
  add_draft_options(*c, o->draft);
  add_device_option(*c, o->device);
  c->add_flag("--json", o->json,
              "A JSON object for each answer: text, token ids, tokens per second");
  c->footer(
      "Examples:\n"
      "  tuff chat SmolLM2-135M-Instruct.Q4_1.gguf\n"
      "  tuff chat MODEL.gguf --prompt \"Why is the sky blue?\" --temperature 0 --json\n"
      "  tuff chat MODEL.gguf --prompt \"Name a city\" --json-schema city.json");
  c->callback([o, &chosen] { chosen = [o] { return chat(*o); }; });
}

}  // namespace tuff::cli
