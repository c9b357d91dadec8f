#include "models/training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <tuff/jit.h>

#include "base/check.h"
#include "base/os.h"
#include "base/os_stream.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "models/checkpoint.h"
#include "models/not_finite.h"

namespace tuff::models {
namespace {

constexpr uint32_t kStepsBeforeReplay = 2;  // the Jit runs the first and captures the second
constexpr double kNanosPerMilli = 1e6;

double milliseconds(const std::atomic<uint64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) / kNanosPerMilli;
}

double median_of_replays(const TrainingReport& report, float StepRecord::* field) {
  const std::span<const StepRecord> steps = std::span(report.steps).subspan(report.resumed_at);
  if (steps.empty()) return std::numeric_limits<double>::quiet_NaN();
  const size_t skipped = steps.size() > kStepsBeforeReplay ? kStepsBeforeReplay : 0;
  std::vector<float> values;
  for (size_t i = skipped; i < steps.size(); ++i) values.push_back(steps[i].*field);
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : 0.5 * (double{values[half - 1]} + values[half]);
}

// Gradients and losses of the batches of a step, added up.
class Sums {
 public:
  explicit Sums(TrainingTask& task) : parameters_(task.optimizer().parameters()) {
    for (const Tensor& p : parameters_) sums_.push_back(zeros_like(p).realize());
    loss_ = Tensor::zeros({}, {DType::F32, parameters_[0].device()}).realize();
  }
  // Takes the gradients.
  void add(const Tensor& loss) {
    loss_.assign(loss_ + loss);
    for (size_t i = 0; i < sums_.size(); i++) {
      if (parameters_[i].grad().defined()) sums_[i].assign(sums_[i] + parameters_[i].grad());
      parameters_[i].set_grad({});
    }
    realize();
  }
  // Gives back what was added up, with what the parameters have now, and begins anew. The loss.
  Tensor take(const Tensor& loss) {
    const Tensor all = loss_ + loss;
    for (size_t i = 0; i < sums_.size(); i++) {
      const Tensor g = parameters_[i].grad();
      parameters_[i].set_grad(g.defined() ? sums_[i] + g : sums_[i] * 1);
      sums_[i].assign(zeros_like(sums_[i]));  // not by a product: of nan it would be nan for ever
    }
    loss_.assign(zeros_like(loss_));
    return all;
  }

 private:
  static Tensor zeros_like(const Tensor& p) {
    return Tensor::zeros(p.sizes(), {DType::F32, p.device()});
  }
  void realize() {
    std::vector<Tensor> all = sums_;
    all.push_back(loss_);
    Tensor::realize(all);
  }
  std::vector<Tensor> parameters_, sums_;
  Tensor loss_;
};

// Steps as replays of a Jit, and of another one for all batches of a step but its last; or each
// built anew.
class Stepper {
 public:
  Stepper(TrainingTask& task, bool jit) : task_(task), share_(1.0 / task.batches_per_step()) {
    if (task.batches_per_step() > 1) sums_.emplace(task);
    if (!jit) return;
    last_.emplace([this](const std::vector<Tensor>& in) { return train(in); });
    if (sums_) others_.emplace([this](const std::vector<Tensor>& in) { return add(in); });
  }

  // Starts on a batch; loss() waits for the step that the last one of it ends.
  void launch(const std::vector<Tensor>& inputs, bool is_last) {
    std::optional<Jit>& jit = is_last ? last_ : others_;
    if (jit) {
      results_ = &(*jit)(inputs);
    } else {
      const uint64_t kernels = counters_.kernels, submits = counters_.submits;
      own_results_ = is_last ? train(inputs) : add(inputs);
      results_ = &own_results_;
      kernels_ = static_cast<uint32_t>(counters_.kernels - kernels);
      submits_ = static_cast<uint32_t>(counters_.submits - submits);
    }
  }
  float loss() const { return static_cast<float>((*results_)[0].item()); }

