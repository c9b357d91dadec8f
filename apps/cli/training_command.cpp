#include "cli/training_command.h"

#include <filesystem>

#include "base/env.h"
#include "base/os_cache.h"
#include "base/os_stream.h"

namespace tuff::cli {
namespace {

CLI::Validator ends_in_safetensors() {
  auto check = [](const std::string& path) {
    return path.ends_with(".safetensors") ? std::string()
                                          : fmt::format("{} does not end in .safetensors", path);
  };
  return CLI::Validator(check, "");
}

// A cache folder that the user named has to be there; the default one is done without if need be.
// One that cannot be written is read, and one that others may write is warned of and not used.
void require_cache_folder() {
  const std::string folder = env_text(Env::TUFF_CACHE_DIR);
  if (folder.empty() || !env_flag(Env::TUFF_CACHE)) return;
  const std::string why = os::trusted_path(folder, /*make_folders=*/true).refusal;
  if (!why.empty() && !os::is_directory(folder))
    fail<IoError>("TUFF_CACHE_DIR {}: {}; name another folder or set TUFF_CACHE=0", folder, why);
}

}  // namespace

void add_run_options(CLI::App& command, RunOptions& o, models::TrainingOptions& training,
                     uint32_t& seed, const char* out_text) {
  add_device_option(command, training.device);
  add_setting(command, "--seed", seed, "Of initial weights, batches and samples", "N");
  command.add_option("--curve", o.curve, "Write the losses of the steps to this CSV file")
      ->type_name("FILE");
  command.add_option("--out", o.folder, out_text)->type_name("DIR");
  command.add_flag_callback(
      "--no-jit", [&training] { training.jit = false; },
      "Build and schedule every step anew instead of replaying one");
  command
      .add_option("--seconds", training.seconds,
                  "Ends after the step that is done so long after the first one began, as after "
                  "the last of --steps; 0: no limit")
      ->check(between(0.0, 1e9))
      ->type_name("S");
  command.add_flag("--json", o.json,
                   "One JSON object per line; no curve unless --curve or --out is given");
  CLI::Option* save =
      command
          .add_option("--save", training.checkpoints.save,
                      "Writes the state of the training to this .safetensors file at the end, also "
                      "after Ctrl-C; one that cannot be written then is exit code 1")
          ->check(ends_in_safetensors())
          ->type_name("FILE");
  command
      .add_option("--save-every", training.checkpoints.every,
                  "And after each N steps; where that fails the training goes on")
      ->check(CLI::Range(1u, models::kMaxTrainingSteps))
      ->needs(save)
      ->type_name("N");
  command
      .add_option("--resume", training.checkpoints.resume,
                  "Goes on from a file that --save wrote, with its settings and the same losses as "
                  "without a break; --steps may be another number")
      ->type_name("FILE");
}

std::set<std::string> given_options(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::Option* o : command.get_options()) {
    if (o->count() > 0) names.insert(o->get_single_name());
  }
  return names;
}

std::string prepare(const RunOptions& o, const char* curve_name) {
  require_cache_folder();
  if (!o.folder.empty()) os::make_directories(o.folder);
  const std::string curve = o.curve_path(curve_name);
  if (!curve.empty()) os::require_writable(curve);
  return curve;
}

int finish(const RunOptions& o, const std::string& curve, const models::TrainingReport& report) {
  const bool unsaved = !report.unsaved.empty();
  if (unsaved) print_error(report.unsaved);  // the curve may find no room either
  if (!curve.empty() && !report.steps.empty()) {
    os::write_text(curve, loss_csv(report));
    if (!o.json) fmt::print("loss curve: {}\n", curve);
  }
  if (unsaved) return kExitFailed;
  if (!os::interrupted()) return kExitOk;
  fmt::print(stderr, "tuff: interrupted after {} step{}\n", report.steps.size(),
             report.steps.size() == 1 ? "" : "s");
  return kExitInterrupted;
}

}  // namespace tuff::cli
