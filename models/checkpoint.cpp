#include "models/checkpoint.h"

#include <charconv>
#include <type_traits>

#include "base/check.h"

namespace tuff::models {
namespace {

// Counts of this process' steps are 32 bits wide.
constexpr const char* kStepKey = "step";
constexpr const char* kPositionKey = "data_position";
constexpr const char* kStepsSetting = "setting.steps";

template <class T>
Tensor row(const std::vector<T>& values, const std::string& device) {
  return Tensor::from(values, {int64_t(values.size())}, {.device = device});
}

void set_history(TensorDict& to, const TrainingReport& report) {
  std::vector<float> losses;
  std::vector<int64_t> validated;
  std::vector<double> validations;
  for (const StepRecord& r : report.steps) losses.push_back(r.loss);
  for (const ValidationRecord& r : report.validations) {
    validated.push_back(r.step);
    validations.push_back(r.loss);
  }
  to.set("history.loss", row(losses, report.device));
  to.set("history.validation_step", row(validated, report.device));
  to.set("history.validation_loss", row(validations, report.device));
}

// What the constructor of vectors cannot know: whether such a tensor has this type and one axis.
template <class T>
std::vector<T> values_of(const TensorDict& from, const char* name) {
  const Tensor t = from.at(name);
  if (t.dim() != 1) fail<ShapeError>("'{}' has {} axes instead of 1", name, t.dim());
  return t.to_vector<T>();
}

void restore_history(const TensorDict& from, uint32_t steps, TrainingReport& report) {
  const auto losses = values_of<float>(from, "history.loss");
  const auto validated = values_of<int64_t>(from, "history.validation_step");
  const auto validations = values_of<double>(from, "history.validation_loss");
  if (losses.size() != steps || validated.size() != validations.size())
    fail<InvalidArgument>("after {} steps it has {} losses, and {} validations at {} steps", steps,
                          losses.size(), validations.size(), validated.size());
  for (uint32_t i = 0; i < steps; ++i) report.steps.push_back({.step = i + 1, .loss = losses[i]});
  for (size_t i = 0; i < validated.size(); ++i)
    report.validations.push_back({static_cast<uint32_t>(validated[i]), validations[i]});
  report.resumed_at = steps;
}

template <class T>
T number_of(const std::string& text, const std::string& what, const std::string& path) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    fail<InvalidArgument>("{}: its {} is '{}', which is no such number", path, what, text);
  return value;
}

}  // namespace

void save_checkpoint(const std::string& path, TrainingTask& task, const TrainingReport& report) {
  TensorDict file;
  file.set_state("model", task.model_state());
  file.set_state("optimizer", task.optimizer().state_dict());
  file.set("rng_state", Tensor::get_rng_state(report.device));
  set_history(file, report);
  const std::string step = std::to_string(report.steps.size());
  file.set_metadata(kCheckpointVersionKey, {kCheckpointVersion});
  file.set_metadata(kStepKey, {step});
  // Batches are numbered and drawn by seed and number: the next one is all there is to know.
  file.set_metadata(kPositionKey, {step});
  for (const auto& [key, value] : task.identity()) file.set_metadata(key, value);
  save(path, file);
}

Checkpoint::Checkpoint(const std::string& path, const std::string& task, const std::string& device)
    : path_(path), tensors_(load(path, {.device = device})) {
  if (!tensors_.metadata(kCheckpointVersionKey))
    fail<InvalidArgument>(
        "{}: no checkpoint of a training (its metadata has no '{}'); `tuff train --save` writes "
        "them",
        path_, kCheckpointVersionKey);
  if (text(kCheckpointVersionKey) != kCheckpointVersion)
    fail<InvalidArgument>("{}: a checkpoint of version {}; this tuff reads version {}", path_,
                          text(kCheckpointVersionKey), kCheckpointVersion);
  if (text("task") != task)
    fail<InvalidArgument>("{}: a checkpoint of the training '{}', not '{}'", path_, text("task"),
                          task);
  step_ = number_of<uint32_t>(text(kStepKey), kStepKey, path_);
  const auto position = number_of<uint32_t>(text(kPositionKey), kPositionKey, path_);
  if (position != step_)
    fail<InvalidArgument>("{}: after step {} the next batch is {}, not {}", path_, step_, step_,
                          position);
}

const std::string& Checkpoint::text(const std::string& key) const {
  const MetadataValue* found = tensors_.metadata(key);
  const auto* text = found ? std::get_if<std::string>(&found->value) : nullptr;
  if (!text) fail<InvalidArgument>("{}: its metadata has no '{}'", path_, key);
  return *text;
}

template <class T>
T Checkpoint::setting(const std::string& name, SettingRange range) const {
  using Number = std::conditional_t<std::is_same_v<T, bool>, uint32_t, T>;
  const auto value = number_of<Number>(text("setting." + name), name, path_);
  if (!(double(value) >= range.least && double(value) <= range.most))
    fail<InvalidArgument>("{}: its {} is {}; it has to be from {} to {}", path_, name, value,
                          range.least, range.most);
  return T(value);
}
template uint32_t Checkpoint::setting(const std::string& name, SettingRange range) const;
template double Checkpoint::setting(const std::string& name, SettingRange range) const;
template bool Checkpoint::setting(const std::string& name, SettingRange range) const;

std::string setting_text(uint32_t value) { return std::to_string(value); }
std::string setting_text(double value) { return fmt::format("{}", value); }
std::string setting_text(bool value) { return value ? "1" : "0"; }

void Checkpoint::require_identity(const Metadata& wanted) const {
  for (const auto& [key, value] : wanted) {
    if (key == kStepsSetting) continue;
    const std::string& there = text(key);
    const std::string& here = std::get<std::string>(value.value);
    if (there != here)
      fail<InvalidArgument>("{}: the checkpoint's {} is {}, this training's is {}", path_, key,
                            there, here);
  }
}

void Checkpoint::restore(TrainingTask& task, TrainingReport& report) const {
  require_identity(task.identity());
  const auto named = [&](const char* part, const Error& e) {
    return fmt::format("{}: {}: {}", path_, part, e.what());
  };
  const auto restore_part = [&](const char* part, const auto& restore) {
    try {
      restore();
    } catch (const ShapeError& e) {
      throw ShapeError(named(part, e));
    } catch (const InvalidArgument& e) {
      throw InvalidArgument(named(part, e));
    }
  };
  restore_part("model", [&] { nn::load_state_dict(task.model_state(), tensors_.state("model")); });
  restore_part("optimizer", [&] { task.optimizer().load_state_dict(tensors_.state("optimizer")); });
  restore_part("random numbers",
               [&] { Tensor::set_rng_state(tensors_.at("rng_state"), report.device); });
  restore_part("losses", [&] { restore_history(tensors_, step_, report); });
}

}  // namespace tuff::models