  void describe(TrainingReport& report) const {
    report.kernels_per_step = last_ ? last_->stats().kernels : kernels_;
    report.submits_per_step = last_ ? last_->stats().submits_per_replay : submits_;
    if (!others_) return;
    const uint32_t others = task_.batches_per_step() - 1;
    report.kernels_per_step += others * others_->stats().kernels;
    report.submits_per_step += others * others_->stats().submits_per_replay;
  }

 private:
  Tensor gradients_of(const std::vector<Tensor>& inputs) {
    const TrainingMode training;
    const Tensor loss = sums_ ? task_.loss(inputs) * share_ : task_.loss(inputs);
    loss.backward();
    return loss;
  }
  std::vector<Tensor> add(const std::vector<Tensor>& inputs) {
    const Tensor loss = gradients_of(inputs);
    sums_->add(loss);
    return {loss};
  }
  std::vector<Tensor> train(const std::vector<Tensor>& inputs) {
    Tensor loss = gradients_of(inputs);
    if (sums_) loss = sums_->take(loss);
    if (const double most = task_.max_gradient_norm(); most > 0)
      optim::clip_grad_norm_(task_.optimizer().parameters(), most);
    task_.optimizer().step({loss});
    return {loss};
  }

  TrainingTask& task_;
  const double share_;  // of a batch in its step
  std::optional<Sums> sums_;
  std::optional<Jit> last_, others_;
  const std::vector<Tensor>* results_ = nullptr;
  std::vector<Tensor> own_results_;
  engine::GlobalCounters& counters_ = engine::counters();
  uint32_t kernels_ = 0, submits_ = 0;
};

// Says once that a loss is no number, when the weights can still be asked.
class FiniteWatch {
 public:
  FiniteWatch(TrainingTask& task, TrainingObserver& observer) : task_(task), observer_(observer) {}
  void look(uint32_t done, double loss) {
    if (told_ || std::isfinite(loss)) return;
    told_ = true;
    // The sign of a nan means nothing.
    const double shown = std::isnan(loss) ? std::numeric_limits<double>::quiet_NaN() : loss;
    observer_.on_not_finite(done, shown, not_finite_text(task_.model_state()));
  }

 private:
  TrainingTask& task_;
  TrainingObserver& observer_;
  bool told_ = false;
};

void validate(TrainingTask& task, uint32_t done, TrainingObserver& observer,
              TrainingReport& report, FiniteWatch& watch) {
  const std::vector<ValidationRecord>& known = report.validations;  // a checkpoint may bring it
  if (!known.empty() && known.back().step == done) return;
  if (!task.validates_after(done) && !report.out_of_time) return;
  const double loss = task.validation_loss(observer);
  if (observer.stop_requested()) return;  // of some batches only
  report.validations.push_back({done, loss});
  observer.on_validation(report.validations.back());
  watch.look(done, loss);
}

// Writes checkpoints as the plan asks for.
class Saver {
 public:
  Saver(const CheckpointPlan& plan, TrainingTask& task, TrainingObserver& observer,
        TrainingReport& report)
      : plan_(plan), task_(task), observer_(observer), report_(report) {
    if (plan.save.empty()) return;
    os::require_writable(plan.save);
    os::remove_abandoned(plan.save);
  }
  void after_step() {
    if (plan_.every != 0 && report_.steps.size() % plan_.every == 0) save();
  }
  // An interrupt before the first step leaves whatever file there is.
  void at_end() {
    if (!report_.interrupted || report_.steps_of_this_run() != 0) save();
  }

 private:
  static constexpr uint32_t kNever = UINT32_MAX;

