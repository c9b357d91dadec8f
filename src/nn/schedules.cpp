// Learning rates as functions of the step; only step() touches the device.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <tuff/optim.h>

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

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer)
    : optimizer_(optimizer), base_(optimizer.lr_value()) {}

void LRScheduler::step() {
  if (engine::Capture::current())
    fail<InvalidArgument>("LRScheduler: step() inside a captured function: call it after the Jit");
  optimizer_.set_lr(rate(at_ + 1));
  at_++;
}

void LRScheduler::set_last_step(int64_t step) {
  if (step < 0) fail<InvalidArgument>("LRScheduler: step {} is negative", step);
  optimizer_.set_lr(rate(step));
  at_ = step;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  require_positive("StepLR", step_size);
  start();
}
double StepLR::rate(int64_t step) const {
  return base() * std::pow(gamma_, double(step / step_size_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  require_positive("CosineAnnealingLR", t_max);
  start();
}
double CosineAnnealingLR::rate(int64_t step) const {
  return cosine_between(base(), eta_min_, double(step) / double(t_max_));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor,
                   int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  require_positive("LinearLR", total_iters);
  start();
}
double LinearLR::rate(int64_t step) const {
  const double part = double(std::min(step, total_)) / double(total_);
  return base() * (start_ + (end_ - start_) * part);
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
double OneCycleLR::rate(int64_t step) const {
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
double LambdaLR::rate(int64_t step) const { return base() * factor_(step); }

}  // namespace tuff::optim
