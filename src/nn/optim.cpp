#include <tuff/optim.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff::optim {
namespace {

// Written by the host: a kernel for each shape would have to be compiled to run once.
Tensor state_like(const Sizes& sizes, double v, const Tensor& p) {
  const std::vector<float> values(size_t(int64_t(detail::product(sizes))), float(v));
  return Tensor::from(values, sizes, {.device = p.device()});
}

// Refused are NaN, infinities and what is below 0. A rate is stored as F32.
void require_amount(const char* optimizer, const char* option, double v) {
  if (!(v >= 0) || !std::isfinite(float(v)))
    fail<InvalidArgument>("{}: {} is {}: it has to be finite and 0 or more", optimizer, option, v);
}
void require_below_1(const char* optimizer, const char* option, double v) {
  if (!(v >= 0 && v < 1))
    fail<InvalidArgument>("{}: {} is {}: it has to be 0 or more, and less than 1", optimizer,
                          option, v);
}

const Tensor* tensor_named(const nn::StateDict& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &nn::NamedTensor::name);
  return found == state.end() ? nullptr : &found->tensor;
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr)
    : parameters_(std::move(parameters)), lr_value_(lr) {
  require_amount("optimizer", "lr", lr);
  if (parameters_.empty()) fail<InvalidArgument>("optimizer: no parameters given");
  for (size_t i = 0; i < parameters_.size(); i++) {
    if (!parameters_[i].requires_grad())
      fail<InvalidArgument>("optimizer: parameter {} has no requires_grad", i);
  }
  for (const Tensor& p : parameters_) {
    const auto same = [&](const Tensor& t) { return t.device() == p.device(); };
    if (std::none_of(lr_.begin(), lr_.end(), same)) lr_.push_back(state_like({}, lr, p));
  }
  Tensor::realize(parameters_);
}

const Tensor& Optimizer::on_device_of(const Tensor& t, const std::vector<Tensor>& one) const {
  for (const Tensor& o : one)
    if (o.device() == t.device()) return o;
  fail<InvalidArgument>("optimizer: a parameter was moved to {}", t.device());
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad(Tensor());
}

void Optimizer::set_lr(double lr) {
  require_amount(kind(), "lr", lr);
  const float v = float(lr);
  lr_value_ = lr;
  for (Tensor& t : lr_) t.copy_from(&v, sizeof v);
}

void Optimizer::step(const std::vector<Tensor>& also) {
  begin_step();
  bool any = false;
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Tensor g = parameters_[i].grad();
    if (!g.defined()) continue;
    update(i, g);
    any = true;
  }
  if (!any)
    fail<InvalidArgument>("optimizer: no parameter has a gradient: call backward() before step()");
  std::vector<Tensor> all = parameters_;
  all.insert(all.end(), state_.begin(), state_.end());
  all.insert(all.end(), also.begin(), also.end());
  for (const Tensor& t : detail::pending_assigns()) all.push_back(t);
  // The gradients are consumed by the updates: they need no memory of their own beyond them.
  zero_grad();
  Tensor::realize(all);
}

nn::StateDict Optimizer::state_dict() const {
  nn::StateDict out{{"param_groups.0.lr", lr_[0], false}};
  for (size_t i = 0; i < parameters_.size(); i++)
    nn::append_state(out, fmt::format("state.{}", i), state_of(i));
  return out;
}

void Optimizer::load_state_dict(const nn::StateDict& from) {
  const nn::StateDict own = state_dict();
  for (const nn::NamedTensor& t : from) {
    if (!tensor_named(own, t.name))
      fail<InvalidArgument>(
          "{} of {} parameters keeps no '{}', which the state has: it is that of "
          "another optimizer or of other parameters",
          kind(), parameters_.size(), t.name);
  }
  nn::StateDict into, values;  // a step count stands for all parameters of its device
  for (const nn::NamedTensor& t : own) {
    const Tensor* value = tensor_named(from, t.name);
    if (!value)
      fail<InvalidArgument>(
          "{}: the state has no '{}': it is that of another optimizer or of other "
          "parameters",
          kind(), t.name);
    const auto same = std::ranges::find_if(
        into, [&](const nn::NamedTensor& o) { return o.tensor.impl() == t.tensor.impl(); });
    if (same == into.end()) {
      into.push_back(t);
      values.push_back({t.name, *value, false});
    } else if (const double first = tensor_named(from, same->name)->item();
               value->item() != first) {
      fail<InvalidArgument>("{}: '{}' is {} and '{}' {}: parameters of one device share their step",
                            kind(), t.name, value->item(), same->name, first);
    }
  }
  if (const Tensor* rate = tensor_named(values, "param_groups.0.lr"))
    require_amount(kind(), "the state's param_groups.0.lr", rate->item());
  nn::load_state_dict(into, values);
  set_lr(lr_[0].item());
}

