// Gradient clipping: lazy, on .grad.
#include <cmath>

#include <tuff/optim.h>

#include "base/check.h"

namespace tuff::optim {
namespace {

std::vector<Tensor> with_gradients(const char* what, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters) {
    if (p.grad().defined()) out.push_back(p);
  }
  if (out.empty())
    fail<InvalidArgument>("{}: no parameter has a gradient: call backward() before", what);
  return out;
}

Tensor norm_of(const std::vector<Tensor>& parameters, double p) {
  Tensor total;
  for (const Tensor& t : parameters) {
    const Tensor g = t.grad().cast(t.dtype() == DType::F64 ? DType::F64 : DType::F32);
    const Tensor part = std::isinf(p) ? g.abs().max()
                        : p == 2      ? g.square().sum()
                                      : g.abs().pow(p).sum();
    total = !total.defined() ? part : std::isinf(p) ? total.maximum(part) : total + part;
  }
  return std::isinf(p) ? total : p == 2 ? total.sqrt() : total.pow(1 / p);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  if (!(norm_type > 0))
    fail<InvalidArgument>("clip_grad_norm_: norm_type {} is not positive", norm_type);
  if (!(max_norm >= 0)) fail<InvalidArgument>("clip_grad_norm_: max_norm {} is negative", max_norm);
  const std::vector<Tensor> clipped = with_gradients("clip_grad_norm_", parameters);
  const Tensor norm = norm_of(clipped, norm_type);
  const Tensor factor = (max_norm / (norm + 1e-6)).clamp({}, 1.0);
  for (Tensor p : clipped) p.set_grad((p.grad() * factor).cast(p.grad().dtype()));
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  if (!(clip_value >= 0))
    fail<InvalidArgument>("clip_grad_value_: clip_value {} is negative", clip_value);
  for (Tensor p : with_gradients("clip_grad_value_", parameters))
    p.set_grad(p.grad().clamp(-clip_value, clip_value));
}

}  // namespace tuff::optim
