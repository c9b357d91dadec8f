// `tuff quantize`: a language model with its weights in another type.
#include <memory>

#include <tuff/language.h>

#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/write_progress.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

struct QuantizeCommandOptions {
  std::string from, to, type, device;
  bool force = false;
};

int quantize(const QuantizeCommandOptions& o) {
  language::Quantized done;
  const int code = write_with_bar("quantize", o.to, [&](const auto& progress) {
    done = language::quantize(o.from, o.to, o.type,
                              {.device = engine::canonical_device(o.device), .overwrite = o.force,
                               .progress = progress});
  });
  if (code == kExitOk) fmt::print("{}\n", written_text(o.to, done));
  return code;
}

}  // namespace

void add_quantize_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "quantize",
      "Writes a language model with its weights in another type; norms and biases stay as they "
      "are");
  auto o = std::make_shared<QuantizeCommandOptions>();
  c->add_option("from", o->from, "A GGUF file; the first one of a model in several")
      ->required()
      ->type_name("IN");
  c->add_option("to", o->to, "The GGUF file to write; whole, or as it was before")
      ->required()
      ->type_name("OUT");
  c->add_option("--type", o->type,
                "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q4_k_s, q5_k, "
                "q5_k_s or q6_k; types of k mix others in, as llama.cpp's ..._K_M and ..._K_S")
      ->required()
      ->type_name("TYPE");
  c->add_flag("--force", o->force, "Writes over a file that is there already");
  add_device_option(*c, o->device);
  c->footer(
      "Examples:\n"
      "  tuff quantize model-f16.gguf model-q4_k.gguf --type q4_k\n"
      "  tuff quantize model-00001-of-00003.gguf model.gguf --type q8_0 --force");
  c->callback([o, &chosen] { chosen = [o] { return quantize(*o); }; });
}

}  // namespace tuff::cli
