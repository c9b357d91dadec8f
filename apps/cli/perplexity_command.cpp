// `tuff perplexity`: how surprised a language model is by a text.
#include <cstdio>
#include <memory>

#include <tuff/language.h>

#include "base/json.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/terminal.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

struct PerplexityOptions {
  ModelChoice model;
  std::string text, device;
  int64_t context = 512, pieces = 0;
  bool json = false;
};

int perplexity(const PerplexityOptions& o) {
  os::catch_interrupts();
  const std::string device = engine::canonical_device(o.device);
  const language::Model model = open_model(o.model, device);
  const std::vector<uint8_t> text = os::read_file(o.text);
  std::vector<int32_t> tokens =
      model.tokenizer().encode({reinterpret_cast<const char*>(text.data()), text.size()});
  if (const size_t most = size_t(o.pieces * o.context); o.pieces > 0 && most < tokens.size())
    tokens.resize(most);
  std::optional<ProgressBar> bar;
  const auto progress = [&](int64_t done, int64_t all, double value) {
    if (!bar) bar.emplace("reading", uint64_t(all));
    bar->update(uint64_t(done), [&] { return fmt::format("perplexity {:.3f}", value); });
    return !os::interrupted();
  };
  const language::Perplexity p =
      language::perplexity(model, tokens, {.context = o.context, .on_piece = progress});
  bar.reset();
  if (o.json) {
    print_json({{"event", "perplexity"}, {"device", device}, {"model", o.model.path}, {"text", o.text},
                {"perplexity", p.value}, {"error", p.error}, {"tokens", p.tokens},
                {"context", o.context}, {"interrupted", os::interrupted()}});
  } else {
    fmt::print("perplexity {:.4f} +- {:.4f}, of {} tokens\n", p.value, p.error, p.tokens);
  }
  return os::interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void add_perplexity_command(CLI::App& app, Action& chosen) {
  CLI::App* c =
      app.add_subcommand("perplexity", "How surprised a language model is by a text");
  auto o = std::make_shared<PerplexityOptions>();
  add_model_choice(*c, o->model);
  c->add_option("--text", o->text, "A file of text")->required()->type_name("FILE");
  add_setting(*c, "--context", o->context,
              "Tokens of a piece; the second half of each is predicted", "N",
              CLI::Range(int64_t(8), int64_t(1) << 20));
  add_setting(*c, "--pieces", o->pieces, "At most so many; 0: all of the text", "N",
              CLI::NonNegativeNumber);
  add_device_option(*c, o->device);
  c->add_flag("--json", o->json, "One JSON object at the end");
  c->footer("Examples:\n  tuff perplexity SmolLM2-135M-Instruct.Q4_1.gguf --text README.md");
  c->callback([o, &chosen] { chosen = [o] { return perplexity(*o); }; });
}

}  // namespace tuff::cli
