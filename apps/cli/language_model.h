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

// --cache: how keys and values are kept, as language::cache_type() takes it.
void add_cache_option(CLI::App& command, std::string& cache);
// The positional MODEL, and --lora.
void add_model_choice(CLI::App& command, ModelChoice& choice);
language::Model open_model(const ModelChoice& choice, const std::string& device);

}  // namespace tuff::cli