  void save() {
    const uint32_t done = uint32_t(report_.steps.size());
    if (plan_.save.empty() || tried_ == done) return;
    tried_ = done;
    try {
      save_checkpoint(plan_.save, task_, report_);
    } catch (const IoError& e) {
      report_.unsaved = fmt::format("step {} is not saved: {}; {}", done, e.what(), kept());
      observer_.on_checkpoint_failed(plan_.save, done, report_.unsaved);
      return;
    }
    saved_ = done;
    report_.unsaved.clear();
    observer_.on_checkpoint(plan_.save, done);
  }
  // What there is to go on from.
  std::string kept() const {
    if (saved_ != kNever) return fmt::format("the checkpoint of step {} is whole", saved_);
    return os::exists(plan_.save) ? "the file that was there is whole" : "there is no checkpoint";
  }

  const CheckpointPlan& plan_;
  TrainingTask& task_;
  TrainingObserver& observer_;
  TrainingReport& report_;
  uint32_t tried_ = kNever, saved_ = kNever;  // after so many steps
};

bool is_over(double seconds, uint64_t start_ns) {
  return seconds > 0 && double(os::monotonic_ns() - start_ns) / 1e9 >= seconds;
}

void run_steps(TrainingTask& task, uint32_t steps, const TrainingOptions& options,
               TrainingObserver& observer, TrainingReport& report) {
  report.interrupted = true;  // until the end is reached
  Saver saver(options.checkpoints, task, observer, report);
  report.steps.reserve(steps);
  report.validations.reserve(steps + 1);
  FiniteWatch watch(task, observer);
  validate(task, report.resumed_at, observer, report, watch);
  std::array<std::vector<Tensor>, 2> inputs{task.make_inputs(), task.make_inputs()};
  Stepper stepper(task, options.jit);
  const uint32_t per_step = task.batches_per_step();
  uint32_t batch = report.resumed_at * per_step;
  if (report.resumed_at < steps) task.write_batch(batch, inputs[batch % 2]);
  const uint64_t start_ns = os::monotonic_ns();
  uint64_t begin_ns = start_ns;
  for (uint32_t step = report.resumed_at; step < steps; ++step) {
    report.out_of_time = is_over(options.seconds, start_ns) && report.steps_of_this_run() != 0;
    if (report.out_of_time || observer.stop_requested()) break;
    task.before_step(step);
    uint64_t launching_ns = 0;
    for (uint32_t i = 1; i <= per_step; ++i, ++batch) {
      const uint64_t launch_ns = os::monotonic_ns();
      stepper.launch(inputs[batch % 2], i == per_step);
      launching_ns += os::monotonic_ns() - launch_ns;
      // The device works on this batch while the host prepares the next one.
      if (step + 1 < steps || i < per_step) task.write_batch(batch + 1, inputs[(batch + 1) % 2]);
    }
    const float loss = stepper.loss();
    const uint64_t end_ns = os::monotonic_ns();
    report.steps.push_back({step + 1, loss, static_cast<float>(double(end_ns - begin_ns) / 1e6),
                            static_cast<float>(double(launching_ns) / 1e3)});
    stepper.describe(report);
    observer.on_step(report.steps.back());
    watch.look(step + 1, double{loss});
    validate(task, step + 1, observer, report, watch);
    saver.after_step();
    begin_ns = os::monotonic_ns();
  }
  if (report.out_of_time) validate(task, uint32_t(report.steps.size()), observer, report, watch);
  report.interrupted = report.steps.size() < steps && !report.out_of_time;
  saver.at_end();
}

void resume(const std::string& path, TrainingTask& task, uint32_t steps, TrainingReport& report) {
  const Checkpoint checkpoint(path, std::get<std::string>(task.identity().at(0).second.value),
                              report.device);
  if (checkpoint.step() > steps)
    fail<InvalidArgument>("{}: {} steps are done there, more than the {} asked for", path,
                          checkpoint.step(), steps);
  checkpoint.restore(task, report);
}

}  // namespace

CompileTimes CompileTimes::now() {
  const engine::GlobalCounters& c = engine::counters();
  return {milliseconds(c.schedule_ns), milliseconds(c.lower_ns), milliseconds(c.render_ns),
          milliseconds(c.compile_ns),  milliseconds(c.load_ns),  c.kernels_compiled,
          c.kernels_from_disk};
}

