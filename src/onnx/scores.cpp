#include "onnx/scores.h"

#include <array>
#include <numbers>

#include "base/check.h"

namespace tuff::onnx {
namespace {

constexpr std::array kTransforms{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
constexpr double kZero = 1e-7;  // scores as small as that stay 0

// The softmax, but for scores of 0.
Tensor softmax_zero(const Tensor& x) {
  const Tensor largest = x.max({-1}, true);
  const Tensor e = Tensor::where(x.abs() > kZero, (x - largest).exp(), x * (-largest).exp());
  const Tensor sum = e.sum({-1}, true);
  return Tensor::where(sum == 0, 0.5, e / sum);
}

// The quantile of the normal distribution, by Winitzki's formula for the inverse of erf, which
// runtimes have.
Tensor probit(const Tensor& x) {
  constexpr double kA = 0.147;
  const Tensor y = 2 * x - 1, log = ((1 - y) * (1 + y)).log();
  const Tensor v = 0.5 * log + 2 / (std::numbers::pi * kA);
  const Tensor root = ((v.square() - log * (1 / kA)).sqrt() - v).sqrt();
  return Tensor::where(y < 0, -root, root) * std::numbers::sqrt2;
}

}  // namespace

Transform transform_of(const Node& node) {
  const std::string name = node.text("post_transform", "");
  const auto count = int64_t(kTransforms.size());
  const int64_t number = node.integer("post_transform", 0);
  if (name.empty() && number >= 0 && number < count) return Transform(number);
  for (int64_t i = 0; i < count; i++)
    if (name == kTransforms[size_t(i)]) return Transform(i);
  fail<InvalidArgument>("post_transform is '{}': one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and "
                        "PROBIT is wanted", name.empty() ? std::to_string(number) : name);
}

Tensor as_floats(const Tensor& x) { return is_float(x.dtype()) ? x : x.cast(DType::F32); }

Tensor transformed(const Tensor& scores, Transform how) {
  if (how == Transform::Probit) return probit(scores);
  const Size width = scores.size(-1);
  if (width.is_number() && int64_t(width) < 2) return scores;
  switch (how) {
    case Transform::Softmax: return scores.softmax(-1);
    case Transform::Logistic: return scores.sigmoid();
    case Transform::SoftmaxZero: return softmax_zero(scores);
    default: return scores;
  }
}

Tensor of_both_classes(const Tensor& score, Transform how, bool is_probability) {
  const bool stays = how == Transform::None || how == Transform::Probit;
  const Tensor first = is_probability && stays ? 1 - score : -score;
  return transformed(Tensor::cat({first, score}, -1), how);
}

Labels::Labels(const Node& node, const char* integers, const char* strings)
    : labels_(node.integers(integers)), device_(node.device()) {
  if (!node.texts(strings).empty())
    fail<Unsupported>("the attribute {} has labels that are strings: tensors have none, so convert "
                      "the model with numbers as labels ({})", strings, integers);
}

Tensor Labels::at(const Tensor& positions) const {
  if (labels_.empty()) return positions.cast(DType::I64);
  const Tensor table = Tensor::from(labels_, {count(), 1}, {.device = device_});
  return Tensor::embedding(table, positions).squeeze(-1);
}

}  // namespace tuff::onnx
