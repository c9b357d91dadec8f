#include "cli/language_model.h"

#include <ranges>

#include <fmt/ranges.h>
#include <tuff/adapter.h>

#include "cli/command.h"
#include "cli/terminal.h"

namespace tuff::cli {

void add_model_choice(CLI::App& command, ModelChoice& choice) {
  command.add_option("model", choice.path, "A GGUF file, or a folder of Hugging Face's")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("--lora", choice.adapter, "An adapter, as `tuff finetune` and PEFT write them")
      ->type_name("DIR");
}

void add_draft_options(CLI::App& command, DraftChoice& choice) {
  add_setting(command, "--draft-tokens", choice.tokens,
              "Tokens that are tried with each one, which is faster where they are right: those "
              "that followed before, or --draft's",
              "N", CLI::Range(int64_t(0), int64_t(7)));
  command
      .add_option("--draft", choice.path,
                  fmt::format("A smaller model with the same vocabulary, which proposes tokens ({} "
                              "unless --draft-tokens says how many)",
                              DraftChoice::kUsual))
      ->type_name("MODEL");
}

std::optional<language::Model> open_draft(const DraftChoice& choice, const std::string& device) {
  if (choice.path.empty()) return {};
  return language::Model::open(choice.path, {.device = device});
}

void add_cache_option(CLI::App& command, std::string& cache) {
  add_setting(command, "--cache", cache,
              "How keys and values are kept: f16, bf16, f32, or q8_0 for half the memory of f16",
              "TYPE", CLI::IsMember({"f16", "bf16", "f32", "q8_0"}));
}

language::Model open_model(const ModelChoice& choice, const std::string& device) {
  const language::Model model = language::Model::open(choice.path, {.device = device});
  if (choice.adapter.empty()) return model;
  return model.with_adapter(language::Adapter::open(choice.adapter, model));
}

std::string written_text(const std::string& to, const language::Quantized& done) {
  constexpr double kMib = 1 << 20;
  const auto types = done.tensors | std::views::transform([](const auto& entry) {
                       return fmt::format("{} {}", entry.second, entry.first);
                     });
  return fmt::format("{}: {:.1f} MiB of weights, from {:.1f}; tensors: {}", printable(to),
                     double(done.bytes) / kMib, double(done.bytes_before) / kMib,
                     fmt::join(types, ", "));
}

void add_type_option(CLI::App& command, std::string& type) {
  command
      .add_option("--type", type,
                  "Weights that have changed are written as this type of `tuff quantize`, those of "
                  "a folder as f32, f16 or bf16 (default: as each was; f16 for one that tuff does "
                  "not write)")
      ->type_name("TYPE");
}

}  // namespace tuff::cli