CompileTimes CompileTimes::since(const CompileTimes& b) const {
  return {schedule_ms - b.schedule_ms,
          lower_ms - b.lower_ms,
          render_ms - b.render_ms,
          compiler_ms - b.compiler_ms,
          load_ms - b.load_ms,
          kernels_compiled - b.kernels_compiled,
          kernels_from_disk - b.kernels_from_disk};
}

double TrainingReport::step_ms_median() const { return median_of_replays(*this, &StepRecord::ms); }
double TrainingReport::host_us_median() const {
  return median_of_replays(*this, &StepRecord::host_us);
}

// Adds its own lifetime to report.seconds and what was compiled in it to report.compile.
class Trainer::Clock {
 public:
  explicit Clock(TrainingReport& report)
      : report_(report), uncounted_(CompileTimes::now().since(report.compile)) {}
  ~Clock() {
    report_.seconds += static_cast<double>(os::monotonic_ns() - start_ns_) / 1e9;
    report_.compile = CompileTimes::now().since(uncounted_);
  }
  Clock(const Clock&) = delete;

 private:
  TrainingReport& report_;
  const CompileTimes uncounted_;
  const uint64_t start_ns_ = os::monotonic_ns();
};

Trainer::Trainer(const std::string& device) : making_(std::make_unique<Clock>(report_)) {
  const std::shared_ptr<engine::Device> opened = engine::Device::get(device);
  const hcq::DeviceInfo& info = opened->hcq().info();
  report_.device = info.name;
  report_.description = info.description;
  report_.driver = info.driver;
}

Trainer::~Trainer() = default;

void Trainer::ready(const TrainingTask& task) {
  for (const Tensor& p : nn::parameters_of(task.model_state()))
    report_.parameter_count += static_cast<uint64_t>(p.numel());
  making_.reset();
}

void Trainer::run_task(TrainingTask& task, uint32_t steps, const TrainingOptions& options,
                       TrainingObserver& observer) {
  const Clock clock(report_);
  if (const std::string& from = options.checkpoints.resume; !from.empty())
    resume(from, task, steps, report_);
  run_steps(task, steps, options, observer, report_);
}

RecipeParameters::RecipeParameters(std::vector<ReferenceParameter> recipe, uint32_t seed,
                                   std::string device)
    : recipe_(std::move(recipe)), seed_(seed), device_(std::move(device)) {}

RecipeParameters RecipeParameters::uninitialized(std::vector<ReferenceParameter> recipe,
                                                 std::string device) {
  RecipeParameters out(std::move(recipe), 0, std::move(device));
  out.initialized_ = false;
  return out;
}

Tensor RecipeParameters::next() {
  TUFF_CHECK(given_ < recipe_.size(), "the recipe has only {} parameters", recipe_.size());
  const ReferenceParameter& parameter = recipe_[given_];
  const Sizes sizes(parameter.shape.begin(), parameter.shape.end());
  const TensorOptions options{DType::F32, device_, true};
  const uint32_t index = given_++;
  if (!initialized_) return Tensor::empty(sizes, options);
  return Tensor::from(initial_values(seed_, parameter, index), sizes, options);
}

nn::Linear RecipeParameters::linear() {
  Tensor weight = next();
  return nn::Linear(std::move(weight), next());
}
nn::Linear RecipeParameters::linear_no_bias() { return nn::Linear(next()); }
nn::Conv2d RecipeParameters::conv2d(int64_t padding) {
  Tensor weight = next();
  return nn::Conv2d(std::move(weight), next(), 1, padding);
}
nn::LayerNorm RecipeParameters::layernorm(double eps) {
  Tensor weight = next();
  return nn::LayerNorm(std::move(weight), next(), eps);
}
nn::Embedding RecipeParameters::embedding() { return nn::Embedding(next()); }

}  // namespace tuff::models
