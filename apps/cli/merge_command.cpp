// `tuff merge`: a language model with an adapter's maps merged into its own.
#include <memory>

#include <tuff/adapter.h>
#include <tuff/language.h>

#include "cli/command.h"
#include "cli/language_model.h"
#include "cli/write_progress.h"
#include "engine/device.h"

namespace tuff::cli {
namespace {

struct MergeOptions {
  ModelChoice model;
  std::string to, type, device;
  bool force = false;
};

int merge(const MergeOptions& o) {
  const language::Model model = open_model(o.model, engine::canonical_device(o.device));
  language::Quantized done;
  const int code = write_with_bar("merge", o.to, [&](const auto& progress) {
    done = model.save(o.to, {.type = o.type, .overwrite = o.force, .progress = progress});
  });
  if (code == kExitOk) fmt::print("{}\n", written_text(o.to, done));
  return code;
}

}  // namespace

void add_merge_command(CLI::App& app, Action& chosen) {
  CLI::App* c = app.add_subcommand(
      "merge",
      "Writes a language model with an adapter (LoRA) merged into its weights; all others are "
      "copied");
  auto o = std::make_shared<MergeOptions>();
  add_model_choice(*c, o->model);
  c->get_option("--lora")->required();
  c->add_option("to", o->to,
                "What to write: a GGUF file of one, a folder of a folder; whole, or as it was "
                "before")
      ->required()
      ->type_name("OUT");
  add_type_option(*c, o->type);
  c->add_flag("--force", o->force, "Writes over files that are there already");
  add_device_option(*c, o->device);
  c->footer(
      "Examples:\n"
      "  tuff merge MODEL.gguf MERGED.gguf --lora my-adapter\n"
      "  tuff merge MODEL.gguf MERGED.gguf --lora my-adapter --type q8_0\n"
      "  tuff merge folder/ merged/ --lora my-adapter --type bf16");
  c->callback([o, &chosen] { chosen = [o] { return merge(*o); }; });
}

}  // namespace tuff::cli
