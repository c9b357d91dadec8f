// What every command of the program `tuff` shares: exit codes, usage errors, registration. Called
// by main.cpp and the commands. Must never compute anything.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

namespace tuff::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoDevice = 3;       // of `tuff check`
inline constexpr int kExitInterrupted = 130;  // as a shell reports SIGINT

// A value of an option that does not fit: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the parsed command line asks for; returns the exit code, throws Error or UsageError.
using Action = std::function<int()>;

// As CLI::Range, which lets NaN pass.
CLI::Validator between(double low, double high);

// --device, of every command that computes.
void add_device_option(CLI::App& command, std::string& device);
// An option whose help shows the value that it has.
template <class Value>
CLI::Option* add_setting(CLI::App& command, const std::string& name, Value& value,
                         const std::string& text, const std::string& type,
                         const CLI::Validator& check = {}) {
  CLI::Option* option = command.add_option(name, value, text);
  return option->check(check)->capture_default_str()->type_name(type);
}

// One line on standard error, whatever a compiler or driver may have said.
void print_error(const std::string& text);
void print_warning(const std::string& text);

void add_devices_command(CLI::App& app, Action& chosen);
void add_bringup_command(CLI::App& app, Action& chosen);
void add_cache_command(CLI::App& app, Action& chosen);
void add_train_command(CLI::App& app, Action& chosen);
void add_finetune_command(CLI::App& app, Action& chosen);
void add_generate_command(CLI::App& app, Action& chosen);
void add_chat_command(CLI::App& app, Action& chosen);
void add_perplexity_command(CLI::App& app, Action& chosen);
void add_merge_command(CLI::App& app, Action& chosen);
void add_quantize_command(CLI::App& app, Action& chosen);
void add_serve_command(CLI::App& app, Action& chosen);
void add_check_command(CLI::App& app, Action& chosen);
void add_bench_command(CLI::App& app, Action& chosen);
void add_tune_command(CLI::App& app, Action& chosen);
void add_gpu_command(CLI::App& app, Action& chosen);
void add_emu_command(CLI::App& app, Action& chosen);
void add_inspect_command(CLI::App& app, Action& chosen);
void add_tokenize_command(CLI::App& app, Action& chosen);
void add_convert_command(CLI::App& app, Action& chosen);
void add_run_command(CLI::App& app, Action& chosen);
void add_docs_command(CLI::App& app, Action& chosen);

}  // namespace tuff::cli
