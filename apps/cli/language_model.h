// The language model that a command is given, with or without an adapter. Called by the commands
// that run one. Must never know what they do with it.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <tuff/language.h>

namespace tuff::cli {

struct ModelChoice {
  std::string path, adapter;  // "": none
};

// The positional MODEL, and --lora.
void add_model_choice(CLI::App& command, ModelChoice& choice);
language::Model open_model(const ModelChoice& choice, const std::string& device);
// A line for people about a model that was written.
std::string written_text(const std::string& to, const language::Quantized& done);
// What Model::save() writes changed weights in.
void add_type_option(CLI::App& command, std::string& type);

}  // namespace tuff::cli
