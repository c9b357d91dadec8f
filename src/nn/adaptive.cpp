// Optimizers with a rate per element, by what its gradients were. Formulas and defaults are those
// of PyTorch's documentation.
#include <tuff/optim.h>

#include <cmath>

#include "base/check.h"
#include "nn/amounts.h"
#include "nn/gradients.h"
#include "tensor/impl.h"

namespace tuff::optim {

RMSprop::RMSprop(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_below_1("RMSprop", "alpha", o.alpha);
    require_amount("RMSprop", "eps", o.eps);
    require_amount("RMSprop", "weight_decay", o.weight_decay);
    require_amount("RMSprop", "momentum", o.momentum);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Sizes sizes = parameters_[i].sizes();
    keep(i, "square_avg", sizes);
    if (options(i).momentum != 0) keep(i, "momentum_buffer", sizes);
    if (options(i).centered) keep(i, "grad_avg", sizes);
  }
}

void RMSprop::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &s = kept(i, 0);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  put(s, s * o.alpha + g * g * (1 - o.alpha));
  Tensor spread = s;
  if (o.centered) {
    Tensor& mean = kept(i, o.momentum != 0 ? 2 : 1);
    put(mean, mean * o.alpha + g * (1 - o.alpha));
    spread = (s - mean * mean).clamp(0);  // rounding may leave it below
  }
  Tensor step = g / (spread.sqrt() + o.eps);
  if (o.momentum != 0) {
    put(kept(i, 1), kept(i, 1) * o.momentum + step);
    step = kept(i, 1);
  }
  put(p, (old - rate(i) * step).cast(p.dtype()));
}

Adagrad::Adagrad(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_amount("Adagrad", "lr_decay", o.lr_decay);
    require_amount("Adagrad", "weight_decay", o.weight_decay);
    require_amount("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
    require_amount("Adagrad", "eps", o.eps);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++)
    keep(i, "sum", parameters_[i].sizes(), options(i).initial_accumulator_value);
}

void Adagrad::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &sum = kept(i, 0);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  put(sum, sum + g * g);
  const Tensor lr = rate(i) / (1.0 + (count(i) - 1.0) * o.lr_decay);
  put(p, (old - lr * (g / (sum.sqrt() + o.eps))).cast(p.dtype()));
}

Adadelta::Adadelta(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_below_1("Adadelta", "rho", o.rho);
    require_amount("Adadelta", "eps", o.eps);
    require_amount("Adadelta", "weight_decay", o.weight_decay);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "square_avg", parameters_[i].sizes());
    keep(i, "acc_delta", parameters_[i].sizes());
  }
}

void Adadelta::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &s = kept(i, 0), &u = kept(i, 1);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  put(s, s * o.rho + g * g * (1 - o.rho));
  const Tensor step = (u + o.eps).sqrt() / (s + o.eps).sqrt() * g;
  put(u, u * o.rho + step * step * (1 - o.rho));
  put(p, (old - rate(i) * step).cast(p.dtype()));
}

Adamax::Adamax(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& g : groups) require_betas("Adamax", g.options);
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "exp_avg", parameters_[i].sizes());
    keep(i, "exp_inf", parameters_[i].sizes());
  }
}

void Adamax::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &m = kept(i, 0), &u = kept(i, 1);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  put(m, m * o.beta1 + g * (1 - o.beta1));
  put(u, (u * o.beta2).maximum(g.abs() + o.eps));
  const Tensor lr = rate(i) / correction(i, o.beta1);
  put(p, (old - lr * (m / u)).cast(p.dtype()));
}

NAdam::NAdam(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& g : groups) {
    require_betas("NAdam", g.options);
    require_amount("NAdam", "momentum_decay", g.options.momentum_decay);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "mu_product", {}, 1);
    keep(i, "exp_avg", parameters_[i].sizes());
    keep(i, "exp_avg_sq", parameters_[i].sizes());
  }
}

