#include "cli/language_model.h"

#include <tuff/adapter.h>

namespace tuff::cli {

void add_model_choice(CLI::App& command, ModelChoice& choice) {
  command.add_option("model", choice.path, "A GGUF file, or a folder of Hugging Face's")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("--lora", choice.adapter, "An adapter, as `tuff finetune` and PEFT write them")
      ->type_name("DIR");
}

language::Model open_model(const ModelChoice& choice, const std::string& device) {
  const language::Model model = language::Model::open(choice.path, {.device = device});
  if (choice.adapter.empty()) return model;
  return model.with_adapter(language::Adapter::open(choice.adapter, model));
}

}  // namespace tuff::cli
