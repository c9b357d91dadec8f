// The optimizers, gradient clipping and averages of parameters; learning-rate schedules are in
// schedules.h. Each takes parameters with options, or groups of parameters with options each. What
// they do is said with g, the gradient, its sign turned where `maximize` asks for the largest
// value; but where decoupled decay is named, weight_decay*p is added to it. Options of every kind
// have to be finite and 0 or more, betas, alphas and rhos below 1: InvalidArgument.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tuff/optimizer.h>
#include <tuff/schedules.h>

namespace tuff::optim {

/// Options of SGD, or of one group of its parameters.
struct SGDOptions {
  double lr = 1e-2, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double dampening = 0;
  bool maximize = false;
};

/// v = momentum*v + (1 - dampening)*g with g = gradient + weight_decay*p, in the first step v = g;
/// p -= lr*v (nesterov: lr*(g + momentum*v)). State: momentum_buffer, where there is momentum.
class SGD : public GroupedOptimizer<SGDOptions> {
 public:
  using Options = SGDOptions;
  /// InvalidArgument for nesterov without momentum or with dampening.
  SGD(std::vector<Tensor> parameters, const Options& options)
      : SGD(Groups{{std::move(parameters), options}}) {}
  explicit SGD(const Groups& groups);

 protected:
  const char* kind() const override { return "SGD"; }
  void update(size_t i, const Tensor& gradient) override;
  void loaded() override;
};

/// Options of Adam, or of one group of its parameters.
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
/// Options of AdamW, or of one group of its parameters.
struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool decay_matrices_only = false;  // no decay on parameters of fewer than two axes
  bool amsgrad = false, maximize = false;
};

/// Bias-corrected moments (Kingma and Ba, 2015); with amsgrad by the largest second moment so far
/// (Reddi et al., 2018). State: step, exp_avg, exp_avg_sq, max_exp_avg_sq.
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  using Groups = std::vector<ParamGroup<Options>>;
  Adam(std::vector<Tensor> parameters, const Options& options)
      : Adam(Groups{{std::move(parameters), options}}) {}
  explicit Adam(const Groups& groups);

 protected:
  // Decoupled decay, and by which parameters.
  enum class Decay { Gradient, All, Matrices };
  struct Settings {
    AdamOptions options;
    Decay decay = Decay::Gradient;
  };
  Adam(std::vector<Group> groups, std::vector<Settings> settings, const char* kind);
  const char* kind() const override { return "Adam"; }
  void update(size_t i, const Tensor& gradient) override;

 private:
  // lr * corrected first moment / (root of the corrected second + eps), in F32.
  Tensor descent(size_t i, const Tensor& gradient);
  std::vector<Settings> settings_;  // by group
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  using Options = AdamWOptions;
  using Groups = std::vector<ParamGroup<Options>>;
  AdamW(std::vector<Tensor> parameters, const Options& options)
      : AdamW(Groups{{std::move(parameters), options}}) {}
  explicit AdamW(const Groups& groups);

 protected:
  const char* kind() const override { return "AdamW"; }
};

/// Options of RMSprop, or of one group of its parameters.
struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};

/// s = alpha*s + (1 - alpha)*g^2; v = momentum*v + g/(sqrt(s) + eps), centered: of s less the
/// square of the mean gradient; p -= lr*v (Hinton's lecture 6e, 2012). State: step, square_avg,
/// momentum_buffer, grad_avg.
class RMSprop : public GroupedOptimizer<RMSpropOptions> {
 public:
  using Options = RMSpropOptions;
  RMSprop(std::vector<Tensor> parameters, const Options& options)
      : RMSprop(Groups{{std::move(parameters), options}}) {}
  explicit RMSprop(const Groups& groups);

