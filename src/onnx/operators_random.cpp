// Draws, from the generator of the device: the attribute `seed` is not heeded, as
// Tensor::manual_seed() is for the whole process.
#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

DType float_type(const Node& node, DType otherwise) {
  return node.dtype("dtype").value_or(otherwise);
}

Tensor normal_of(const Node& node, const Sizes& sizes, DType dtype) {
  return Tensor::normal(node.number("mean", 0), node.number("scale", 1), sizes,
                        node.options(dtype));
}
Tensor uniform_of(const Node& node, const Sizes& sizes, DType dtype) {
  return Tensor::uniform(sizes, node.number("low", 0), node.number("high", 1),
                         node.options(dtype));
}

Outputs normal(const Node& node) {
  return {normal_of(node, Sizes(node.integers("shape")), float_type(node, DType::F32))};
}
Outputs normal_like(const Node& node) {
  return {normal_of(node, node.value(0).sizes(), float_type(node, node.value(0).dtype()))};
}
Outputs uniform(const Node& node) {
  return {uniform_of(node, Sizes(node.integers("shape")), float_type(node, DType::F32))};
}
Outputs uniform_like(const Node& node) {
  return {uniform_of(node, node.value(0).sizes(), float_type(node, node.value(0).dtype()))};
}

// 1 with the probability that the input says.
Outputs bernoulli(const Node& node) {
  const Tensor p = node.tensor(0);
  return {(Tensor::rand(p.sizes(), node.options(DType::F32)) < p)
              .cast(float_type(node, p.dtype()))};
}

// Positions, drawn with weights of which the input has the logarithms.
Outputs multinomial(const Node& node) {
  const Tensor logs = node.tensor(0);
  return {logs.softmax(-1)
              .multinomial(node.integer("sample_size", 1), true)
              .cast(float_type(node, DType::I32))};
}

constexpr Operator kRows[] = {
    {"", "Bernoulli", 15, kNewest, bernoulli},
    {"", "Multinomial", 7, kNewest, multinomial},
    {"", "RandomNormal", 1, kNewest, normal},
    {"", "RandomNormalLike", 1, kNewest, normal_like},
    {"", "RandomUniform", 1, kNewest, uniform},
    {"", "RandomUniformLike", 1, kNewest, uniform_like},
};

}  // namespace

std::span<const Operator> random_operators() { return kRows; }

}  // namespace tuff::onnx
