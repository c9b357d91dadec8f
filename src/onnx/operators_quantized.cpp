// Quantization: integers with a scale and a zero point.
#include <algorithm>

#include "base/check.h"
#include "onnx/operators.h"
#include "onnx/windows.h"

namespace tuff::onnx {

using io::onnx::ElementType;

namespace {

// A scale or zero point beside x: one number, one for each position of an axis, or one for each
// block of an axis.
Tensor beside(const Tensor& x, const Tensor& parameter, int64_t axis, int64_t block) {
  if (parameter.dim() == 0) return parameter;
  if (parameter.dim() == 1 && parameter.size(0) == 1)
    return x.dim() == 0 ? parameter.reshape({}) : parameter;
  axis = axis_of(axis, x.dim());
  if (block) return parameter.repeat_interleave(block, axis).narrow(axis, 0, x.size(axis));
  if (parameter.dim() != 1) return parameter;
  Sizes sizes(size_t(x.dim()), 1);
  sizes[size_t(axis)] = parameter.size(0);
  return parameter.reshape(sizes);
}

Outputs quantize(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t axis = node.integer("axis", 1), block = node.integer("block_size", 0);
  const ElementType to = node.has(2) ? node.value(2).element()
                                     : node.element("output_dtype").value_or(ElementType::Uint8);
  const DType wide = accumulator(is_float(x.dtype()) ? x.dtype() : DType::F32);
  const Tensor scale = beside(x, node.tensor(1), axis, block).cast(wide);
  Tensor y = x.cast(wide) / scale;
  if (is_float(dtype_of(to))) {  // whose zero point is 0
    const Conversion how{.saturate = node.integer("saturate", 1) != 0};
    return {Value(converted(y, to, how)).of(to)};
  }
  y = y.round();
  if (node.has(2)) y = y + beside(x, node.tensor(2), axis, block).cast(wide);
  return {Value(saturated(y, to)).of(to)};
}

Outputs dequantize(const Node& node) {
  const Tensor x = node.tensor(0), scale = node.tensor(1);
  const int64_t axis = node.integer("axis", 1), block = node.integer("block_size", 0);
  const DType to = node.dtype("output_dtype").value_or(scale.dtype());
  const auto number = [&](const Tensor& t) {
    return is_float(t.dtype()) ? t.cast(DType::F32) : t.cast(DType::I32);
  };
  Tensor y = number(x);
  if (node.has(2)) y = y - beside(x, number(node.tensor(2)), axis, block);
  return {(y.cast(DType::F32) * beside(x, scale, axis, block).cast(DType::F32)).cast(to)};
}

Outputs dynamic_quantize(const Node& node) {
  const Tensor x = node.tensor(0);
  const Tensor low = x.min().clamp({}, 0.0), high = x.max().clamp(0.0);
  const Tensor scale = (high - low) / 255.0;
  const Tensor zero = (-low / scale).round().clamp(0.0, 255.0);
  return {saturated((x / scale).round() + zero, ElementType::Uint8), scale, zero.cast(DType::U8)};
}

// x minus its zero point; one for each row, or, `by_column`, for each of the last axis.
Tensor centered(const Tensor& x, const Tensor& zero, bool by_column) {
  const Tensor wide = x.cast(DType::I32);
  if (!zero.defined()) return wide;
  const Tensor z = zero.cast(DType::I32);
  const bool each = z.dim() == 1 && z.size(0) != 1;
  return wide - (each && !by_column ? z.unsqueeze(-1) : z);
}

Outputs matmul_integer(const Node& node) {
  return {centered(node.tensor(0), node.tensor_or_none(2), false)
              .matmul(centered(node.tensor(1), node.tensor_or_none(3), true))};
}

// One for each output channel, which is the first axis of the weight.
Tensor centered_weight(const Tensor& weight, const Tensor& zero) {
  if (!zero.defined()) return weight.cast(DType::I32);
  return weight.cast(DType::I32) - beside(weight, zero.cast(DType::I32), 0, 0);
}

Tensor integer_conv(const Node& node, const Tensor& x, const Tensor& weight) {
  const Windows w = windows_of(node, spatial(weight.sizes()), x.sizes());
  return conv(x, weight, {}, w, node.integer("group", 1));
}

Outputs conv_integer(const Node& node) {
  return {integer_conv(node, centered(node.tensor(0), node.tensor_or_none(2), true),
                       centered_weight(node.tensor(1), node.tensor_or_none(3)))};
}

// A sum of products in the scale and zero point of the result.
Tensor requantized(const Tensor& sums, const Tensor& scale, const Tensor& zero) {
  const Tensor y = (sums.cast(DType::F32) * scale).round() + zero.cast(DType::F32);
  return saturated(y, element_of(zero.dtype()));
}

Tensor rows(const Tensor& t) { return t.dim() == 1 && t.size(0) != 1 ? t.unsqueeze(-1) : t; }

Outputs qlinear_matmul(const Node& node) {
  const Tensor sums = centered(node.tensor(0), node.tensor(2), false)
                          .matmul(centered(node.tensor(3), node.tensor(5), true));
  const auto wide = [&](size_t i) { return node.tensor(i).cast(DType::F32); };
  const Tensor scale = rows(wide(1)) * wide(4) / rows(wide(6));
  return {requantized(sums, scale, node.tensor(7))};
}

Outputs qlinear_conv(const Node& node) {
  const Tensor x = centered(node.tensor(0), node.tensor(2), true),
               weight = centered_weight(node.tensor(3), node.tensor(5));
  Tensor sums = integer_conv(node, x, weight);
  Sizes channel(size_t(sums.dim()), 1);
  channel[1] = sums.size(1);
  if (node.has(8)) sums = sums + node.tensor(8).cast(DType::I32).reshape(channel);
  Tensor scale = node.tensor(4);
  if (scale.dim() == 1 && scale.size(0) != 1) scale = scale.reshape(channel);
  return {requantized(sums, node.tensor(1) * scale / node.tensor(6), node.tensor(7))};
}

constexpr Operator kRows[] = {
    {"", "ConvInteger", 10, kNewest, conv_integer},
    {"", "DequantizeLinear", 10, kNewest, dequantize},
    {"", "DynamicQuantizeLinear", 11, kNewest, dynamic_quantize},
    {"", "MatMulInteger", 10, kNewest, matmul_integer},
    {"", "QLinearConv", 10, kNewest, qlinear_conv},
    {"", "QLinearMatMul", 10, kNewest, qlinear_matmul},
    {"", "QuantizeLinear", 10, kNewest, quantize},
};

}  // namespace

std::span<const Operator> quantized_operators() { return kRows; }

}  // namespace tuff::onnx
