// The state of a training between two steps in one safetensors file: weights, optimizer, random
// numbers, step, the losses so far, and by which settings and from which data it learns. Called by
// the training loop; `tuff generate` reads such files. Must never know a model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tuff/io.h>

#include "models/training.h"

namespace tuff::models {

// Metadata of a checkpoint; settings by the names of the command line's options stand below
// "setting.", everything is text.
inline constexpr const char* kCheckpointVersionKey = "tuff_checkpoint";
inline constexpr const char* kCheckpointVersion = "1";

// Whole or not at all: see os::OutputFile.
void save_checkpoint(const std::string& path, TrainingTask& task, const TrainingReport& report);

class Checkpoint {
 public:
  // Reads the header. IoError for what cannot be read or is damaged, InvalidArgument for what is no
  // checkpoint, or one of another task than `task`.
  Checkpoint(const std::string& path, const std::string& task, const std::string& device);
  const std::string& path() const { return path_; }
  const TensorDict& tensors() const { return tensors_; }
  uint32_t step() const { return step_; }  // done
  // InvalidArgument for one that is not there.
  const std::string& text(const std::string& key) const;
  // "setting.<name>" as a number; InvalidArgument for one that is not there, is none or is outside
  // of the range.
  template <class T>
  T setting(const std::string& name, SettingRange range) const;
  // Puts model, optimizer and random numbers into the state of the file and the losses so far into
  // the report. InvalidArgument or ShapeError, naming the file, for a training of another model,
  // other settings (the number of steps apart), data or optimizer.
  void restore(TrainingTask& task, TrainingReport& report) const;

 private:
  void require_identity(const Metadata& wanted) const;
  std::string path_;
  TensorDict tensors_;
  uint32_t step_ = 0;
};

// How settings are written, so that they are read back as they were.
std::string setting_text(uint32_t value);
std::string setting_text(double value);
std::string setting_text(bool value);

// Names and values of the settings that `each` walks, below "setting.".
template <class Training>
void append_settings(Metadata& to, const Training& training) {
  Training copy = training;
  for_each_setting(copy, [&](const char* name, auto& value, SettingRange) {
    to.push_back({std::string("setting.") + name, {setting_text(value)}});
  });
}

}  // namespace tuff::models
