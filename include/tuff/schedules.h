// Learning-rate schedules: the rates of an optimizer's groups as functions of the step. Called by
// users through optim.h. Must never know how an optimizer moves parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tuff/optimizer.h>

namespace tuff::optim {

/// A learning rate per step and group, of the rate that the group had when its first schedule was
/// made. step() writes the next ones into the optimizer's device tensors: call it after
/// Optimizer::step(), outside of captured functions (InvalidArgument while one is being captured).
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  void step();
  int64_t last_step() const { return at_; }
  /// As after so many calls of step(): for a scheduler of the same options, made anew before a
  /// training goes on. Sets the optimizer's rates. InvalidArgument for a negative step.
  void set_last_step(int64_t step);
  double get_last_lr(size_t group = 0) const { return optimizer_.lr_value(group); }
  /// The rate of a step, counted from 0, of the first group.
  double rate(int64_t step) const { return rate_of(optimizer_.initial_lr(0), step); }
  /// That of a group whose rate was `base`.
  virtual double rate_of(double base, int64_t step) const = 0;
  /// "last_epoch", PyTorch's name of last_step(). Options are the constructor's.
  nn::StateDict state_dict() const;
  /// As set_last_step(); InvalidArgument for another state.
  void load_state_dict(const nn::StateDict& from);
  const Optimizer& optimizer() const { return optimizer_; }

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  // To be called by constructors once rate_of() works.
  void start() { put(0); }

 private:
  void put(int64_t step);
  Optimizer& optimizer_;
  int64_t at_ = 0;
};

/// base * gamma^(step / step_size).
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
  double rate_of(double base, int64_t step) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

/// base * gamma^k, k milestones reached.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);
  double rate_of(double base, int64_t step) const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// base * gamma^step.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
  double rate_of(double base, int64_t step) const override;

 private:
  double gamma_;
};

/// base * (1 - step/total_iters)^power, 0 from there on.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);
  double rate_of(double base, int64_t step) const override;

 private:
  int64_t total_;
  double power_;
};

/// base * factor for total_iters steps, then base.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);
  double rate_of(double base, int64_t step) const override;

 private:
  double factor_;
  int64_t total_;
};

/// From the base to eta_min along half a cosine of T_max steps (Loshchilov and Hutter, 2017).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);
  double rate_of(double base, int64_t step) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

/// The same again and again: for T_0 steps, then each time T_mult times as long.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0);
  double rate_of(double base, int64_t step) const override;

 private:
  int64_t t_0_, t_mult_;
  double eta_min_;
};

/// From base * start_factor to base * end_factor in total_iters steps: a warm-up.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);
  double rate_of(double base, int64_t step) const override;

 private:
  double start_, end_;
  int64_t total_;
};

/// Up to max_lr and down to almost nothing, along cosines (Smith and Topin, 2019).
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, double pct_start = 0.3,
             double div_factor = 25, double final_div_factor = 1e4);
  double rate_of(double base, int64_t step) const override;

 private:
  double max_, pct_start_, first_, last_;
  int64_t total_;
};

/// From base_lr to max_lr in step_size_up steps and back in step_size_down, as many if not given
/// (Smith, 2017), again and again: with the same height ("triangular"), half of the last one's
/// ("triangular2") or gamma^step of it ("exp_range"). InvalidArgument for another mode.
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, int64_t step_size_up = 2000,
           std::optional<int64_t> step_size_down = {}, std::string_view mode = "triangular",
           double gamma = 1);
  double rate_of(double base, int64_t step) const override;

 private:
  double low_, high_;
  int64_t up_, down_;
  bool halves_;
  double gamma_;
};

/// base * factor(step).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);
  double rate_of(double base, int64_t step) const override;

 private:
  std::function<double(int64_t)> factor_;
};

/// One schedule up to the first milestone, then the next one from its beginning, and so on.
/// InvalidArgument for milestones that do not rise, for other than one schedule more than
/// milestones, and for one of another optimizer.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  double rate_of(double base, int64_t step) const override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

/// The product of what schedules make of the base. (PyTorch multiplies in steps, which is the same
/// but for cosines with another eta_min than 0.) InvalidArgument without schedules and for those of
/// several optimizers.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);
  double rate_of(double base, int64_t step) const override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

/// Multiplies all rates by a factor when a metric has not improved for more than `patience` steps.
class ReduceLROnPlateau {
 public:
  struct Options {
    std::string mode = "min";  // "max": larger values are better
    double factor = 0.1;
    int64_t patience = 10;
    double threshold = 1e-4;
    std::string threshold_mode = "rel";  // of the best value, or "abs"
    int64_t cooldown = 0;                // steps after a change that do not count
    double min_lr = 0, eps = 1e-8;       // no change that is not above eps
  };
  /// InvalidArgument for a factor that is not below 1 and for other modes.
  ReduceLROnPlateau(Optimizer& optimizer, Options options);
  /// Outside of captured functions.
  void step(double metric);
  double get_last_lr(size_t group = 0) const { return optimizer_.lr_value(group); }
  /// "best", "num_bad_epochs", "cooldown_counter", "last_epoch"; the optimizer's state has rates.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& from);

 private:
  bool better(double metric) const;
  void reduce();
  Optimizer& optimizer_;
  Options options_;
  double best_;
  int64_t bad_ = 0, cooling_ = 0, at_ = 0;
};

}  // namespace tuff::optim
