// Normalization, dropout, losses.
#include <numeric>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// (c) as (1, c, 1, ...), to stand beside (n, c, ...).
Tensor per_channel(const Tensor& x, int64_t rank) {
  Sizes sizes(size_t(rank), 1);
  sizes.at(1) = x.size(0);
  return x.reshape(sizes);
}

Axes axes_from(int64_t first, int64_t rank) {
  Axes out;
  for (int64_t a = first; a < rank; a++) out.push_back(a);
  return out;
}

Outputs training_batchnorm(const Node& node, double epsilon) {
  const Tensor x = node.tensor(0), mean = node.tensor(3), var = node.tensor(4);
  const double momentum = node.number("momentum", 0.9);
  Axes axes = axes_from(2, x.dim());
  axes.insert(axes.begin(), 0);
  const Tensor wide = x.cast(accumulator(x.dtype())), own_mean = wide.mean(axes),
               own_var = wide.var(axes, false, 0);
  const auto channel = [&](const Tensor& t) { return per_channel(t, x.dim()); };
  const Tensor out = (wide - channel(own_mean)) * channel((own_var + epsilon).rsqrt()) *
                         channel(node.tensor(1)) + channel(node.tensor(2));
  return {out.cast(x.dtype()),
          (mean * momentum + own_mean * (1 - momentum)).cast(mean.dtype()),
          (var * momentum + own_var * (1 - momentum)).cast(var.dtype())};
}

Outputs batchnorm(const Node& node) {
  const Tensor x = node.tensor(0);
  const double epsilon = node.number("epsilon", 1e-5);
  const bool trains = node.version() >= 14 ? node.integer("training_mode", 0) != 0
                      : node.version() < 7 ? !node.integer("is_test", 0)
                                           : false;
  if (trains) return training_batchnorm(node, epsilon);
  return {x.batchnorm(node.tensor(3), node.tensor(4), node.tensor(1), node.tensor(2), false, 0.1,
                      epsilon)
              .cast(x.dtype())};
}

// Mean 0 and variance 1 along axes, and the two that it took.
struct Normalized {
  Tensor x, mean, inverse;
};
Normalized normalized(const Tensor& x, const Axes& axes, double epsilon) {
  const Tensor wide = x.cast(accumulator(x.dtype())), mean = wide.mean(axes, true),
               centered = wide - mean,
               inverse = (centered.square().mean(axes, true) + epsilon).rsqrt();
  return {centered * inverse, mean, inverse};
}

Outputs instancenorm(const Node& node) {
  const Tensor x = node.tensor(0);
  const Tensor y = normalized(x, axes_from(2, x.dim()), node.number("epsilon", 1e-5)).x;
  return {(y * per_channel(node.tensor(1), x.dim()) + per_channel(node.tensor(2), x.dim()))
              .cast(x.dtype())};
}

// Scale and bias are per group before version 21, per channel since then.
Outputs groupnorm(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t groups = node.positive("num_groups");
  Sizes apart{x.size(0), groups, x.size(1) / groups};
  for (int64_t a = 2; a < x.dim(); a++) apart.push_back(x.size(a));
  const double epsilon = node.number("epsilon", 1e-5);
  Tensor y = normalized(x.reshape(apart), axes_from(2, x.dim() + 1), epsilon).x;
  const Tensor scale = node.tensor(1), bias = node.tensor(2);
  if (node.version() < 21)
    return {(y * per_channel(scale, x.dim() + 1) + per_channel(bias, x.dim() + 1))
                .cast(x.dtype())
                .reshape(x.sizes())};
  y = y.reshape(x.sizes());
  return {(y * per_channel(scale, x.dim()) + per_channel(bias, x.dim())).cast(x.dtype())};
}

Outputs layernorm(const Node& node) {
  const Tensor x = node.tensor(0);
  const Axes axes = axes_from(axis_of(node.integer("axis", -1), x.dim()), x.dim());
  const Normalized n = normalized(x, axes, node.number("epsilon", 1e-5));
  Tensor y = n.x.cast(x.dtype()) * node.tensor(1);
  if (node.has(2)) y = y + node.tensor(2);
  return {y.cast(x.dtype()), n.mean, n.inverse};
}

