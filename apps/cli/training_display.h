// Shows a training while it runs and what came of it: JSON lines or text, and its losses as CSV.
// Called by `tuff train`. Must never know a model.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/terminal.h"
#include "models/training.h"

namespace tuff::cli {

class TrainingDisplay final : public models::TrainingObserver {
 public:
  TrainingDisplay(const std::string& what, uint32_t steps, bool json)
      : json_(json), steps_(steps), bar_(what, steps) {}
  void on_step(const models::StepRecord& r) override;
  void on_validation(const models::ValidationRecord& r) override;
  void on_checkpoint(const std::string& path, uint32_t steps_done) override;
  void on_checkpoint_failed(const std::string& path, uint32_t steps_done,
                            const std::string& error) override;
  void on_not_finite(uint32_t steps_done, double loss, const std::string& weights) override;
  bool stop_requested() override;
  ProgressBar& bar() { return bar_; }

 private:
  bool json_;
  uint32_t steps_;
  ProgressBar bar_;
};

// Asks for an end on Ctrl-C and shows nothing.
class QuietObserver final : public models::TrainingObserver {
 public:
  bool stop_requested() override;
};

// The line {"event":"done", ...}; callers append what only they know.
Json done_line(const std::string& task, const models::TrainingReport& report);
// The same for people, on standard output.
void print_summary(const models::TrainingReport& report);

// "step,loss,validation_loss" and a line for each step that has one of them, in nats.
std::string loss_csv(const models::TrainingReport& report);

}  // namespace tuff::cli
