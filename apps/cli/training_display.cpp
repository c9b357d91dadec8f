#include "cli/training_display.h"

#include <cstdio>
#include <map>

#include "base/check.h"
#include "base/os.h"
#include "cli/command.h"

namespace tuff::cli {

void TrainingDisplay::on_step(const models::StepRecord& r) {
  if (json_) {
    print_json({{"event", "step"},
                {"step", r.step},
                {"loss", r.loss},
                {"ms", r.ms},
                {"host_us", r.host_us}});
  }
  bar_.update(r.step, [&] {
    return fmt::format("step {}/{}  loss {:.4f}  {:.1f} ms/step", r.step, steps_, r.loss, r.ms);
  });
}

void TrainingDisplay::on_validation(const models::ValidationRecord& r) {
  if (json_) {
    print_json({{"event", "validation"}, {"step", r.step}, {"val_loss", r.loss}});
    return;
  }
  bar_.clear();
  fmt::print("step {:>6}  validation loss {:.4f}\n", r.step, r.loss);
  std::fflush(stdout);
}

void TrainingDisplay::on_checkpoint(const std::string& path, uint32_t steps_done) {
  if (json_) {
    print_json({{"event", "checkpoint"}, {"step", steps_done}, {"file", path}});
    return;
  }
  bar_.clear();
  fmt::print("step {:>6}  saved to {}\n", steps_done, path);
  std::fflush(stdout);
}

// On standard error in any case, where the user who is to make room looks.
void TrainingDisplay::on_checkpoint_failed(const std::string& path, uint32_t steps_done,
                                           const std::string& error) {
  if (json_)
    print_json(
        {{"event", "checkpoint_failed"}, {"step", steps_done}, {"file", path}, {"error", error}});
  bar_.clear();
  if (steps_done < steps_ && !os::interrupted())
    print_error(error + "; the training goes on, and the next checkpoint is tried");
}

void TrainingDisplay::on_not_finite(uint32_t steps_done, double loss, const std::string& weights) {
  if (json_)
    print_json({{"event", "not_finite"},
                {"step", steps_done},
                {"loss", fmt::format("{}", loss)},
                {"weights", weights}});
  bar_.clear();
  print_warning(
      fmt::format("step {}: the loss is {}; weights: {}; a smaller learning rate may help",
                  steps_done, loss, weights));
}

bool TrainingDisplay::stop_requested() { return os::interrupted(); }
bool QuietObserver::stop_requested() { return os::interrupted(); }

Json done_line(const std::string& task, const models::TrainingReport& r) {
  const models::CompileTimes& c = r.compile;
  Json line{{"event", "done"},
            {"task", task},
            {"device", r.device},
            {"description", r.description},
            {"driver", r.driver},
            {"steps", r.steps.size()},
            {"resumed_at", r.resumed_at},
            {"interrupted", r.interrupted},
            {"out_of_time", r.out_of_time},
            {"parameters", r.parameter_count},
            {"train_loss", r.steps.empty() ? Json() : Json(r.steps.back().loss)}};
  if (!r.unsaved.empty()) line["unsaved"] = r.unsaved;
  if (!r.validations.empty()) line["val_loss"] = r.validations.back().loss;
  const Json rest{{"step_ms_median", r.step_ms_median()},
                  {"host_us_median", r.host_us_median()},
                  {"kernels_per_step", r.kernels_per_step},
                  {"submits_per_step", r.submits_per_step},
                  {"compile_ms", c.total_ms()},
                  {"schedule_ms", c.schedule_ms},
                  {"lower_ms", c.lower_ms},
                  {"render_ms", c.render_ms},
                  {"compiler_ms", c.compiler_ms},
                  {"load_ms", c.load_ms},
                  {"kernels_compiled", c.kernels_compiled},
                  {"kernels_from_disk", c.kernels_from_disk},
                  {"seconds", r.seconds}};
  line.update(rest);
  return line;
}

void print_summary(const models::TrainingReport& r) {
  const Style style = Style::of_stdout();
  const models::CompileTimes& c = r.compile;
  fmt::print("\n{}{}{} steps of {} parameters on {} ({}, {}) in {:.1f} s\n", style.bold,
             r.steps_of_this_run(), style.plain, r.parameter_count, r.device,
             r.description.substr(0, r.description.find(" [")), r.driver, r.seconds);
  if (r.resumed_at) fmt::print("after {} steps of an earlier run\n", r.resumed_at);
  if (r.out_of_time) fmt::print("the time of --seconds was over before the last step\n");
  if (r.steps.empty()) return;
  fmt::print("loss {:.4f}", r.steps.back().loss);
  if (!r.validations.empty()) fmt::print(", validation loss {:.4f}", r.validations.back().loss);
  if (r.steps_of_this_run() == 0) return fmt::print("\n");
  fmt::print(
      "\n{:.2f} ms a step, of which the host works {:.0f} us to launch {} kernels in {} "
      "submission{}\n",
      r.step_ms_median(), r.host_us_median(), r.kernels_per_step, r.submits_per_step,
      r.submits_per_step == 1 ? "" : "s");
  fmt::print(
      "compiling took {:.0f} ms: schedule {:.0f}, lower {:.0f}, render {:.0f}, compiler "
      "{:.0f}, load {:.0f}; {} kernels compiled, {} found on disk\n",
      c.total_ms(), c.schedule_ms, c.lower_ms, c.render_ms, c.compiler_ms, c.load_ms,
      c.kernels_compiled, c.kernels_from_disk);
}

std::string loss_csv(const models::TrainingReport& report) {
  std::map<uint32_t, std::pair<std::string, std::string>> rows;
  for (const models::StepRecord& r : report.steps) rows[r.step].first = fmt::format("{}", r.loss);
  for (const models::ValidationRecord& r : report.validations)
    rows[r.step].second = fmt::format("{}", r.loss);
  std::string out = "step,loss,validation_loss\n";
  for (const auto& [step, losses] : rows)
    out += fmt::format("{},{},{}\n", step, losses.first, losses.second);
  return out;
}

}  // namespace tuff::cli
