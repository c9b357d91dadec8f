// Optimizers that look at whole tensors: their norms, their rows and columns, their signs.
#include <tuff/optim.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "nn/amounts.h"
#include "nn/gradients.h"
#include "tensor/impl.h"

namespace tuff::optim {
namespace {

Tensor norm(const Tensor& x) { return x.cast(DType::F32).square().sum().sqrt(); }
Tensor root_mean_square(const Tensor& x) { return x.cast(DType::F32).square().mean().sqrt(); }

// a / b where both are above 0, else 1.
Tensor ratio_of_norms(const Tensor& a, const Tensor& b) {
  return Tensor::where((a > 0) & (b > 0), a / b, 1.0);
}

}  // namespace

Adafactor::Adafactor(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    if (!(o.beta2_decay < 0))
      fail<InvalidArgument>("Adafactor: beta2_decay {} is not below 0", o.beta2_decay);
    if (o.eps1) require_amount("Adafactor", "eps1", *o.eps1);
    require_amount("Adafactor", "eps2", o.eps2);
    require_amount("Adafactor", "d", o.d);
    require_amount("Adafactor", "weight_decay", o.weight_decay);
  }
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    Sizes rows = parameters_[i].sizes(), columns = rows;
    if (rows.size() < 2) {
      keep(i, "variance", rows);
      continue;
    }
    rows[rows.size() - 1] = 1;
    columns[columns.size() - 2] = 1;
    keep(i, "row_var", rows);
    keep(i, "col_var", columns);
  }
}

void Adafactor::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  const double eps1 = o.eps1.value_or(std::numeric_limits<float>::epsilon());
  Tensor& p = parameters_[i];
  const Tensor old = p.detach(), sign = gradient.cast(DType::F32);
  const Tensor g = o.maximize ? sign.neg() : sign, square = g * g;
  const Tensor fresh = (count(i).log2() * o.beta2_decay).exp2();  // of the average
  const auto average = [&](Tensor& kept, const Tensor& now) {
    put(kept, kept + (now - kept) * fresh);
    return kept;
  };
  Tensor variance;
  if (p.dim() < 2) {
    variance = average(kept(i, 0), square);
  } else {
    const Tensor rows = average(kept(i, 0), square.mean({-1}, true));
    const Tensor columns = average(kept(i, 1), square.mean({-2}, true));
    variance = rows * columns / rows.mean({-2}, true).clamp(eps1);
  }
  const Tensor step = g * variance.clamp(eps1 * eps1).rsqrt();
  const Tensor alpha =
      root_mean_square(old).clamp(o.eps2) * rate(i).minimum(count(i).rsqrt());
  const Tensor bound = (root_mean_square(step) / o.d).clamp(1);
  const Tensor kept = o.weight_decay != 0 ? old * (1.0 - rate(i) * o.weight_decay) : old;
  put(p, (kept - step * (alpha / bound)).cast(p.dtype()));
}

LAMB::LAMB(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& g : groups) require_betas("LAMB", g.options);
  count_steps();
  for (size_t i = 0; i < parameters_.size(); i++) {
    keep(i, "exp_avg", parameters_[i].sizes());
    keep(i, "exp_avg_sq", parameters_[i].sizes());
  }
}

void LAMB::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &m = kept(i, 0), &v = kept(i, 1);
  const Tensor old = p.detach(), sign = gradient.cast(DType::F32);
  const Tensor g = o.maximize ? sign.neg() : sign;
  put(m, m * o.beta1 + g * (1 - o.beta1));
  put(v, v * o.beta2 + g * g * (1 - o.beta2));
  Tensor r = m / correction(i, o.beta1) / ((v / correction(i, o.beta2)).sqrt() + o.eps);
  if (o.weight_decay != 0) r = r + old * o.weight_decay;
  const Tensor trust = ratio_of_norms(norm(old), norm(r));
  put(p, (old - rate(i) * trust * r).cast(p.dtype()));
}

LARS::LARS(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_amount("LARS", "momentum", o.momentum);
    require_amount("LARS", "weight_decay", o.weight_decay);
    require_amount("LARS", "trust", o.trust);
    require_amount("LARS", "eps", o.eps);
    if (o.nesterov && o.momentum == 0)
      fail<InvalidArgument>("LARS: nesterov needs a momentum above 0");
  }
  for (size_t i = 0; i < parameters_.size(); i++)
    if (options(i).momentum != 0) keep(i, "momentum_buffer", parameters_[i].sizes());
}

void LARS::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor& p = parameters_[i];
  const Tensor old = p.detach(), of_p = norm(old), of_g = norm(gradient);
  const Tensor trust =
      Tensor::where((of_p > 0) & (of_g > 0),
                    of_p * o.trust / (of_g + of_p * o.weight_decay + o.eps), 1.0);
  Tensor g = gradient_of(gradient, old, o) * trust;
  if (o.momentum != 0) {
    Tensor& v = kept(i, 0);
    put(v, v * o.momentum + g);
    g = o.nesterov ? g + v * o.momentum : v;
  }
  put(p, (old - rate(i) * g).cast(p.dtype()));
}

Muon::Muon(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& [parameters, o] : groups) {
    require_below_1("Muon", "momentum", o.momentum);
    require_amount("Muon", "weight_decay", o.weight_decay);
    require_amount("Muon", "eps", o.eps);
    if (o.ns_steps < 1) fail<InvalidArgument>("Muon: ns_steps is {}", o.ns_steps);
    for (const Tensor& p : parameters) {
      if (p.dim() != 2)
        fail<InvalidArgument>("Muon: a parameter {} is no matrix: give it to another optimizer",
                              detail::text(p.sizes()));
    }
  }
  for (size_t i = 0; i < parameters_.size(); i++)
    keep(i, "momentum_buffer", parameters_[i].sizes());
}

void Muon::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &v = kept(i, 0);
  const Tensor old = p.detach(), sign = gradient.cast(DType::F32);
  const Tensor g = o.maximize ? sign.neg() : sign;
  put(v, v * o.momentum + g * (1 - o.momentum));
  const Tensor direction = o.nesterov ? g * (1 - o.momentum) + v * o.momentum : v;
  const double wider = double(int64_t(p.size(0))) / double(int64_t(p.size(1)));
  // The coefficients of Jordan et al., 2024.
  const Tensor orthogonal =
      direction.newton_schulz(o.ns_steps, {3.4445, -4.7750, 2.0315}, o.eps);
  const Tensor step = orthogonal * std::sqrt(std::max(1.0, wider));
  const Tensor kept = o.weight_decay != 0 ? old * (1.0 - rate(i) * o.weight_decay) : old;
  put(p, (kept - rate(i) * step).cast(p.dtype()));
}

Lion::Lion(const Groups& groups) : GroupedOptimizer(groups) {
  for (const auto& g : groups) require_betas("Lion", g.options);
  for (size_t i = 0; i < parameters_.size(); i++) keep(i, "exp_avg", parameters_[i].sizes());
}

void Lion::update(size_t i, const Tensor& gradient) {
  const Options& o = options(i);
  Tensor &p = parameters_[i], &m = kept(i, 0);
  const Tensor old = p.detach(), sign = gradient.cast(DType::F32);
  const Tensor g = o.maximize ? sign.neg() : sign;
  const Tensor step = (m * o.beta1 + g * (1 - o.beta1)).sign();
  const Tensor kept = o.weight_decay != 0 ? old * (1.0 - rate(i) * o.weight_decay) : old;
  put(p, (kept - rate(i) * step).cast(p.dtype()));
  put(m, m * o.beta2 + g * (1 - o.beta2));
}

}  // namespace tuff::optim
