// LBFGS as PyTorch's optim.LBFGS is without a line search: two loops over the last changes.
#include <algorithm>
#include <cmath>

#include <tuff/optim.h>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/impl.h"

namespace tuff::optim {

struct LBFGS::History {
  std::vector<Tensor> changes, steps;  // of gradients and parameters, oldest first
  std::vector<double> weights;         // 1 / (change . step)
  Tensor direction, gradient;          // the last ones
  double size = 0, scale = 1;          // of the last step; of the first guess at the inverse
  int64_t iterations = 0;
};

namespace {

double dot(const Tensor& a, const Tensor& b) { return (a * b).sum().item(); }
double largest(const Tensor& x) { return x.abs().max().item(); }

}  // namespace

LBFGS::LBFGS(std::vector<Tensor> parameters, const Options& options)
    : Optimizer(std::move(parameters), options.lr),
      options_(options),
      history_(std::make_unique<History>()) {
  if (options.max_iter < 1 || options.history_size < 1)
    fail<InvalidArgument>("LBFGS: max_iter {} and history_size {} have to be above 0",
                          options.max_iter, options.history_size);
  for (const Tensor& p : parameters_) {
    if (p.device() != parameters_[0].device())
      fail<InvalidArgument>("LBFGS: parameters on {} and {}", parameters_[0].device(), p.device());
  }
}
LBFGS::~LBFGS() = default;

void LBFGS::loaded() { *history_ = {}; }

void LBFGS::update(size_t, const Tensor&) {
  fail<InvalidArgument>("LBFGS: give step() a function that computes the loss and its gradients");
}

// The gradients of all parameters as one vector.
Tensor LBFGS::evaluated(const std::function<Tensor()>& closure, double& loss) {
  zero_grad();
  const Tensor value = closure();
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters_) {
    const Tensor g = p.grad().defined() ? p.grad() : p.zeros_like();
    parts.push_back(g.cast(DType::F32).flatten());
  }
  const Tensor flat = Tensor::cat(parts);
  Tensor::realize({value, flat});
  loss = value.item();
  return flat;
}

void LBFGS::add_to_parameters(const Tensor& direction, double by) {
  int64_t at = 0;
  for (Tensor& p : parameters_) {
    const int64_t count = p.numel();
    const Tensor part = direction.narrow(0, at, count).reshape(p.sizes());
    detail::store(p, (p.detach() + part * by).cast(p.dtype()));
    at += count;
  }
  Tensor::realize(parameters_);
}

// Chooses the next direction and goes there; false where it does not lead down.
bool LBFGS::moved(const Tensor& gradient) {
  History& h = *history_;
  Tensor q = -gradient;
  if (h.iterations++ > 0) {
    const Tensor change = (gradient - h.gradient).realize();
    const Tensor step = (h.direction * h.size).realize();
    if (const double curvature = dot(change, step); curvature > 1e-10) {
      if (int64_t(h.steps.size()) == options_.history_size) {
        h.changes.erase(h.changes.begin());
        h.steps.erase(h.steps.begin());
        h.weights.erase(h.weights.begin());
      }
      h.changes.push_back(change);
      h.steps.push_back(step);
      h.weights.push_back(1 / curvature);
      h.scale = curvature / dot(change, change);
    }
    std::vector<double> part(h.steps.size());
    for (size_t i = part.size(); i-- > 0;) {
      part[i] = dot(h.steps[i], q) * h.weights[i];
      q = (q - h.changes[i] * part[i]).realize();
    }
    q = q * h.scale;
    for (size_t i = 0; i < part.size(); i++)
      q = (q + h.steps[i] * (part[i] - dot(h.changes[i], q) * h.weights[i])).realize();
  }
  h.direction = q.realize();
  h.gradient = gradient;
  const double lr = lr_value();
  h.size = h.iterations == 1 ? std::min(1.0, 1 / gradient.abs().sum().item()) * lr : lr;
  if (dot(gradient, h.direction) > -options_.tolerance_change) return false;
  add_to_parameters(h.direction, h.size);
  return true;
}

double LBFGS::step(const std::function<Tensor()>& closure) {
  if (engine::Capture::current())
    fail<InvalidArgument>("LBFGS: the host decides how many steps there are: not in a Jit");
  double first = 0;
  Tensor gradient = evaluated(closure, first);
  double loss = first;
  const int64_t most = options_.max_iter + options_.max_iter / 4;  // evaluations, as PyTorch has it
  for (int64_t i = 1; largest(gradient) > options_.tolerance_grad; i++) {
    if (!moved(gradient) || i == options_.max_iter) break;
    const double before = loss;
    gradient = evaluated(closure, loss);
    const double change = largest(history_->direction) * history_->size;
    if (i + 1 >= most || std::min(change, std::abs(loss - before)) < options_.tolerance_change)
      break;
  }
  return first;
}

}  // namespace tuff::optim
