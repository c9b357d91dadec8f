#include "cli/application.h"

#include <cstdio>
#include <new>
#include <optional>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/device.h"
#include "engine/search/tuned.h"

namespace tuff::cli {
namespace {

// The exit code of a finished command line (help, version, usage error), or none.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    print_error(e.what());
    const CLI::App* at = &app;
    std::string command = "tuff";
    for (auto subs = at->get_subcommands(); !subs.empty(); subs = at->get_subcommands()) {
      at = subs[0];
      command += " " + at->get_name();
    }
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

// Who names the file wants it: what cannot be read is an error here, a warning with TUFF_TUNED.
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
  add_check_command(app, chosen);
  add_bench_command(app, chosen);
  add_tune_command(app, chosen);
  add_emu_command(app, chosen);
  add_inspect_command(app, chosen);
  add_convert_command(app, chosen);
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
  const int code = run_action([&] { return tuned.empty() ? chosen() : run_tuned(tuned, chosen); });
  engine::close_devices();
  return flushed(code);
}

}  // namespace tuff::cli
