// `tuff generate`: text from a GPT that `tuff train gpt --save` wrote.
#include <cstdio>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/os.h"
#include "cli/command.h"
#include "base/json.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "models/gpt_generator.h"
#include "models/not_finite.h"

namespace tuff::cli {
namespace {

struct GenerateOptions {
  std::string file, prompt, device;
  uint32_t characters = 400, seed = 1;
  double temperature = 0.8;
  bool json = false;
};

// As it is made: a terminal puts the bytes of a character together by itself.
void show(const std::string& bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  std::fflush(stdout);
}

void warn_of_nan(const models::Gpt& model, uint32_t character) {
  print_warning(fmt::format(
      "character {}: the model's logits are nan, so what it writes means nothing; weights: {}",
      character, models::not_finite_text(model.state_dict())));
}

struct Written {
  std::string text;
  uint64_t first_ns = 0;  // until the first character: reading the prompt, compiling
  uint64_t ns = 0;        // without the first two, for which kernels are compiled
};

Written write(models::GptGenerator& generator, const models::SavedGpt& saved, const GenerateOptions& o) {
  Written out;
  bool warned = false;
  uint64_t begin_ns = os::monotonic_ns();
  for (uint32_t i = 0; i < o.characters && !os::interrupted(); ++i) {
    const uint8_t token = generator.write(o.temperature);
    const std::string byte = saved.vocabulary.decode({&token, 1});
    if (generator.drew_from_nan() && !std::exchange(warned, true)) warn_of_nan(saved.model, i + 1);
    out.text += byte;
    if (!o.json) show(byte);
    if (i == 0) out.first_ns = os::monotonic_ns() - begin_ns;
    if (i < 2) begin_ns = os::monotonic_ns();
  }
  out.ns = os::monotonic_ns() - begin_ns;
  return out;
}

void print_done(const GenerateOptions& o, const models::SavedGpt& saved, const Written& written,
                const std::string& device) {
  const models::GptRecipe& r = saved.model.recipe;
  const uint64_t timed = written.text.size() > 2 ? written.text.size() - 2 : 0;
  print_json({{"event", "done"},
              {"device", device},
              {"file", o.file},
              {"prompt", o.prompt},
              {"text", written.text},
              {"characters", written.text.size()},
              {"interrupted", os::interrupted()},
              {"temperature", o.temperature},
              {"seed", o.seed},
              {"context", r.context},
              {"vocabulary", r.vocabulary},
              {"layers", r.layers},
              {"ms_to_first_character", double(written.first_ns) / 1e6},
              {"ms_per_character", timed ? Json(double(written.ns) / 1e6 / double(timed)) : Json()},
              {"kernels_compiled", engine::counters().kernels_compiled.load()}});
}

int generate(const GenerateOptions& o) {
  os::catch_interrupts();
  const std::string device = engine::canonical_device(o.device);
  const models::SavedGpt saved = models::load_gpt(o.file, device);
  std::vector<uint8_t> tokens{models::first_token(saved.vocabulary)};
  if (!o.prompt.empty()) {
    try {
      tokens = saved.vocabulary.encode(o.prompt);
    } catch (const InvalidArgument& e) {
      throw UsageError(fmt::format("--prompt: {}", e.what()));
    }
  }
  models::GptGenerator generator(saved.model, o.seed);
  generator.read(tokens);
  if (!o.json) show(o.prompt);
  const Written written = write(generator, saved, o);
  if (o.json) {
    print_done(o, saved, written, device);
  } else {
    show("\n");
  }
  return os::interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void add_generate_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand("generate",
                                   "Writes text with a GPT that `tuff train gpt --save` has saved");
  auto o = std::make_shared<GenerateOptions>();
  c->add_option("--load", o->file, "A file that `tuff train gpt --save` wrote")
      ->required()
      ->type_name("FILE");
  c->add_option("--prompt", o->prompt,
                "What the text begins with; what lies further back than the context is not seen "
                "(default: a line break, which is not shown)")
      ->type_name("TEXT");
  add_setting(*c, "--chars", o->characters, "Characters to write after the prompt", "N",
              CLI::Range(1u, 100'000'000u));
  add_setting(*c, "--temperature", o->temperature,
              "Of sampling; 0 takes the likeliest character each time", "F", between(0.0, 100.0));
  add_setting(*c, "--seed", o->seed, "Of sampling", "N");
  add_device_option(*c, o->device);
  c->add_flag("--json", o->json, "One JSON object at the end, with the text in it");
  c->footer(
      "Examples:\n"
      "  tuff train gpt --save gpt.safetensors\n"
      "  tuff generate --load gpt.safetensors --prompt \"int main\" --chars 200 --temperature 0.5");
  c->callback([o, &chosen] { chosen = [o] { return generate(*o); }; });
}

}  // namespace tuff::cli