void NAdam::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &product = kept(i, 0), &m = kept(i, 1), &v = kept(i, 2);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  const auto momentum = [&](const Tensor& t) {  // 0.96 is Dozat's
    return o.beta1 * (1.0 - 0.5 * (t * (o.momentum_decay * std::log2(0.96))).exp2());
  };
  const Tensor mu = momentum(count(i)), next = momentum(count(i) + 1.0);
  put(product, product * mu);
  put(m, m * o.beta1 + g * (1 - o.beta1));
  put(v, v * o.beta2 + g * g * (1 - o.beta2));
  const Tensor root = (v / correction(i, o.beta2)).sqrt() + o.eps;
  const Tensor step = g / root * ((1.0 - mu) / (1.0 - product)) +
                      m / root * (next / (1.0 - product * next));
  put(p, (old - rate(i) * step).cast(p.dtype()));
}

RAdam::RAdam(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& g : groups) require_betas("RAdam", g.options);
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "exp_avg", parameters_[i].sizes());
    keep(i, "exp_avg_sq", parameters_[i].sizes());
  }
}

namespace {

// The length rho = limit - 2 t b^t / (1 - b^t) of the average that has forgotten less than a mean
// of t, limit = 2/(1 - b) - 1: limit - k + k (1 - x/(e^x - 1)), x = t log(1/b), k = 2/log(1/b).
// What is close to 1 is never subtracted from 1: for small x, where rho decides, by the series
// 1 - x/(e^x - 1) = x/2 - x^2/12 + x^4/720 - x^6/30240 + ... (Bernoulli's numbers), in F32.
Tensor length_of_average(const Tensor& t, double beta) {
  const double rate = -std::log(beta), limit = 2 / (1 - beta) - 1, k = 2 / rate;
  const Tensor x = t * rate, x2 = x * x;
  const Tensor series =
      x * 0.5 - x2 * (1.0 / 12 - x2 * (1.0 / 720 - x2 * (1.0 / 30240 - x2 * (1.0 / 1209600))));
  const Tensor direct = 1.0 - x / (x.exp() - 1.0);
  return (limit - k) + k * Tensor::where(x < 1, series, direct);
}

}  // namespace

void RAdam::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &m = kept(i, 0), &v = kept(i, 1);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  put(m, m * o.beta1 + g * (1 - o.beta1));
  put(v, v * o.beta2 + g * g * (1 - o.beta2));
  const double limit = 2 / (1 - o.beta2) - 1;
  const Tensor rho = length_of_average(count(i), o.beta2);
  const Tensor known = rho.clamp(5);  // the other branch takes no root of what is negative
  const Tensor rectified =
      ((known - 4.0) * (known - 2.0) * limit / ((limit - 4) * (limit - 2) * known)).sqrt();
  const Tensor scale = rectified * correction(i, o.beta2).sqrt() / (v.sqrt() + o.eps);
  const Tensor step = m / correction(i, o.beta1) * Tensor::where(rho > 5, scale, 1.0);
  put(p, (old - rate(i) * step).cast(p.dtype()));
}

ASGD::ASGD(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_amount("ASGD", "lambd", o.lambd);
    require_amount("ASGD", "alpha", o.alpha);
    require_amount("ASGD", "t0", o.t0);
    require_amount("ASGD", "weight_decay", o.weight_decay);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "eta", {}, options(i).lr);
    keep(i, "mu", {}, 1);
    keep(i, "ax", parameters_[i].sizes());
  }
}

void ASGD::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &eta = kept(i, 0), &mu = kept(i, 1), &mean = kept(i, 2);
  const Tensor old = p.detach(), g = gradient_of(gradient, old, o);
  // That of the first step is whatever the rate is then.
  const Tensor now = Tensor::where(count(i) < 1.5, rate(i), eta);
  const Tensor moved = (old * (1.0 - now * o.lambd) - now * g).cast(p.dtype());
  put(mean, mean + (moved - mean) * mu);
  put(p, moved);
  put(eta, rate(i) / (1.0 + rate(i) * count(i) * o.lambd).pow(o.alpha));
  put(mu, 1.0 / (count(i) - o.t0).clamp(1));
}

}  // namespace tuff::optim
