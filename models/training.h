// The loop that every trainer shares: one captured step that is replayed, two sets of input tensors
// written in turn, records of what happened. Called by the trainers of this room; its reports by
// cli. Must never know a model or print anything. From the third step on it allocates no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tuff/metadata.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

#include "models/reference_random.h"

namespace tuff::models {

struct StepRecord {
  uint32_t step = 0;  // from 1
  float loss = 0;
  float ms = 0;       // from one loss to the next, batch and waits included
  float host_us = 0;  // of the calling thread to launch the step, waits excluded
};
struct ValidationRecord {
  uint32_t step = 0;  // steps done before it
  double loss = 0;
};

// What happens while a training runs. Calls come from the training's thread.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void on_step(const StepRecord&) {}
  virtual void on_validation(const ValidationRecord&) {}
  virtual void on_checkpoint(const std::string& /*path*/, uint32_t /*steps_done*/) {}
  // One that could not be written, and why. The training goes on.
  virtual void on_checkpoint_failed(const std::string& /*path*/, uint32_t /*steps_done*/,
                                    const std::string& /*error*/) {}
  // Once: after that many steps a loss is nan or inf; what the weights say to it.
  virtual void on_not_finite(uint32_t /*steps_done*/, double /*loss*/,
                             const std::string& /*weights*/) {}
  virtual bool stop_requested() { return false; }
};

// Host time of compiling, in ms, from the engine's counters.
struct CompileTimes {
  double schedule_ms = 0, lower_ms = 0, render_ms = 0, compiler_ms = 0, load_ms = 0;
  uint64_t kernels_compiled = 0, kernels_from_disk = 0;
  double total_ms() const { return schedule_ms + lower_ms + render_ms + compiler_ms + load_ms; }
  static CompileTimes now();  // since the process began
  CompileTimes since(const CompileTimes& before) const;
};

struct TrainingReport {
  std::string device, description, driver;
  uint64_t parameter_count = 0;
  uint32_t resumed_at = 0;        // steps that a checkpoint brought: only their loss is known
  std::vector<StepRecord> steps;  // from the first one on, resumed ones included
  std::vector<ValidationRecord> validations;
  CompileTimes compile;
  uint32_t kernels_per_step = 0, submits_per_step = 0;
  double seconds = 0;  // this run, compiling included
  bool interrupted = false;
  bool out_of_time = false;  // TrainingOptions::seconds were over before the last step
  std::string unsaved;  // why the last checkpoint could not be written; "": it was, or none is kept

  uint32_t steps_of_this_run() const { return uint32_t(steps.size()) - resumed_at; }
  // Over the replayed steps of this run (from the third on); over all if there are fewer. NaN
  // without steps.
  double step_ms_median() const;
  double host_us_median() const;
};

// One model to be trained.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  virtual std::vector<Tensor> make_inputs() = 0;  // the tensors of one batch, realized
  // Writes batch `number` (from 0; batches_per_step() of them are a step) into them with copy_from.
  // Allocates nothing.
  virtual void write_batch(uint32_t number, std::vector<Tensor>& inputs) = 0;
  // So many batches, one after the other, are a step by the mean of their gradients.
  virtual uint32_t batches_per_step() const { return 1; }
  // What the norm of all gradients together is scaled down to; 0: never.
  virtual double max_gradient_norm() const { return 0; }
  virtual void before_step(uint32_t) {}  // the learning rate; after the last step has ended
  // Forward: the mean loss of a batch. A step is this in training mode, its gradients and a step of
  // the optimizer, captured once.
  virtual Tensor loss(const std::vector<Tensor>& inputs) = 0;
  // What has to be the same where the training goes on, as texts: "task", its settings, its data.
  virtual Metadata identity() const = 0;
  virtual bool validates_after(uint32_t /*steps_done*/) const { return false; }
  // May end early, with any value, once the observer asks for it.
  virtual double validation_loss(TrainingObserver&) { return 0; }

  optim::AdamW& optimizer() { return optimizer_; }
  const nn::StateDict& model_state() const { return model_state_; }

 protected:
  TrainingTask(nn::StateDict model, const optim::AdamW::Options& options)
      : model_state_(std::move(model)), optimizer_(nn::parameters_of(model_state_), options) {}
  // The model's parameters in groups.
  TrainingTask(nn::StateDict model, const optim::AdamW::Groups& groups)
      : model_state_(std::move(model)), optimizer_(groups) {}

 private:
  nn::StateDict model_state_;
  optim::AdamW optimizer_;
};

inline constexpr uint32_t kMaxTrainingSteps = 1'000'000;

// The values that a setting may have, both included: of the command line's options and of
// checkpoints, whose settings are believed no more than those.
struct SettingRange {
  double least, most;
};
inline constexpr SettingRange kAnySeed{0, UINT32_MAX}, kTrainingSteps{1, kMaxTrainingSteps},
    kLearningRates{1e-9, 10};

// Where the state of a training is kept: see checkpoint.h.
struct CheckpointPlan {
  std::string resume;  // goes on from this file; "": from the start
  std::string save;    // written at the end, also one by an interrupt; "": never
  uint32_t every = 0;  // and after each so many steps; 0: at the end alone
};

// What every training is told, whatever its model.
struct TrainingOptions {
  bool jit = true;     // false: every step is built, scheduled and run anew
  std::string device;  // "" is the default device
  double seconds = 0;  // ends after the first step that is done so long after the start; 0: never
  CheckpointPlan checkpoints;
};

// One training from its device to its report; a trainer adds the model and its task. The report's
// time runs while the model is made, until ready(), and during run_task().
class Trainer {
 public:
  const TrainingReport& report() const { return report_; }

 protected:
  explicit Trainer(const std::string& device);  // opens it
  ~Trainer();
  const std::string& device() const { return report_.device; }
  void ready(const TrainingTask& task);
  // Once. What was reached before an error stays in the report.
  // A checkpoint that cannot be written costs no step that was made: the one before stays as it
  // was, and the next one is tried when it is due. IoError where none can be written at the start.
  void run_task(TrainingTask& task, uint32_t steps, const TrainingOptions& options,
                TrainingObserver& observer);

 private:
  class Clock;
  TrainingReport report_;
  std::unique_ptr<Clock> making_;
};

// Hands out a recipe's parameters in its order, as tensors that are trained.
class RecipeParameters {
 public:
  RecipeParameters(std::vector<ReferenceParameter> recipe, uint32_t seed, std::string device);
  // Uninitialized memory, for callers that load values afterwards.
  static RecipeParameters uninitialized(std::vector<ReferenceParameter> recipe, std::string device);
  Tensor next();
  nn::Linear linear();          // weight, bias
  nn::Linear linear_no_bias();  // weight
  nn::Conv2d conv2d(int64_t padding);
  nn::LayerNorm layernorm(double eps);
  nn::Embedding embedding();

 private:
  std::vector<ReferenceParameter> recipe_;
  uint32_t seed_;
  std::string device_;
  bool initialized_ = true;
  uint32_t given_ = 0;
};

}  // namespace tuff::models
