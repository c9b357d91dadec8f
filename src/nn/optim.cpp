// SGD and Adam.
#include <tuff/optim.h>

#include "base/check.h"
#include "nn/amounts.h"
#include "tensor/impl.h"

namespace tuff::optim {

SGD::SGD(const Groups& groups) : GroupedOptimizer(groups) {
  bool damped = false;
  for (const auto& [parameters, o] : groups) {
    require_amount("SGD", "momentum", o.momentum);
    require_amount("SGD", "weight_decay", o.weight_decay);
    require_amount("SGD", "dampening", o.dampening);
    if (o.nesterov && o.momentum == 0)
      fail<InvalidArgument>("SGD: nesterov needs a momentum above 0");
    if (o.nesterov && o.dampening != 0)
      fail<InvalidArgument>("SGD: nesterov needs a dampening of 0");
    damped |= o.dampening != 0;
  }
  if (damped) count_steps(false);
  for (size_t i = 0; i < parameters_.size(); i++)
    if (options(i).momentum != 0) keep(i, "momentum_buffer", parameters_[i].sizes());
}

// PyTorch's state has no count; where there is a momentum, it is not the first step.
void SGD::loaded() {
  const float one = 1;
  for (Tensor count : counts()) count.copy_from(&one, sizeof one);
}

void SGD::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor& p = parameters_[i];
  const Tensor old = p.detach();
  Tensor g = o.maximize ? gradient.neg() : gradient;
  if (o.weight_decay != 0) g = g + old * o.weight_decay;
  if (o.momentum != 0) {
    Tensor& v = kept(i, 0);
    const Tensor part =
        o.dampening != 0 ? g * Tensor::where(count(i) < 1.5, 1.0, 1 - o.dampening) : g;
    put(v, v * o.momentum + part);
    g = o.nesterov ? g + v * o.momentum : v;
  }
  put(p, (old - rate(i) * g).cast(p.dtype()));
}

Adam::Adam(std::vector<Group> groups, std::vector<Settings> settings, const char* kind)
    : Optimizer(std::move(groups)), settings_(std::move(settings)) {
  for (const Settings& s : settings_) {
    require_below_1(kind, "beta1", s.options.beta1);
    require_below_1(kind, "beta2", s.options.beta2);
    require_amount(kind, "eps", s.options.eps);
    require_amount(kind, "weight_decay", s.options.weight_decay);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Sizes sizes = parameters_[i].sizes();
    keep(i, "exp_avg", sizes);
    keep(i, "exp_avg_sq", sizes);
    if (settings_[group_of(i)].options.amsgrad) keep(i, "max_exp_avg_sq", sizes);
  }
}

Adam::Adam(const Groups& groups)
    : Adam(
          [&] {
            std::vector<Group> rates;
            for (const auto& g : groups) rates.push_back({g.parameters, g.options.lr});
            return rates;
          }(),
          [&] {
            std::vector<Settings> settings;
            for (const auto& g : groups) settings.push_back({g.options, Decay::Gradient});
            return settings;
          }(),
          "Adam") {}

AdamW::AdamW(const Groups& groups)
    : Adam(
          [&] {
            std::vector<Group> rates;
            for (const auto& g : groups) rates.push_back({g.parameters, g.options.lr});
            return rates;
          }(),
          [&] {
            std::vector<Settings> settings;
            for (const auto& [parameters, o] : groups)
              settings.push_back({{o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad,
                                   o.maximize},
                                  o.decay_matrices_only ? Decay::Matrices : Decay::All});
            return settings;
          }(),
          "AdamW") {}

Tensor Adam::descent(size_t i, const Tensor& g) {
  const AdamOptions& o = settings_[group_of(i)].options;
  Tensor &m = kept(i, 0), &v = kept(i, 1);
  put(m, m * o.beta1 + g * (1 - o.beta1));
  put(v, v * o.beta2 + g * g * (1 - o.beta2));
  if (o.amsgrad) put(kept(i, 2), kept(i, 2).maximum(v));
  const Tensor &second = o.amsgrad ? kept(i, 2) : v, c1 = correction(i, o.beta1),
               c2 = correction(i, o.beta2);
  return rate(i) * ((m / c1) / ((second / c2).sqrt() + o.eps));
}

void Adam::update(size_t i, const Tensor& gradient) {
  const Settings& s = settings_[group_of(i)];
  const double decay = s.options.weight_decay;
  Tensor& p = parameters_[i];
  const Tensor old = p.detach();
  Tensor g = gradient.cast(DType::F32), kept = old;
  if (s.options.maximize) g = g.neg();
  if (decay != 0 && s.decay == Decay::Gradient) g = g + old * decay;
  if (decay != 0 && (s.decay == Decay::All || (s.decay == Decay::Matrices && p.dim() >= 2)))
    kept = old * (1.0 - rate(i) * decay);
  put(p, (kept - descent(i, g)).cast(p.dtype()));
}

}  // namespace tuff::optim
