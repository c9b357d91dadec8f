#include "cli/application.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/env.h"
#include "base/nearest.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/device.h"
#include "engine/search/tuned.h"

namespace tuff::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options()) {
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// A word that `command` has no use for: an option or command that there is not, or one too many.
std::string unknown_word(const CLI::App& command, const std::vector<std::string>& words) {
  const auto is_option = [](const std::string& w) { return w.size() > 1 && w[0] == '-'; };
  const auto option = std::ranges::find_if(words, is_option);
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format("there is no option {}{}", name, did_you_mean(name, option_names(command)));
  }
  std::vector<std::string> commands;
  for (const CLI::App* c : command.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(c->get_name());
  if (commands.empty()) return fmt::format("\"{}\" is one argument too many", words[0]);
  return fmt::format("there is no command \"{}\"; there are {}{}", words[0],
                     fmt::join(commands, ", "), did_you_mean(words[0], commands));
}

// What CLI11 says of a word or a command that is missing does not name the word that is there.
std::string usage_error(const CLI::App& command, const CLI::ParseError& e) {
  const std::vector<std::string> words = command.remaining();
  const bool about_words = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr ||
                           dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
  return about_words && !words.empty() ? unknown_word(command, words) : e.what();
}

// The exit code of a finished command line (help, version, usage error), or none.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const CLI::App* at = &app;
    std::string command = "tuff";
    for (auto subs = at->get_subcommands(); !subs.empty(); subs = at->get_subcommands()) {
      at = subs[0];
      command += " " + at->get_name();
    }
    print_error(usage_error(*at, e));
    fmt::print(stderr, "See '{} --help'.\n", command);
    return kExitUsage;
  }
}

int run_action(const Action& action) {
  try {
    return action();
  } catch (const UsageError& e) {
    print_error(e.what());
    return kExitUsage;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& e) {
    // Ctrl-C reaches the compilers that run as children too; their end is no error of its own.
    if (os::interrupted()) {
      fmt::print(stderr, "tuff: interrupted\n");
      return kExitInterrupted;
    }
    print_error(e.what());
  }
  return kExitFailed;
}

// A file that is named as an option is wanted: one that cannot be read is an error here, a warning
// with TUFF_TUNED.
int run_tuned(const std::string& path, const Action& action) {
  engine::TunedSchedules::read(path);
  const EnvOverride file(Env::TUFF_TUNED, path);
  return action();
}

int flushed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_error("standard output cannot be written");
  return code == kExitOk ? kExitFailed : code;
}

}  // namespace

CLI::Validator between(double low, double high) {
  auto check = [low, high](const std::string& text) {
    double value = 0;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return fits ? std::string() : fmt::format("{} is no number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{} - {}]", low, high));
}

void add_device_option(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device,
                  "As `tuff devices` names it; default: TUFF_DEVICE, else the best")
      ->type_name("NAME");
}

void print_error(const std::string& text) {
  constexpr size_t kLongest = 1000;
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  std::string line;
  for (const char c : text.substr(0, kLongest)) {
    if (c != '\n') {
      if (!is_space(c) || !line.ends_with(' ')) line += is_space(c) ? ' ' : c;
    } else if (!line.empty() && line.back() != ' ') {
      line += line.ends_with(':') ? " " : "; ";
    }
  }
  while (line.ends_with(' ') || line.ends_with(';')) line.pop_back();
  fmt::print(stderr, "tuff: {}{}\n", printable(line), text.size() > kLongest ? " ..." : "");
}

void print_warning(const std::string& text) { print_error("warning: " + text); }

int run_program(int argc, const char* const* argv) {
  CLI::App app{"tuff: a tensor engine that trains on any GPU with a Vulkan driver", "tuff"};
  app.set_version_flag("--version", "tuff " TUFF_VERSION);
  app.require_subcommand(1);
  Action chosen;
  std::string tuned;
  app.add_option("--tuned", tuned, "Takes schedules of kernels from a file of `tuff tune`")
      ->type_name("FILE");
  add_devices_command(app, chosen);
  add_bringup_command(app, chosen);
  add_train_command(app, chosen);
  add_generate_command(app, chosen);
  add_chat_command(app, chosen);
  add_perplexity_command(app, chosen);
  add_finetune_command(app, chosen);
  add_merge_command(app, chosen);
  add_quantize_command(app, chosen);
  add_serve_command(app, chosen);
  add_check_command(app, chosen);
  add_bench_command(app, chosen);
  add_tune_command(app, chosen);
  add_gpu_command(app, chosen);
  add_emu_command(app, chosen);
  add_inspect_command(app, chosen);
  add_convert_command(app, chosen);
  add_run_command(app, chosen);
  add_tokenize_command(app, chosen);
  add_cache_command(app, chosen);
  add_docs_command(app, chosen);
  app.footer(
      "Examples:\n"
      "  tuff devices\n"
      "  tuff train gpt --steps 200 --save gpt.safetensors\n"
      "  tuff generate --load gpt.safetensors\n"
      "Every command has examples in its --help.\n"
      "Exit codes: 0 success, 1 a run that failed, 2 wrong usage, 3 no such device (check), 130 "
      "after "
      "Ctrl-C");  // of the program alone: commands inherit what stands before them
  if (const std::optional<int> code = parse(app, argc, argv)) return flushed(*code);
  os::fail_writes_beyond_limits();
  const bool reads_environment = !app.got_subcommand("docs");  // which says what is allowed
  const int code = run_action([&] {
    if (reads_environment) check_environment();
    return tuned.empty() ? chosen() : run_tuned(tuned, chosen);
  });
  engine::close_devices();
  return flushed(code);
}

}  // namespace tuff::cli
