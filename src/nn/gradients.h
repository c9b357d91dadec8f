// What optimizers make of a gradient before they use it.
#pragma once

#include <tuff/tensor.h>

#include "nn/amounts.h"

namespace tuff::optim {

// In F32, its sign turned to maximize, with the decay of the parameter `old` added.
template <class Options>
Tensor gradient_of(const Tensor& gradient, const Tensor& old, const Options& o) {
  Tensor g = gradient.cast(DType::F32);
  if (o.maximize) g = g.neg();
  return o.weight_decay != 0 ? g + old * o.weight_decay : g;
}

template <class Options>
void require_betas(const char* optimizer, const Options& o) {
  require_below_1(optimizer, "beta1", o.beta1);
  require_below_1(optimizer, "beta2", o.beta2);
  if constexpr (requires { o.eps; }) require_amount(optimizer, "eps", o.eps);
  require_amount(optimizer, "weight_decay", o.weight_decay);
}

}  // namespace tuff::optim