SGD::SGD(std::vector<Tensor> parameters, const Options& options)
    : Optimizer(std::move(parameters), options.lr), options_(options) {
  require_amount("SGD", "momentum", options.momentum);
  require_amount("SGD", "weight_decay", options.weight_decay);
  if (options.nesterov && options.momentum == 0)
    fail<InvalidArgument>("SGD: nesterov needs a momentum above 0");
  if (options_.momentum == 0) return;
  for (const Tensor& p : parameters_) state_.push_back(state_like(p.sizes(), 0, p));
}

nn::StateDict SGD::state_of(size_t i) const {
  if (options_.momentum == 0) return {};
  return {{"momentum_buffer", state_[i], false}};
}

void SGD::update(size_t i, const Tensor& gradient) {
  Tensor& p = parameters_[i];
  const Tensor old = p.detach();
  Tensor g = options_.weight_decay != 0 ? gradient + old * options_.weight_decay : gradient;
  if (options_.momentum != 0) {
    Tensor& v = state_[i];
    detail::store(v, v * options_.momentum + g);
    g = options_.nesterov ? g + v * options_.momentum : v;
  }
  detail::store(p, (old - on_device_of(p, lr_) * g).cast(p.dtype()));
}

Adam::Adam(std::vector<Tensor> parameters, const Options& options)
    : Optimizer(std::move(parameters), options.lr), options_(options) {
  require_below_1("Adam", "beta1", options.beta1);
  require_below_1("Adam", "beta2", options.beta2);
  require_amount("Adam", "eps", options.eps);
  require_amount("Adam", "weight_decay", options.weight_decay);
  for (const Tensor& rate : lr_) step_.push_back(state_like({}, 0, rate));
  for (const Tensor& p : parameters_) {
    state_.push_back(state_like(p.sizes(), 0, p));
    state_.push_back(state_like(p.sizes(), 0, p));
  }
  state_.insert(state_.end(), step_.begin(), step_.end());
}

nn::StateDict Adam::state_of(size_t i) const {
  return {{"step", on_device_of(parameters_[i], step_), false},
          {"exp_avg", state_[2 * i], false},
          {"exp_avg_sq", state_[2 * i + 1], false}};
}

void Adam::begin_step() {
  correction1_.clear();
  correction2_.clear();
  for (Tensor& step : step_) {
    detail::store(step, step + 1.0);
    correction1_.push_back(1.0 - (step * std::log2(options_.beta1)).exp2());
    correction2_.push_back(1.0 - (step * std::log2(options_.beta2)).exp2());
  }
}

Tensor Adam::descent(size_t i, const Tensor& g) {
  Tensor &m = state_[2 * i], &v = state_[2 * i + 1];
  detail::store(m, m * options_.beta1 + g * (1 - options_.beta1));
  detail::store(v, v * options_.beta2 + g * g * (1 - options_.beta2));
  const Tensor &p = parameters_[i], c1 = on_device_of(p, correction1_),
               c2 = on_device_of(p, correction2_);
  return on_device_of(p, lr_) * ((m / c1) / ((v / c2).sqrt() + options_.eps));
}

void Adam::update(size_t i, const Tensor& gradient) {
  Tensor& p = parameters_[i];
  const Tensor old = p.detach(), g = gradient.cast(DType::F32);
  const Tensor decayed = options_.weight_decay != 0 ? g + old * options_.weight_decay : g;
  detail::store(p, (old - descent(i, decayed)).cast(p.dtype()));
}

AdamW::AdamW(std::vector<Tensor> parameters, const Options& o)
    : Adam(std::move(parameters), {o.lr, o.beta1, o.beta2, o.eps, 0}),
      weight_decay_(o.weight_decay),
      decay_matrices_only_(o.decay_matrices_only) {
  require_amount("AdamW", "weight_decay", o.weight_decay);
}

void AdamW::update(size_t i, const Tensor& g) {
  Tensor& p = parameters_[i];
  const bool decays = weight_decay_ != 0 && (!decay_matrices_only_ || p.dim() >= 2);
  const Tensor old = p.detach();
  const Tensor kept = decays ? old * (1.0 - on_device_of(p, lr_) * weight_decay_) : old;
  detail::store(p, (kept - descent(i, g.cast(DType::F32))).cast(p.dtype()));
}

}  // namespace tuff::optim
