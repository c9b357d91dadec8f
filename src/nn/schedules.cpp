// Learning rates as functions of the step; only step() touches the device.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <tuff/schedules.h>

#include "base/check.h"
#include "engine/realize/capture.h"

namespace tuff::optim {
namespace {

double cosine_between(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

void require_positive(const char* what, int64_t steps) {
  if (steps < 1) fail<InvalidArgument>("{}: {} steps", what, steps);
}

void require_no_capture(const char* what) {
  if (engine::Capture::current())
    fail<InvalidArgument>("{}: step() inside a captured function: call it after the Jit", what);
}

// Numbers as a state, which files hold.
nn::NamedTensor named(const char* name, double v) {
  return {name, Tensor::from(std::vector<double>{v}, {}, {.device = "CPU"}), false};
}

// The values of exactly these names.
std::vector<double> numbers(const char* what, const nn::StateDict& from,
                            const std::vector<std::string>& names) {
  std::vector<double> out;
  for (const std::string& name : names) {
    const auto t = std::ranges::find(from, name, &nn::NamedTensor::name);
    if (t == from.end()) fail<InvalidArgument>("{}: the state has no '{}'", what, name);
    out.push_back(t->tensor.item());
  }
  if (from.size() != names.size())
    fail<InvalidArgument>("{}: the state has {} values, of {}", what, from.size(), names.size());
  return out;
}

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

Optimizer& optimizer_of(const char* what, const Schedulers& schedulers) {
  if (schedulers.empty() || !schedulers[0]) fail<InvalidArgument>("{}: no schedulers given", what);
  for (const auto& s : schedulers) {
    if (!s || &s->optimizer() != &schedulers[0]->optimizer())
      fail<InvalidArgument>("{}: schedulers of several optimizers", what);
  }
  return const_cast<Optimizer&>(schedulers[0]->optimizer());
}

}  // namespace

void LRScheduler::put(int64_t step) {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_.groups(); g++)
    rates.push_back(rate_of(optimizer_.initial_lr(g), step));
  for (size_t g = 0; g < rates.size(); g++) optimizer_.set_lr(rates[g], g);
}

void LRScheduler::step() {
  require_no_capture("LRScheduler");
  put(at_ + 1);
  at_++;
}

void LRScheduler::set_last_step(int64_t step) {
  if (step < 0) fail<InvalidArgument>("LRScheduler: step {} is negative", step);
  put(step);
  at_ = step;
}

nn::StateDict LRScheduler::state_dict() const { return {named("last_epoch", double(at_))}; }

void LRScheduler::load_state_dict(const nn::StateDict& from) {
  set_last_step(int64_t(numbers("LRScheduler", from, {"last_epoch"})[0]));
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  require_positive("StepLR", step_size);
  start();
}
double StepLR::rate_of(double base, int64_t step) const {
  return base * std::pow(gamma_, double(step / step_size_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  require_positive("CosineAnnealingLR", t_max);
  start();
}
double CosineAnnealingLR::rate_of(double base, int64_t step) const {
  return cosine_between(base, eta_min_, double(step) / double(t_max_));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  require_positive("LinearLR", total_iters);
  start();
}
double LinearLR::rate_of(double base, int64_t step) const {
  const double part = double(std::min(step, total_)) / double(total_);
  return base * (start_ + (end_ - start_) * part);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, double pct_start,
                       double div_factor, double final_div_factor)
    : LRScheduler(optimizer),
      max_(max_lr),
      pct_start_(pct_start),
      first_(max_lr / div_factor),
      last_(max_lr / div_factor / final_div_factor),
      total_(total_steps) {
  require_positive("OneCycleLR", total_steps);
  if (!(pct_start >= 0 && pct_start <= 1))
    fail<InvalidArgument>("OneCycleLR: pct_start {} is not in 0..1", pct_start);
  start();
}
double OneCycleLR::rate_of(double /*base*/, int64_t step) const {
  if (step >= total_) fail<InvalidArgument>("OneCycleLR: step {} of {} steps in all", step, total_);
  const double peak = pct_start_ * double(total_) - 1, end = double(total_ - 1);
  if (double(step) <= peak)
    return cosine_between(first_, max_, peak > 0 ? double(step) / peak : 1.0);
  return cosine_between(max_, last_, end > peak ? (double(step) - peak) / (end - peak) : 1.0);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : LRScheduler(optimizer), factor_(std::move(factor)) {
  if (!factor_) fail<InvalidArgument>("LambdaLR: no function given");
  start();
}
double LambdaLR::rate_of(double base, int64_t step) const { return base * factor_(step); }

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  start();
}
double MultiStepLR::rate_of(double base, int64_t step) const {
  return base * std::pow(gamma_, double(std::ranges::count_if(
                                     milestones_, [&](int64_t m) { return m <= step; })));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer), gamma_(gamma) {
  start();
}
double ExponentialLR::rate_of(double base, int64_t step) const {
  return base * std::pow(gamma_, double(step));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_(total_iters), power_(power) {
  require_positive("PolynomialLR", total_iters);
  start();
}
double PolynomialLR::rate_of(double base, int64_t step) const {
  return base * std::pow(1 - double(std::min(step, total_)) / double(total_), power_);
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_(total_iters) {
  require_positive("ConstantLR", total_iters);
  start();
}
double ConstantLR::rate_of(double base, int64_t step) const {
  return step < total_ ? base * factor_ : base;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0,
                                                         int64_t t_mult, double eta_min)
    : LRScheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  require_positive("CosineAnnealingWarmRestarts", t_0);
  if (t_mult < 1) fail<InvalidArgument>("CosineAnnealingWarmRestarts: T_mult {}", t_mult);
  start();
}
double CosineAnnealingWarmRestarts::rate_of(double base, int64_t step) const {
  int64_t length = t_0_;
  if (t_mult_ == 1) step %= length;
  for (; step >= length; length *= t_mult_) step -= length;
  return cosine_between(base, eta_min_, double(step) / double(length));
}

CyclicLR::CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, int64_t step_size_up,
                   std::optional<int64_t> step_size_down, std::string_view mode, double gamma)
    : LRScheduler(optimizer),
      low_(base_lr),
      high_(max_lr),
      up_(step_size_up),
      down_(step_size_down.value_or(step_size_up)),
      halves_(mode == "triangular2"),
      gamma_(mode == "exp_range" ? gamma : 1) {
  require_positive("CyclicLR", up_);
  require_positive("CyclicLR", down_);
  if (!halves_ && mode != "triangular" && mode != "exp_range")
    fail<InvalidArgument>("CyclicLR: mode '{}' is none of triangular, triangular2, exp_range",
                          mode);
  start();
}
double CyclicLR::rate_of(double /*base*/, int64_t step) const {
  const int64_t cycle = step / (up_ + down_), at = step % (up_ + down_);
  const double part =
      at <= up_ ? double(at) / double(up_) : double(up_ + down_ - at) / double(down_);
  const double scale = halves_ ? std::pow(0.5, double(cycle)) : std::pow(gamma_, double(step));
  return low_ + (high_ - low_) * part * scale;
}

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  if (&optimizer_of("SequentialLR", schedulers_) != &optimizer)
    fail<InvalidArgument>("SequentialLR: schedulers of another optimizer");
  if (schedulers_.size() != milestones_.size() + 1)
    fail<InvalidArgument>("SequentialLR: {} schedulers want one milestone less, not {}",
                          schedulers_.size(), milestones_.size());
  if (!std::ranges::is_sorted(milestones_))
    fail<InvalidArgument>("SequentialLR: milestones do not rise");
  start();
}
double SequentialLR::rate_of(double base, int64_t step) const {
  size_t k = 0;
  while (k < milestones_.size() && milestones_[k] <= step) k++;
  return schedulers_[k]->rate_of(base, k == 0 ? step : step - milestones_[k - 1]);
}

ChainedScheduler::ChainedScheduler(Schedulers schedulers)
    : LRScheduler(optimizer_of("ChainedScheduler", schedulers)),
      schedulers_(std::move(schedulers)) {
  start();
}
double ChainedScheduler::rate_of(double base, int64_t step) const {
  double rate = base;
  for (const auto& s : schedulers_) rate *= base == 0 ? 0 : s->rate_of(base, step) / base;
  return rate;
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, Options options)
    : optimizer_(optimizer), options_(std::move(options)) {
  const Options& o = options_;
  if (!(o.factor < 1))
    fail<InvalidArgument>("ReduceLROnPlateau: factor {} is not below 1", o.factor);
  if (o.mode != "min" && o.mode != "max")
    fail<InvalidArgument>("ReduceLROnPlateau: mode '{}' is neither min nor max", o.mode);
  if (o.threshold_mode != "rel" && o.threshold_mode != "abs")
    fail<InvalidArgument>("ReduceLROnPlateau: threshold_mode '{}' is neither rel nor abs",
                          o.threshold_mode);
  best_ = o.mode == "min" ? INFINITY : -INFINITY;
}

bool ReduceLROnPlateau::better(double metric) const {
  const double sign = options_.mode == "min" ? 1 : -1;
  if (options_.threshold_mode == "abs")
    return sign * metric < sign * best_ - options_.threshold;
  return sign * metric < sign * best_ * (1 - sign * options_.threshold);
}

void ReduceLROnPlateau::reduce() {
  for (size_t g = 0; g < optimizer_.groups(); g++) {
    const double before = optimizer_.lr_value(g);
    const double after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) optimizer_.set_lr(after, g);
  }
}

void ReduceLROnPlateau::step(double metric) {
  require_no_capture("ReduceLROnPlateau");
  at_++;
  bad_ = better(metric) ? 0 : bad_ + 1;
  if (bad_ == 0) best_ = metric;
  if (cooling_ > 0) {
    cooling_--;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return;
  reduce();
  cooling_ = options_.cooldown;
  bad_ = 0;
}

nn::StateDict ReduceLROnPlateau::state_dict() const {
  return {named("best", best_), named("num_bad_epochs", double(bad_)),
          named("cooldown_counter", double(cooling_)), named("last_epoch", double(at_))};
}

void ReduceLROnPlateau::load_state_dict(const nn::StateDict& from) {
  const std::vector<double> v = numbers("ReduceLROnPlateau", from,
                                        {"best", "num_bad_epochs", "cooldown_counter",
                                         "last_epoch"});
  best_ = v[0];
  bad_ = int64_t(v[1]);
  cooling_ = int64_t(v[2]);
  at_ = int64_t(v[3]);
}

}  // namespace tuff::optim
