// Steps of optimizers (ai.onnx.preview.training): parameters and states as they are afterwards.
#include <functional>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

constexpr const char* kTraining = "ai.onnx.preview.training";

// A parameter, its gradient and its states; what a step makes of the parameter and the states.
using Group = std::vector<Tensor>;

// Inputs: the rate, the count of steps before, all parameters, all gradients, all of each state.
Outputs for_each(const Node& node, size_t states,
                 const std::function<Group(const Group&)>& stepped) {
  const size_t kinds = 2 + states;
  if (node.count() < 2 + kinds || (node.count() - 2) % kinds != 0)
    fail<InvalidArgument>("{} inputs are not 2 and {} for each parameter", node.count(), kinds);
  const size_t n = (node.count() - 2) / kinds;
  Outputs out(n * (1 + states));
  for (size_t i = 0; i < n; i++) {
    Group group;
    for (size_t k = 0; k < kinds; k++) group.push_back(node.tensor(2 + k * n + i));
    const Group made = stepped(group);
    for (size_t k = 0; k < made.size(); k++) out[k * n + i] = made[k];
  }
  return out;
}

Tensor regularized(const Node& node, const Group& g) {
  return g[0] * node.number("norm_coefficient", 0) + g[1];
}

Tensor steps_before(const Node& node) { return node.tensor(1).cast(DType::F32); }

// 1 - base^steps
Tensor correction(const Node& node, double base) {
  return 1 - Tensor::pow(base, steps_before(node));
}

Outputs adagrad(const Node& node) {
  const Tensor rate =
      node.tensor(0) / (steps_before(node) * node.number("decay_factor", 0) + 1);
  const double epsilon = node.number("epsilon", 1e-6);
  return for_each(node, 1, [&](const Group& g) -> Group {
    const Tensor gradient = regularized(node, g), sum = g[2] + gradient.square();
    return {g[0] - rate.cast(g[0].dtype()) * gradient / (sum.sqrt() + epsilon), sum};
  });
}

Outputs adam(const Node& node) {
  const double alpha = node.number("alpha", 0.9), beta = node.number("beta", 0.999),
               epsilon = node.number("epsilon", 1e-6);
  const Tensor given = node.tensor(0);
  const Tensor rate = Tensor::where(
      steps_before(node) > 0, given * correction(node, beta).sqrt() / correction(node, alpha),
      given);
  return for_each(node, 2, [&](const Group& g) -> Group {
    const Tensor gradient = regularized(node, g), first = g[2] * alpha + gradient * (1 - alpha),
                 second = g[3] * beta + gradient.square() * (1 - beta);
    const Tensor x = g[0] - rate.cast(g[0].dtype()) * (first / (second.sqrt() + epsilon));
    return {x * (1 - node.number("norm_coefficient_post", 0)), first, second};
  });
}

Outputs momentum(const Node& node) {
  const double alpha = node.number("alpha"), beta = node.number("beta");
  const std::string mode = node.text("mode");
  if (mode != "standard" && mode != "nesterov")
    fail<InvalidArgument>("mode '{}' is neither standard nor nesterov", mode);
  const Tensor share = Tensor::where(
      steps_before(node) > 0, Tensor::full({}, beta, node.options(DType::F32)), 1.0);
  return for_each(node, 1, [&](const Group& g) -> Group {
    const DType dtype = g[0].dtype();
    const Tensor gradient = regularized(node, g),
                 velocity = g[2] * alpha + gradient * share.cast(dtype),
                 step = mode == "nesterov" ? gradient + velocity * alpha : velocity;
    return {g[0] - step * node.tensor(0).cast(dtype), velocity};
  });
}

constexpr Operator kRows[] = {
    {kTraining, "Adagrad", 1, kNewest, adagrad},
    {kTraining, "Adam", 1, kNewest, adam},
    {kTraining, "Momentum", 1, kNewest, momentum},
};

}  // namespace

std::span<const Operator> training_operators() { return kRows; }

}  // namespace tuff::onnx
