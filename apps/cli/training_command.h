// What `tuff train` and `tuff finetune` have in common: options, checkpoints that are gone on from,
// the curve, exit codes. Called by those commands. Must never know a model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/check.h"
#include "base/os.h"
#include "cli/command.h"
#include "cli/training_display.h"
#include "models/checkpoint.h"

namespace tuff::cli {

struct RunOptions {
  std::string curve, folder;
  bool json = false;
  std::set<std::string> given;  // options, without their dashes

  // --curve, else a file in --out, else (for people only) one in the current folder.
  std::string curve_path(const char* name) const {
    if (!curve.empty()) return curve;
    if (!folder.empty()) return (std::filesystem::path(folder) / name).string();
    return json ? "" : name;
  }
};

void add_run_options(CLI::App& command, RunOptions& o, models::TrainingOptions& training,
                     uint32_t& seed, const char* out_text = "Folder of the loss curve, made if it is "
                                                            "not there");
std::set<std::string> given_options(const CLI::App& command);  // without their dashes
// What every training does first. Returns the file of the curve, which is found not to be writable
// before the training, so that hours are not lost at its end.
std::string prepare(const RunOptions& o, const char* curve_name);
// The curve, then the exit code: a state that was asked for and is not there is a failure, even
// where the user has interrupted the training to get it.
int finish(const RunOptions& o, const std::string& curve, const models::TrainingReport& report);

// The range of a setting, by its option's name without the dashes.
template <class Training>
models::SettingRange range_of(const std::string& setting) {
  Training training;
  std::optional<models::SettingRange> found;
  for_each_setting(training, [&](const char* name, auto&, models::SettingRange range) {
    if (name == setting) found = range;
  });
  return found.value();
}

// Overwrites `training` with the settings of a checkpoint. An option that was given has to agree
// with it (UsageError), but for the number of steps, which may be another.
template <class Training>
void take_settings(Training& training, const models::Checkpoint& checkpoint,
                   const std::set<std::string>& given) {
  for_each_setting(training, [&]<class T>(const char* name, T& value, models::SettingRange range) {
    const T saved = checkpoint.setting<T>(name, range);
    const bool chosen = given.contains(name);
    if (chosen && std::string(name) == "steps") return;
    if (chosen && value != saved)
      throw UsageError(fmt::format("--{} {}: {} was trained with {}; leave the option out", name,
                                   models::setting_text(value), checkpoint.path(),
                                   models::setting_text(saved)));
    value = saved;
  });
}

template <class Training>
CLI::Option* add_count(CLI::App& command, const std::string& setting, uint32_t& value,
                       const std::string& text) {
  const models::SettingRange range = range_of<Training>(setting);
  return add_setting(command, "--" + setting, value, text, "N",
                     CLI::Range(uint32_t(range.least), uint32_t(range.most)));
}

template <class Training>
CLI::Validator in_range_of(const std::string& setting) {
  const models::SettingRange range = range_of<Training>(setting);
  return between(range.least, range.most);
}

// Trains, then asks the model something. An error that an interrupt caused (it reaches the
// compilers too) is the interrupt.
template <class Trainer, class Function>
void run_training(Trainer& trainer, TrainingDisplay& display, Function ask) {
  try {
    trainer.run(display);
    display.bar().clear();
    ask();
  } catch (const Error&) {
    if (!os::interrupted()) throw;
  }
  display.bar().clear();
}

// The settings of the checkpoint that is resumed, if there is one.
template <class Training>
void take_resumed(Training& training, const RunOptions& o, const char* task) {
  const std::string& path = training.checkpoints.resume;
  if (path.empty()) return;
  take_settings(training, models::Checkpoint(path, task, training.device), o.given);
}

template <class Options>
void choose(CLI::App* command, const std::shared_ptr<Options>& o, int (*train)(Options),
            Action& chosen) {
  command->callback([=, &chosen] {
    o->run.given = given_options(*command);
    chosen = [=] {
      os::catch_interrupts();
      return train(*o);
    };
  });
}

}  // namespace tuff::cli
