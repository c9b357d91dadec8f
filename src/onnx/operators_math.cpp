// Element by element: arithmetic, comparisons, logic, activations, casts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "onnx/host.h"
#include "onnx/operators.h"

namespace tuff::onnx {

using io::onnx::ElementType;

namespace {

// ---- two operands

// A number that the host knows and that adds no axes stays a number: kernels hold it as a constant.
bool is_number_beside(const Value& v, const Value& other) {
  return v.folds() && !other.folds() && v.dtype() != DType::Bool && v.numbers().count() == 1 &&
         v.rank() <= other.rank() &&
         (v.numbers().is_float() || v.numbers().ints[0].is_number());
}

template <class F>
Tensor with_operands(const Node& node, const F& f) {
  const Value &a = node.value(0), &b = node.value(1);
  if (is_number_beside(a, b)) return f(a.numbers().number(0), node.tensor(1));
  if (is_number_beside(b, a)) return f(node.tensor(0), b.numbers().number(0));
  return f(node.tensor(0), node.tensor(1));
}

// Before version 7, `broadcast` lines the second operand's first axis up with `axis` of the first.
Value aligned(const Node& node) {
  const Value &a = node.value(0), &b = node.value(1);
  if (!node.has("axis") || node.version() >= 7) return b;
  const int64_t axis = axis_of(node.integer("axis"), a.rank());
  Sizes sizes = b.sizes();
  sizes.resize(size_t(std::max(b.rank(), a.rank() - axis)), 1);
  return node.tensor(1).reshape(sizes);
}

template <class F>
Outputs binary(const Node& node, IntegerFunction of_integers, FloatFunction of_floats,
               const F& of_tensors, DType result = DType::Void) {
  if (node.folds())
    return {host_binary(node.value(0).numbers(), node.value(1).numbers(),
                        result == DType::Void ? node.value(0).dtype() : result, of_integers,
                        of_floats)};
  if (node.version() < 7 && node.has("axis"))
    return {of_tensors(node.tensor(0), aligned(node).tensor(node.device()))};
  return {with_operands(node, of_tensors)};
}

Outputs add(const Node& node) {
  return binary(
      node, [](const Size& a, const Size& b) { return a + b; },
      [](double a, double b) { return a + b; },
      [](const auto& a, const auto& b) { return a + b; });
}
Outputs sub(const Node& node) {
  return binary(
      node, [](const Size& a, const Size& b) { return a - b; },
      [](double a, double b) { return a - b; },
      [](const auto& a, const auto& b) { return a - b; });
}
Outputs mul(const Node& node) {
  return binary(
      node, [](const Size& a, const Size& b) { return a * b; },
      [](double a, double b) { return a * b; },
      [](const auto& a, const auto& b) { return a * b; });
}

// Quotients of integers are rounded toward 0. Those of tensors by 0 are 0, as tuff has it.
Size truncated_quotient(const Size& a, const Size& b) {
  if (!a.is_number() || !b.is_number()) return a / b;
  if (int64_t(b) == 0) fail<InvalidArgument>("a division by 0");
  if (int64_t(b) == -1) return Size(int64_t(-uint64_t(int64_t(a))));  // the least wraps
  return int64_t(a) / int64_t(b);
}
Tensor quotient(const Tensor& a, const Tensor& b) {
  if (!is_int(a.dtype())) return a / b;
  return is_signed(a.dtype()) ? (a - a.fmod(b)).floor_divide(b) : a.floor_divide(b);
}
Outputs div(const Node& node) {
  if (is_int(node.value(0).dtype()) && !node.folds())
    return {quotient(node.tensor(0), aligned(node).tensor(node.device()))};
  return binary(
      node, truncated_quotient, [](double a, double b) { return a / b; },
      [](const auto& a, const auto& b) { return a / b; });
}

Outputs mod(const Node& node) {
  if (node.integer("fmod", 0)) return {node.tensor(0).fmod(node.tensor(1))};
  if (!node.folds()) return {node.tensor(0).remainder(node.tensor(1))};
  const auto of_integers = [](const Size& a, const Size& b) -> Size {
    if (!a.is_number() || !b.is_number()) return a % b;
    if (int64_t(b) == 0) fail<InvalidArgument>("a division by 0");
    if (int64_t(b) == -1) return 0;
    const int64_t rest = int64_t(a) % int64_t(b);
    return rest != 0 && (rest < 0) != (int64_t(b) < 0) ? rest + int64_t(b) : rest;
  };
  const auto of_floats = [](double a, double b) { return a - b * std::floor(a / b); };
  return {host_binary(node.value(0).numbers(), node.value(1).numbers(), node.value(0).dtype(),
                      of_integers, of_floats)};
}

// Multiplications and roots take a fraction of the time of a power that a tensor holds. The
// exponent of an initializer is taken for a number too, but where it is trained.
std::optional<Number> known_exponent(const Value& exponent, const Node& node) {
  if (!exponent.has_numbers() || exponent.numbers().count() != 1) return {};
  if (!exponent.folds() && exponent.tensor(node.device()).requires_grad()) return {};
  return exponent.numbers().number(0);
}

// The result has the base's type.
Outputs pow(const Node& node) {
  const Tensor base = node.tensor(0);
  const Value exponent = aligned(node);
  if (is_int(base.dtype()) && !is_int(exponent.dtype()))
    return {base.cast(DType::F32).pow(exponent.tensor(node.device())).cast(base.dtype())};
  const std::optional<Number> number = known_exponent(exponent, node);
  if (number && exponent.rank() <= base.dim()) return {base.pow(*number).cast(base.dtype())};
  return {base.pow(exponent.tensor(node.device()).cast(base.dtype())).cast(base.dtype())};
}

template <class F>
Outputs compare(const Node& node, IntegerFunction of_integers, FloatFunction of_floats,
                const F& of_tensors) {
  return binary(node, of_integers, of_floats, of_tensors, DType::Bool);
}

#define TUFF_ONNX_COMPARE(function, op)                                \
  Outputs function(const Node& node) {                                 \
    return compare(                                                    \
        node, [](const Size& a, const Size& b) { return Size(a op b ? 1 : 0); }, \
        [](double a, double b) { return a op b ? 1.0 : 0.0; },         \
        [](const auto& a, const auto& b) { return a op b; });          \
  }
TUFF_ONNX_COMPARE(equal, ==)
TUFF_ONNX_COMPARE(less, <)
TUFF_ONNX_COMPARE(less_or_equal, <=)
TUFF_ONNX_COMPARE(greater, >)
TUFF_ONNX_COMPARE(greater_or_equal, >=)
#undef TUFF_ONNX_COMPARE

// ---- logic and bits

Size truth(const Size& s) { return Size(int64_t(s) != 0 ? 1 : 0); }

#define TUFF_ONNX_BITS(function, op)                                                       \
  Outputs function(const Node& node) {                                                     \
    return binary(                                                                         \
        node, [](const Size& a, const Size& b) { return Size(int64_t(a) op int64_t(b)); }, \
        nullptr, [](const auto& a, const auto& b) { return a op b; });                     \
  }
TUFF_ONNX_BITS(bits_and, &)
TUFF_ONNX_BITS(bits_or, |)
TUFF_ONNX_BITS(bits_xor, ^)
#undef TUFF_ONNX_BITS

Outputs bit_shift(const Node& node) {
  const Tensor x = node.tensor(0), count = node.tensor(1);
  const std::string direction = node.text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    fail<InvalidArgument>("direction is '{}'", direction);
  return {direction == "LEFT" ? x.bitwise_left_shift(count) : x.bitwise_right_shift(count)};
}

Outputs logical_not(const Node& node) {
  if (node.folds())
    return {host_map(node.value(0).numbers(),
                     [](const Size& s) { return Size(1) - truth(s); }, nullptr)};
  return {node.tensor(0).logical_not()};
}

Outputs where(const Node& node) {
  if (node.folds())
    return {host_where(node.value(0).numbers(), node.value(1).numbers(),
                       node.value(2).numbers())};
  return {Tensor::where(node.tensor(0), node.tensor(1), node.tensor(2))};
}

// ---- any number of operands

template <class F>
Outputs fold_all(const Node& node, IntegerFunction of_integers, FloatFunction of_floats,
                 const F& of_tensors) {
  if (node.folds()) {
    HostNumbers out = node.value(0).numbers();
    for (size_t i = 1; i < node.count(); i++)
      out = host_binary(out, node.value(i).numbers(), out.dtype, of_integers, of_floats);
    return {out};
  }
  Tensor out = node.tensor(0);
  for (size_t i = 1; i < node.count(); i++) out = of_tensors(out, node.tensor(i));
  return {out};
}

Outputs sum(const Node& node) {
  return fold_all(
      node, [](const Size& a, const Size& b) { return a + b; },
      [](double a, double b) { return a + b; },
      [](const Tensor& a, const Tensor& b) { return a + b; });
}
Outputs mean(const Node& node) {
  Tensor total = node.tensor(0);
  for (size_t i = 1; i < node.count(); i++) total = total + node.tensor(i);
  return {total / double(node.count())};
}
Outputs largest(const Node& node) {
  return fold_all(
      node, [](const Size& a, const Size& b) { return a > b ? a : b; },
      [](double a, double b) { return std::isnan(a) || a > b ? a : b; },
      [](const Tensor& a, const Tensor& b) { return a.maximum(b); });
}
Outputs smallest(const Node& node) {
  return fold_all(
      node, [](const Size& a, const Size& b) { return a < b ? a : b; },
      [](double a, double b) { return std::isnan(a) || a < b ? a : b; },
      [](const Tensor& a, const Tensor& b) { return a.minimum(b); });
}

// ---- one operand

template <auto F>
Outputs unary(const Node& node) {
  const Tensor x = node.tensor(0);
  return {(x.*F)()};
}

template <auto F>
Outputs unary_float(const Node& node) {
  const Tensor x = node.tensor(0);
  return {(x.*F)().cast(x.dtype())};
}

Size same(const Size& s) { return s; }

Outputs negative(const Node& node) {
  if (node.folds())
    return {host_map(node.value(0).numbers(), [](const Size& s) { return Size(0) - s; },
                     [](double f) { return -f; })};
  return unary<&Tensor::neg>(node);
}
Outputs absolute(const Node& node) {
  if (node.folds())
    return {host_map(node.value(0).numbers(),
                     [](const Size& s) { return s < 0 ? Size(0) - s : s; },
                     [](double f) { return std::fabs(f); })};
  return unary<&Tensor::abs>(node);
}
Outputs floor(const Node& node) {
  if (node.folds())
    return {host_map(node.value(0).numbers(), same, [](double f) { return std::floor(f); })};
  return unary<&Tensor::floor>(node);
}
Outputs ceiling(const Node& node) {
  if (node.folds())
    return {host_map(node.value(0).numbers(), same, [](double f) { return std::ceil(f); })};
  return unary<&Tensor::ceil>(node);
}
Outputs root(const Node& node) {
  if (node.folds() && is_float(node.value(0).dtype()))
    return {host_map(node.value(0).numbers(), same, [](double f) { return std::sqrt(f); })};
  return unary<&Tensor::sqrt>(node);
}

Outputs is_infinite(const Node& node) {
  const Tensor x = node.tensor(0);
  Tensor out = x.isinf();
  if (!node.integer("detect_positive", 1)) out = out & (x < 0);
  if (!node.integer("detect_negative", 1)) out = out & (x > 0);
  return {out};
}

// ---- types

ElementType wanted_type(const Node& node) {
  const std::optional<ElementType> to = node.element("to");
  if (!to) fail<InvalidArgument>("the attribute 'to' is missing");
  return *to;
}

Outputs cast_to(const Node& node, ElementType to) {
  if (node.folds() && !is_narrow(to)) return {host_cast(node.value(0).numbers(), dtype_of(to))};
  const Conversion how{.saturate = node.integer("saturate", 1) != 0,
                       .round_mode = node.text("round_mode", "up")};
  return {Value(converted(node.tensor(0), to, how)).of(to)};
}

Outputs cast(const Node& node) { return cast_to(node, wanted_type(node)); }
Outputs cast_like(const Node& node) { return cast_to(node, node.value(1).element()); }

// A bool has one byte, 0 or 1.
Outputs bit_cast(const Node& node) {
  const Tensor x = node.tensor(0);
  const ElementType type = wanted_type(node), from = node.value(0).element();
  if (is_narrow(type) || is_narrow(from))
    fail<Unsupported>("the bits of {}", io::onnx::name(is_narrow(type) ? type : from));
  const DType to = dtype_of(type);
  if (x.dtype() == DType::Bool) return {x.cast(DType::U8).bitcast(to)};
  if (to == DType::Bool) return {x.bitcast(DType::U8).cast(to)};
  return {x.bitcast(to)};
}

// ---- activations

// Bounds are attributes before version 11, inputs since then.
Outputs clip(const Node& node) {
  const Tensor x = node.tensor(0);
  if (node.version() < 11) {
    std::optional<Number> low, high;
    if (node.has("min")) low = node.number("min");
    if (node.has("max")) high = node.number("max");
    return {low || high ? x.clamp(low, high) : x};
  }
  Tensor out = x;
  if (node.has(1)) out = out.maximum(node.tensor(1));
  if (node.has(2)) out = out.minimum(node.tensor(2));
  return {out};
}

Outputs celu(const Node& node) { return {node.tensor(0).celu(node.number("alpha", 1))}; }
Outputs elu(const Node& node) { return {node.tensor(0).elu(node.number("alpha", 1))}; }
Outputs gelu(const Node& node) { return {node.tensor(0).gelu(node.text("approximate", "none"))}; }
Outputs hard_sigmoid(const Node& node) {
  const double alpha = node.number("alpha", 0.2), beta = node.number("beta", 0.5);
  return {(node.tensor(0) * alpha + beta).clamp(0.0, 1.0)};
}
Outputs leaky_relu(const Node& node) {
  return {node.tensor(0).leaky_relu(node.number("alpha", 0.01))};
}
Outputs prelu(const Node& node) {
  const Tensor x = node.tensor(0), slope = node.tensor(1);
  return {Tensor::where(x < 0, x * slope, x)};
}
Outputs selu(const Node& node) {
  const double alpha = node.number("alpha", 1.67326319217681884765625),
               gamma = node.number("gamma", 1.05070102214813232421875);
  const Tensor x = node.tensor(0);
  return {Tensor::where(x > 0, x, x.expm1() * alpha) * gamma};
}
Outputs shrink(const Node& node) {
  const double lambda = node.number("lambd", 0.5), bias = node.number("bias", 0);
  const Tensor x = node.tensor(0);
  return {Tensor::where(x < -lambda, x + bias, Tensor::where(x > lambda, x - bias, x * 0))
              .cast(x.dtype())};
}
Outputs softplus(const Node& node) {
  return {node.tensor(0).softplus(1, std::numeric_limits<double>::infinity())};
}
Outputs swish(const Node& node) {
  const Tensor x = node.tensor(0);
  return {x * (x * node.number("alpha", 1)).sigmoid()};
}
Outputs swiglu(const Node& node) {
  const Tensor gate = node.tensor(0);
  return {gate * (gate * node.number("alpha", 1)).sigmoid() * node.tensor(1)};
}
Outputs thresholded_relu(const Node& node) {
  return {node.tensor(0).threshold(node.number("alpha", 1), 0)};
}

constexpr Operator kRows[] = {
    {"", "Abs", 1, kNewest, absolute},
    {"", "Acos", 7, kNewest, unary<&Tensor::acos>},
    {"", "Acosh", 9, kNewest, unary<&Tensor::acosh>},
    {"", "Add", 1, kNewest, add},
    {"", "And", 1, kNewest, bits_and},
    {"", "Asin", 7, kNewest, unary<&Tensor::asin>},
    {"", "Asinh", 9, kNewest, unary<&Tensor::asinh>},
    {"", "Atan", 7, kNewest, unary<&Tensor::atan>},
    {"", "Atanh", 9, kNewest, unary<&Tensor::atanh>},
    {"", "BitCast", 26, kNewest, bit_cast},
    {"", "BitShift", 11, kNewest, bit_shift},
    {"", "BitwiseAnd", 18, kNewest, bits_and},
    {"", "BitwiseNot", 18, kNewest, unary<&Tensor::bitwise_not>},
    {"", "BitwiseOr", 18, kNewest, bits_or},
    {"", "BitwiseXor", 18, kNewest, bits_xor},
    {"", "Cast", 6, kNewest, cast},
    {"", "CastLike", 15, kNewest, cast_like},
    {"", "Ceil", 1, kNewest, ceiling},
    {"", "Celu", 12, kNewest, celu},
    {"", "Clip", 1, kNewest, clip},
    {"", "Cos", 7, kNewest, unary<&Tensor::cos>},
    {"", "Cosh", 9, kNewest, unary<&Tensor::cosh>},
    {"", "Div", 1, kNewest, div},
    {"", "Elu", 1, kNewest, elu},
    {"", "Equal", 1, kNewest, equal},
    {"", "Erf", 9, kNewest, unary_float<&Tensor::erf>},
    {"", "Exp", 1, kNewest, unary<&Tensor::exp>},
    {"", "Floor", 1, kNewest, floor},
    {"", "Gelu", 20, kNewest, gelu},
    {"", "Greater", 1, kNewest, greater},
    {"", "GreaterOrEqual", 12, kNewest, greater_or_equal},
    {"", "HardSigmoid", 1, kNewest, hard_sigmoid},
    {"", "HardSwish", 14, kNewest, unary<&Tensor::hardswish>},
    {"", "IsInf", 10, kNewest, is_infinite},
    {"", "IsNaN", 9, kNewest, unary<&Tensor::isnan>},
    {"", "LeakyRelu", 1, kNewest, leaky_relu},
    {"", "Less", 1, kNewest, less},
    {"", "LessOrEqual", 12, kNewest, less_or_equal},
    {"", "Log", 1, kNewest, unary<&Tensor::log>},
    {"", "Max", 1, kNewest, largest},
    {"", "Mean", 1, kNewest, mean},
    {"", "Min", 1, kNewest, smallest},
    {"", "Mish", 18, kNewest, unary<&Tensor::mish>},
    {"", "Mod", 10, kNewest, mod},
    {"", "Mul", 1, kNewest, mul},
    {"", "Neg", 1, kNewest, negative},
    {"", "Not", 1, kNewest, logical_not},
    {"", "Or", 1, kNewest, bits_or},
    {"", "PRelu", 1, kNewest, prelu},
    {"", "Pow", 1, kNewest, pow},
    {"", "Reciprocal", 1, kNewest, unary<&Tensor::reciprocal>},
    {"", "Relu", 1, kNewest, unary<&Tensor::relu>},
    {"", "Round", 11, kNewest, unary<&Tensor::round>},
    {"", "Selu", 1, kNewest, selu},
    {"", "Shrink", 9, kNewest, shrink},
    {"", "Sigmoid", 1, kNewest, unary<&Tensor::sigmoid>},
    {"", "Sign", 9, kNewest, unary<&Tensor::sign>},
    {"", "Sin", 7, kNewest, unary<&Tensor::sin>},
    {"", "Sinh", 9, kNewest, unary<&Tensor::sinh>},
    {"", "Softplus", 1, kNewest, softplus},
    {"", "Softsign", 1, kNewest, unary<&Tensor::softsign>},
    {"", "Sqrt", 1, kNewest, root},
    {"", "Sub", 1, kNewest, sub},
    {"", "Sum", 1, kNewest, sum},
    {"", "SwiGLU", 28, kNewest, swiglu},
    {"", "Swish", 24, kNewest, swish},
    {"", "Tan", 7, kNewest, unary<&Tensor::tan>},
    {"", "Tanh", 1, kNewest, unary<&Tensor::tanh>},
    {"", "ThresholdedRelu", 10, kNewest, thresholded_relu},
    {"", "Where", 9, kNewest, where, 1},
    {"", "Xor", 1, kNewest, bits_xor},
};

}  // namespace

std::span<const Operator> math_operators() { return kRows; }

}  // namespace tuff::onnx
