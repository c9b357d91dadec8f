// The language model that a command is given, with or without an adapter. Called by the commands
// that run one. Must never know what they do with it.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <tuff/language.h>

namespace tuff::cli {

struct ModelChoice {
  std::string path, adapter;  // "": none
};

// What is tried beside each token that is drawn.
struct DraftChoice {
  std::string path;    // of a smaller model; "": tokens that followed before
  int64_t tokens = 0;  // 0: none, or as many as usual of a model
  int64_t count() const { return tokens == 0 && !path.empty() ? kUsual : tokens; }
  static constexpr int64_t kUsual = 4;
};

// --draft and --draft-tokens.
void add_draft_options(CLI::App& command, DraftChoice& choice);
std::optional<language::Model> open_draft(const DraftChoice& choice, const std::string& device);
// --cache: how keys and values are kept, as language::cache_type() takes it.
void add_cache_option(CLI::App& command, std::string& cache);
// The positional MODEL, and --lora.
void add_model_choice(CLI::App& command, ModelChoice& choice);
language::Model open_model(const ModelChoice& choice, const std::string& device);
// A line for people about a model that was written.
std::string written_text(const std::string& to, const language::Quantized& done);
// What Model::save() writes changed weights in.
void add_type_option(CLI::App& command, std::string& type);

}  // namespace tuff::cli
