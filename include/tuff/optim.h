// Optimizers, gradient clipping and learning-rate schedules. Learning rate and step count live in
// device tensors, so a captured step replays with whatever they hold. step() assigns all parameters
// and state in one schedule and realizes it.
#pragma once

#include <functional>
#include <vector>

#include <tuff/nn.h>
#include <tuff/tensor.h>

namespace tuff::optim {

/// Parameters with a gradient each, and how step() moves them: SGD, Adam, AdamW. Parameters may be
/// on several devices, each of which has its own rate and step count.
class Optimizer {
 public:
  /// InvalidArgument without parameters, or for one without requires_grad; for a rate, and for
  /// options of SGD, Adam and AdamW, that are negative, infinite or NaN; for a beta that is not
  /// below 1, nesterov without momentum.
  Optimizer(std::vector<Tensor> parameters, double lr);
  virtual ~Optimizer() = default;
  void zero_grad();
  /// Realizes parameters, state, assignments that are pending (running statistics) and `also` (the
  /// loss, say) together. InvalidArgument if no parameter has a gradient.
  void step(const std::vector<Tensor>& also = {});
  /// Writes the device tensors; no allocation. InvalidArgument for a negative, infinite or NaN rate
  /// (of a schedule, too), and inside a function that a Jit captures.
  void set_lr(double lr);
  /// On the device of the first parameter.
  const Tensor& lr() const { return lr_[0]; }
  /// What lr() was set to last.
  double lr_value() const { return lr_value_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// What a checkpoint holds beside the parameters, by PyTorch's names: "param_groups.0.lr" and per
  /// parameter, in the constructor's order, "state.0.step", "state.0.exp_avg" and
  /// "state.0.exp_avg_sq" (Adam, AdamW) or "state.0.momentum_buffer" (SGD with momentum). Options
  /// are the constructor's and are not in it. The tensors are the optimizer's own.
  nn::StateDict state_dict() const;
  /// InvalidArgument names what `from` lacks or has too much, as the state of another optimizer
  /// does; ShapeError what differs in shape. Nothing has changed then.
  void load_state_dict(const nn::StateDict& from);

 protected:
  virtual const char* kind() const = 0;
  // What is kept of parameter i, without a prefix.
  virtual nn::StateDict state_of(size_t i) const = 0;
  // Assigns new versions for parameter i and its state.
  virtual void update(size_t i, const Tensor& gradient) = 0;
  virtual void begin_step() {}
  std::vector<Tensor> parameters_;
  // The element for the device of t, where one[i] belongs to the i-th device.
  const Tensor& on_device_of(const Tensor& t, const std::vector<Tensor>& one) const;
  std::vector<Tensor> state_;  // realized together with the parameters
  std::vector<Tensor> lr_;     // by device, in the order of the parameters

 private:
  double lr_value_;
};

/// v = momentum*v + g + weight_decay*p;  p -= lr*v (nesterov: lr*(g + momentum*v)).
class SGD : public Optimizer {
 public:
  struct Options {
    double lr = 1e-2, momentum = 0, weight_decay = 0;
    bool nesterov = false;
  };
  SGD(std::vector<Tensor> parameters, const Options& options);

 protected:
  const char* kind() const override { return "SGD"; }
  nn::StateDict state_of(size_t i) const override;
  void update(size_t i, const Tensor& gradient) override;

 private:
  Options options_;
};

/// Bias-corrected moments (Kingma and Ba, 2015); weight decay is added to the gradient.
class Adam : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  };
  Adam(std::vector<Tensor> parameters, const Options& options);

 protected:
  const char* kind() const override { return "Adam"; }
  nn::StateDict state_of(size_t i) const override;
  void begin_step() override;
  void update(size_t i, const Tensor& gradient) override;
  // lr * corrected first moment / (root of the corrected second + eps), in F32.
  Tensor descent(size_t i, const Tensor& gradient);

 private:
  Options options_;
  std::vector<Tensor> step_, correction1_, correction2_;  // by device
};

/// Decoupled weight decay (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    bool decay_matrices_only = false;  // no decay on parameters of fewer than two axes
  };
  AdamW(std::vector<Tensor> parameters, const Options& options);

 protected:
  const char* kind() const override { return "AdamW"; }
  void update(size_t i, const Tensor& gradient) override;

 private:
  double weight_decay_;
  bool decay_matrices_only_;
};

/// Scales the gradients of all parameters so that their norm together is at most max_norm; returns
/// what it was. norm_type may be INFINITY. Lazy: works inside a captured step.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       double norm_type = 2);
/// Clamps every gradient to -clip_value..clip_value.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

/// A learning rate per step, of the rate that the optimizer had. step() writes the next one into
/// the optimizer's device tensor: call it after Optimizer::step(), outside of captured functions
/// (InvalidArgument while one is being captured).
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  void step();
  int64_t last_step() const { return at_; }
  /// As after so many calls of step(): for a scheduler of the same options, made anew before a
  /// training goes on. Sets the optimizer's rate. InvalidArgument for a negative step.
  void set_last_step(int64_t step);
  double get_last_lr() const { return optimizer_.lr_value(); }
  /// The rate of a step, counted from 0.
  virtual double rate(int64_t step) const = 0;

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  // To be called by constructors once rate() works.
  void start() { optimizer_.set_lr(rate(0)); }
  double base() const { return base_; }

 private:
  Optimizer& optimizer_;
  double base_;
  int64_t at_ = 0;
};

/// base * gamma^(step / step_size).
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
  double rate(int64_t step) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

/// From the base to eta_min along half a cosine of T_max steps (Loshchilov and Hutter, 2017).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);
  double rate(int64_t step) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

/// From base * start_factor to base * end_factor in total_iters steps: a warm-up.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);
  double rate(int64_t step) const override;

 private:
  double start_, end_;
  int64_t total_;
};

/// Up to max_lr and down to almost nothing, along cosines (Smith and Topin, 2019).
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, double pct_start = 0.3,
             double div_factor = 25, double final_div_factor = 1e4);
  double rate(int64_t step) const override;

 private:
  double max_, pct_start_, first_, last_;
  int64_t total_;
};

/// base * factor(step).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);
  double rate(int64_t step) const override;

 private:
  std::function<double(int64_t)> factor_;
};

}  // namespace tuff::optim