 protected:
  const char* kind() const override { return "RMSprop"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Adagrad, or of one group of its parameters.
struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};

/// s += g^2; p -= lr/(1 + (step - 1)*lr_decay) * g/(sqrt(s) + eps) (Duchi et al., 2011). State:
/// step, sum.
class Adagrad : public GroupedOptimizer<AdagradOptions> {
 public:
  using Options = AdagradOptions;
  Adagrad(std::vector<Tensor> parameters, const Options& options)
      : Adagrad(Groups{{std::move(parameters), options}}) {}
  explicit Adagrad(const Groups& groups);

 protected:
  const char* kind() const override { return "Adagrad"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Adadelta, or of one group of its parameters.
struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// s = rho*s + (1 - rho)*g^2; d = g*sqrt(u + eps)/sqrt(s + eps); u = rho*u + (1 - rho)*d^2;
/// p -= lr*d (Zeiler, 2012). State: step, square_avg, acc_delta.
class Adadelta : public GroupedOptimizer<AdadeltaOptions> {
 public:
  using Options = AdadeltaOptions;
  Adadelta(std::vector<Tensor> parameters, const Options& options)
      : Adadelta(Groups{{std::move(parameters), options}}) {}
  explicit Adadelta(const Groups& groups);

 protected:
  const char* kind() const override { return "Adadelta"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Adamax, or of one group of its parameters.
struct AdamaxOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};

/// Adam by the largest gradient so far, u = max(beta2*u, |g| + eps): p -= lr/(1 - beta1^t) * m/u
/// (Kingma and Ba, 2015, section 7.1). State: step, exp_avg, exp_inf.
class Adamax : public GroupedOptimizer<AdamaxOptions> {
 public:
  using Options = AdamaxOptions;
  Adamax(std::vector<Tensor> parameters, const Options& options)
      : Adamax(Groups{{std::move(parameters), options}}) {}
  explicit Adamax(const Groups& groups);

 protected:
  const char* kind() const override { return "Adamax"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of NAdam, or of one group of its parameters.
struct NAdamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool maximize = false;
};

/// Adam with Nesterov's momentum, which grows as beta1*(1 - 0.96^(t*momentum_decay)/2) (Dozat,
/// 2016). State: step, mu_product, exp_avg, exp_avg_sq.
class NAdam : public GroupedOptimizer<NAdamOptions> {
 public:
  using Options = NAdamOptions;
  NAdam(std::vector<Tensor> parameters, const Options& options)
      : NAdam(Groups{{std::move(parameters), options}}) {}
  explicit NAdam(const Groups& groups);

 protected:
  const char* kind() const override { return "NAdam"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of RAdam, or of one group of its parameters.
struct RAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};

/// Adam that leaves the second moment out while too little is known of its variance (Liu et al.,
/// 2020). State: step, exp_avg, exp_avg_sq.
class RAdam : public GroupedOptimizer<RAdamOptions> {
 public:
  using Options = RAdamOptions;
  RAdam(std::vector<Tensor> parameters, const Options& options)
      : RAdam(Groups{{std::move(parameters), options}}) {}
  explicit RAdam(const Groups& groups);

 protected:
  const char* kind() const override { return "RAdam"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of ASGD, or of one group of its parameters.
struct ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};

/// Averaged gradient descent (Polyak and Juditsky, 1992): p = (1 - lambd*eta)*p - eta*g, with
/// eta = lr/(1 + lambd*lr*t)^alpha, and from step t0 on the mean of all p in ax. State: step, eta,
/// mu, ax.
class ASGD : public GroupedOptimizer<ASGDOptions> {
 public:
  using Options = ASGDOptions;
  ASGD(std::vector<Tensor> parameters, const Options& options)
      : ASGD(Groups{{std::move(parameters), options}}) {}
  explicit ASGD(const Groups& groups);

 protected:
  const char* kind() const override { return "ASGD"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Adafactor, or of one group of its parameters.
struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::optional<double> eps1 = {};
  double eps2 = 1e-3, d = 1, weight_decay = 0;
  bool maximize = false;
};

/// Second moments of matrices by their rows' and columns' means alone, updates of a bounded root
/// mean square (Shazeer and Stern, 2018), in PyTorch's form: a rate of min(lr, 1/sqrt(t)) times the
/// parameter's root mean square, at least eps2; decoupled decay. eps1 is F32's epsilon if not
/// given. State: step, row_var and col_var or, below two axes, variance.
class Adafactor : public GroupedOptimizer<AdafactorOptions> {
 public:
  using Options = AdafactorOptions;
  /// InvalidArgument for a beta2_decay that is not below 0.
  Adafactor(std::vector<Tensor> parameters, const Options& options)
      : Adafactor(Groups{{std::move(parameters), options}}) {}
  explicit Adafactor(const Groups& groups);

 protected:
  const char* kind() const override { return "Adafactor"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of LAMB, or of one group of its parameters.
struct LAMBOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// Adam's direction r = m/(sqrt(v) + eps) + weight_decay*p, bias-corrected, scaled in every tensor
/// to its own norm: p -= lr * |p|/|r| * r, the ratio 1 where a norm is 0 (You et al., 2020). State:
/// step, exp_avg, exp_avg_sq.
class LAMB : public GroupedOptimizer<LAMBOptions> {
 public:
  using Options = LAMBOptions;
  LAMB(std::vector<Tensor> parameters, const Options& options)
      : LAMB(Groups{{std::move(parameters), options}}) {}
  explicit LAMB(const Groups& groups);

 protected:
  const char* kind() const override { return "LAMB"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of LARS, or of one group of its parameters.
struct LARSOptions {
  double lr = 1e-2, momentum = 0.9, weight_decay = 1e-4;
  bool nesterov = false;
  double trust = 1e-3, eps = 0;
  bool maximize = false;
};

/// SGD whose gradient g + weight_decay*p is scaled in every tensor by trust * |p| / (|g| +
/// weight_decay*|p| + eps), by 1 where a norm is 0 (You et al., 2017). State: momentum_buffer.
class LARS : public GroupedOptimizer<LARSOptions> {
 public:
  using Options = LARSOptions;
  LARS(std::vector<Tensor> parameters, const Options& options)
      : LARS(Groups{{std::move(parameters), options}}) {}
  explicit LARS(const Groups& groups);

 protected:
  const char* kind() const override { return "LARS"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Muon, or of one group of its parameters.
struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  double eps = 1e-7;
  int64_t ns_steps = 5;
  bool maximize = false;
};

/// The momentum of a matrix, made orthogonal by ns_steps of Newton and Schulz's iteration with
/// Jordan's coefficients (Jordan et al., 2024), in F32; the rate is multiplied by sqrt(max(1,
/// rows/columns)); decoupled decay. State: momentum_buffer.
class Muon : public GroupedOptimizer<MuonOptions> {
 public:
  using Options = MuonOptions;
  /// InvalidArgument for parameters that are no matrices.
  Muon(std::vector<Tensor> parameters, const Options& options)
      : Muon(Groups{{std::move(parameters), options}}) {}
  explicit Muon(const Groups& groups);

 protected:
  const char* kind() const override { return "Muon"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of Lion, or of one group of its parameters.
struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

/// p = (1 - lr*weight_decay)*p - lr*sign(beta1*m + (1 - beta1)*g); m = beta2*m + (1 - beta2)*g
/// (Chen et al., 2023). State: exp_avg.
class Lion : public GroupedOptimizer<LionOptions> {
 public:
  using Options = LionOptions;
  Lion(std::vector<Tensor> parameters, const Options& options)
      : Lion(Groups{{std::move(parameters), options}}) {}
  explicit Lion(const Groups& groups);

 protected:
  const char* kind() const override { return "Lion"; }
  void update(size_t i, const Tensor& gradient) override;
};

/// Options of LBFGS, or of one group of its parameters.
struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20, history_size = 100;
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
};

/// Quasi-Newton steps of a fixed rate by the last changes of parameters and gradients (Liu and
/// Nocedal, 1989), over all parameters as one vector; PyTorch's, without a line search. The host
/// decides after every evaluation whether to go on, so it is not for a captured function. The
/// history is in no state: a loaded one begins anew.
class LBFGS : public Optimizer {
 public:
  using Options = LBFGSOptions;
  /// InvalidArgument for parameters of several devices, and for counts below 1.
  LBFGS(std::vector<Tensor> parameters, const Options& options);
  ~LBFGS() override;
  /// Up to max_iter steps. The closure computes the loss, calls its backward() and returns it; it
  /// is called once per step, and gradients are cleared before. Returns the first loss.
  /// InvalidArgument inside a function that a Jit captures.
  double step(const std::function<Tensor()>& closure);

 protected:
  const char* kind() const override { return "LBFGS"; }
  void update(size_t i, const Tensor& gradient) override;
  void loaded() override;

 private:
  struct History;
  Tensor evaluated(const std::function<Tensor()>& closure, double& loss);
  bool moved(const Tensor& gradient);
  void add_to_parameters(const Tensor& direction, double by);
  Options options_;
  std::unique_ptr<History> history_;
};

/// Scales the gradients of all parameters so that their norm together is at most max_norm; returns
/// what it was. norm_type may be INFINITY. Lazy: works inside a captured step.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       double norm_type = 2);
/// Clamps every gradient to -clip_value..clip_value.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

/// How a GradScaler changes its scale.
/// Options of GradScaler, or of one group of its parameters.
struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  std::string device;  // of the parameters; "" is the default one
};

/// Losses of F16 scaled up, so that small gradients are not lost, and steps left out whose
/// gradients are not finite (Micikevicius et al., 2018). The scale is a tensor on the device, so
/// that all of it works inside a captured function:
///
///     scaler.scale(loss).backward();
///     scaler.step(optimizer, {loss});
class GradScaler {
 public:
  using Options = GradScalerOptions;
  /// InvalidArgument for a scale or a factor that is not above 0, and an interval below 1.
  explicit GradScaler(const Options& options = {});
  /// The loss times the scale, in F32.
  Tensor scale(const Tensor& loss) const { return loss.cast(DType::F32) * scale_; }
  /// Divides an optimizer's gradients by the scale: for clipping before step(), once.
  /// InvalidArgument if that was done since the last step, and on another device.
  void unscale_(Optimizer& optimizer);
  /// unscale_() unless it was done, and Optimizer::step(); parameters and state stay as they are if
  /// a gradient is infinite or NaN. Then the scale is lowered by backoff_factor, and after
  /// growth_interval steps without that it grows by growth_factor.
  void step(Optimizer& optimizer, const std::vector<Tensor>& also = {});
  double get_scale() const { return scale_.item(); }
  /// "scale" and "_growth_tracker", PyTorch's names. The tensors are its own.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& from) { nn::load_state_dict(state_dict(), from); }

 private:
  Options options_;
  Tensor scale_, tracker_, finite_;  // finite_: of the gradients that are unscaled, until the step
};

/// Averages of parameters over the steps of a training: exponential ones (EMA) with a decay, else
/// equal ones (SWA; Izmailov et al., 2018). Evaluate with them between two calls of swap().
class AveragedParameters {
 public:
  /// InvalidArgument for a decay that is not in 0..1.
  explicit AveragedParameters(std::vector<Tensor> parameters, std::optional<double> decay = {});
  /// Takes the parameters in, after Optimizer::step(): average*decay + p*(1 - decay), or the mean
  /// of all that were taken in; the first ones are the averages. Works inside a captured function.
  void update();
  /// Exchanges parameters and averages.
  void swap();
  const std::vector<Tensor>& averages() const { return averages_; }
  /// "n_averaged" and the averages by number. The tensors are its own.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& from);

 private:
  std::vector<Tensor> parameters_, averages_, counts_;  // counts by device
  std::optional<double> decay_;
};

}  // namespace tuff::optim