Outputs rmsnorm(const Node& node) {
  const Tensor x = node.tensor(0), wide = x.cast(accumulator(x.dtype()));
  const Axes axes = axes_from(axis_of(node.integer("axis", -1), x.dim()), x.dim());
  const Tensor inverse =
      (wide.square().mean(axes, true) + node.number("epsilon", 1e-5)).rsqrt();
  return {((wide * inverse).cast(x.dtype()) * node.tensor(1)).cast(x.dtype())};
}

// Each element by what its neighbours along the channels have (Krizhevsky et al., 2012).
Outputs local_response(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t n = node.positive("size");
  if (x.dim() < 2) fail<ShapeError>("channels are wanted beside {}", shape_text(x.sizes()));
  std::vector<int64_t> pads(size_t(x.dim() - 1) * 2);
  pads[pads.size() - 2] = (n - 1) / 2, pads[pads.size() - 1] = n - 1 - (n - 1) / 2;
  const Tensor sums = x.square().pad(pads).unfold(1, n, 1).sum({-1});
  const double alpha = node.number("alpha", 1e-4) / double(n);
  return {x / (sums * alpha + node.number("bias", 1)).pow(node.number("beta", 0.75))};
}

Outputs lp_normalization(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t axis = axis_of(node.integer("axis", -1), x.dim());
  const Tensor norm = node.integer("p", 2) == 1 ? x.abs().sum({axis}, true)
                                                : x.square().sum({axis}, true).sqrt();
  return {Tensor::where(norm == 0, x * 0, x / norm)};
}

Outputs mean_variance(const Node& node) {
  const Tensor x = node.tensor(0);
  const Axes axes = axes_of(node.integers("axes", {0, 2, 3}), x.dim());
  const Tensor mean = x.mean(axes, true),
               spread = (x.square().mean(axes, true) - mean.square()).sqrt();
  return {(x - mean) / (spread + 1e-9)};
}

// ---- dropout

Outputs dropout(const Node& node) {
  const Tensor x = node.tensor(0);
  const auto ones = [&] { return Tensor::full(x.sizes(), 1, node.options(DType::Bool)); };
  const bool trains = node.version() >= 12 && node.has(2) && node.integer(2) != 0;
  const double ratio = node.version() < 12 ? node.number("ratio", 0.5)
                       : node.has(1)       ? node.number(1)
                                           : 0.5;
  if (!trains || ratio == 0) return {x, node.wants(1) ? Value(ones()) : Value()};
  const Tensor kept = Tensor::rand(x.sizes(), node.options(DType::F32)) >= ratio;
  return {Tensor::where(kept, x * (1 / (1 - ratio)), x * 0).cast(x.dtype()), kept};
}

// ---- losses

Reduction reduction_of(const Node& node) {
  const std::string word = node.text("reduction", "mean");
  if (word == "none") return Reduction::None;
  if (word == "sum") return Reduction::Sum;
  if (word == "mean") return Reduction::Mean;
  fail<InvalidArgument>("the reduction '{}'", word);
}

constexpr int64_t kNothingIgnored = std::numeric_limits<int64_t>::min();

Outputs nll_loss(const Node& node) {
  return {node.tensor(0).nll_loss(node.tensor(1), node.tensor_or_none(2),
                                  node.integer("ignore_index", kNothingIgnored),
                                  reduction_of(node))};
}

Outputs cross_entropy(const Node& node) {
  const Tensor logs = node.tensor(0).log_softmax(1);
  return {logs.nll_loss(node.tensor(1), node.tensor_or_none(2),
                        node.integer("ignore_index", kNothingIgnored), reduction_of(node)),
          logs};
}

constexpr Operator kRows[] = {
    {"", "BatchNormalization", 1, kNewest, batchnorm},
    {"", "Dropout", 1, kNewest, dropout},
    {"", "GroupNormalization", 18, kNewest, groupnorm},
    {"", "InstanceNormalization", 6, kNewest, instancenorm},
    {"", "LRN", 1, kNewest, local_response},
    {"", "LayerNormalization", 17, kNewest, layernorm},
    {"", "LpNormalization", 1, kNewest, lp_normalization},
    {"", "MeanVarianceNormalization", 9, kNewest, mean_variance},
    {"", "NegativeLogLikelihoodLoss", 12, kNewest, nll_loss},
    {"", "RMSNormalization", 23, kNewest, rmsnorm},
    {"", "SoftmaxCrossEntropyLoss", 12, kNewest, cross_entropy},
};

}  // namespace

std::span<const Operator> norm_operators() { return kRows; }

}  // namespace tuff::onnx
