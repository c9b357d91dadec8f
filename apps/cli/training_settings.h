// Which settings a training takes: those of the checkpoint that it goes on from, else those of the
// command line. Called by the commands below `tuff train`. Must never know a model.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "cli/command.h"
#include "models/checkpoint.h"

namespace tuff::cli {

// Names of the options that were given, without their dashes.
inline std::set<std::string> given_options(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::Option* o : command.get_options()) {
    if (o->count() > 0) names.insert(o->get_single_name());
  }
  return names;
}

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

}  // namespace tuff::cli
