// TensorMath as tables: elementary functions, comparisons by name, activations.
#include "function_tables.h"

namespace tuff::python {
namespace {

using py::arg;

constexpr Unary kUnary[] = {
    {"asin", &Tensor::asin, "The angle whose sine this is."},
    {"acos", &Tensor::acos, "The angle whose cosine this is."},
    {"atan", &Tensor::atan, "The angle whose tangent this is."},
    {"sinh", &Tensor::sinh, "Hyperbolic sine."},
    {"cosh", &Tensor::cosh, "Hyperbolic cosine."},
    {"asinh", &Tensor::asinh, "The inverse of sinh()."},
    {"acosh", &Tensor::acosh, "The inverse of cosh(); NaN below 1."},
    {"atanh", &Tensor::atanh, "The inverse of tanh()."},
    {"log1p", &Tensor::log1p, "log(1 + x), accurate near 0."},
    {"expm1", &Tensor::expm1, "exp(x) - 1, accurate near 0."},
    {"log10", &Tensor::log10, "Logarithm to base 10."},
    {"erfc", &Tensor::erfc, "1 - erf(x), accurate where that is small."},
    {"erfinv", &Tensor::erfinv, "The inverse of erf()."},
    {"lgamma", &Tensor::lgamma, "The logarithm of |gamma(x)|."},
    {"digamma", &Tensor::digamma, "The derivative of lgamma()."},
    {"i0", &Tensor::i0, "The modified Bessel function of order 0."},
    {"sinc", &Tensor::sinc, "sin(pi x) / (pi x), 1 at 0."},
    {"rad2deg", &Tensor::rad2deg, "Radians as degrees."},
    {"deg2rad", &Tensor::deg2rad, "Degrees as radians."},
    {"isfinite", &Tensor::isfinite, "Bool: is x neither infinite nor NaN?"},
    {"signbit", &Tensor::signbit, "Bool: is the sign bit set, also of -0?"},
    {"isposinf", &Tensor::isposinf, "Bool: is x infinite and above 0?"},
    {"isneginf", &Tensor::isneginf, "Bool: is x infinite and below 0?"},
    {"frac", &Tensor::frac, "x - trunc(x)"},
    {"selu", &Tensor::selu, "elu() of fixed alpha and scale."},
    {"hardsigmoid", &Tensor::hardsigmoid, "x/6 + 1/2, kept in 0..1."},
    {"hardswish", &Tensor::hardswish, "x * hardsigmoid(x)"},
    {"relu6", &Tensor::relu6, "x kept in 0..6."},
    {"mish", &Tensor::mish, "x * tanh(softplus(x))"},
    {"logsigmoid", &Tensor::logsigmoid, "log(sigmoid(x))"},
    {"softsign", &Tensor::softsign, "x / (1 + |x|)"},
    {"tanhshrink", &Tensor::tanhshrink, "x - tanh(x)"},
    {"quick_gelu", &Tensor::quick_gelu, "x * sigmoid(1.702 x)"},
};

constexpr Binary kBinary[] = {
    {"atan2", &Tensor::atan2, "x", "The angle of (x, y) for this y, in -pi..pi."},
    {"hypot", &Tensor::hypot, "other", "sqrt(x^2 + y^2) without overflow on the way."},
    {"logaddexp", &Tensor::logaddexp, "other", "log(exp(x) + exp(y)) without overflow on the way."},
    {"logaddexp2", &Tensor::logaddexp2, "other", "log2(2^x + 2^y) without overflow on the way."},
    {"ldexp", &Tensor::ldexp, "exponent", "x 2^exponent"},
    {"nextafter", &Tensor::nextafter, "other", "The next number of the dtype towards the other."},
    {"fmax", &Tensor::fmax, "other", "The larger of two; NaN only if both are."},
    {"fmin", &Tensor::fmin, "other", "The smaller of two; NaN only if both are."},
    {"heaviside", &Tensor::heaviside, "values", "0 below 0, 1 above, the values at 0."},
    {"gcd", &Tensor::gcd, "other", "The greatest number that divides both integers."},
    {"lcm", &Tensor::lcm, "other", "The least number that both integers divide."},
    {"logical_and", &Tensor::logical_and, "other", "Bool: are both other than 0?"},
    {"logical_or", &Tensor::logical_or, "other", "Bool: is one of them other than 0?"},
    {"logical_xor", &Tensor::logical_xor, "other", "Bool: is exactly one other than 0?"},
    {"prelu", &Tensor::prelu, "weight",
     "x, or weight x below 0; one weight, or one for each channel of axis 1."},
};

constexpr WithNumber kWithNumber[] = {
    {"add", &Tensor::add, &Tensor::add, "other", "x + y"},
    {"sub", &Tensor::sub, &Tensor::sub, "other", "x - y"},
    {"mul", &Tensor::mul, &Tensor::mul, "other", "x * y"},
    {"div", &Tensor::div, &Tensor::div, "other", "x / y"},
    {"eq", &Tensor::eq, &Tensor::eq, "other", "x == y"},
    {"ne", &Tensor::ne, &Tensor::ne, "other", "x != y"},
    {"lt", &Tensor::lt, &Tensor::lt, "other", "x < y"},
    {"le", &Tensor::le, &Tensor::le, "other", "x <= y"},
    {"gt", &Tensor::gt, &Tensor::gt, "other", "x > y"},
    {"ge", &Tensor::ge, &Tensor::ge, "other", "x >= y"},
    {"bitwise_and", &Tensor::bitwise_and, &Tensor::bitwise_and, "other", "x & y"},
    {"bitwise_or", &Tensor::bitwise_or, &Tensor::bitwise_or, "other", "x | y"},
    {"bitwise_xor", &Tensor::bitwise_xor, &Tensor::bitwise_xor, "other", "x ^ y"},
    {"float_power", &Tensor::float_power, &Tensor::float_power, "exponent", "pow() in float64."},
    {"xlogy", &Tensor::xlogy, &Tensor::xlogy, "y", "x log(y), and 0 where x is 0."},
    {"copysign", &Tensor::copysign, &Tensor::copysign, "sign", "|x| with the sign bit of another."},
};

void bind_activations(TensorClass& c) {
  c.def("elu", &Tensor::elu, arg("alpha") = 1.0, "x, or alpha (exp(x) - 1) below 0.");
  c.def("celu", &Tensor::celu, arg("alpha") = 1.0, "x, or alpha (exp(x / alpha) - 1) below 0.");
  c.def("hardtanh", &Tensor::hardtanh, arg("min_val") = -1.0, arg("max_val") = 1.0,
        "x kept inside.");
  c.def("glu", &Tensor::glu, arg("dim") = -1,
        "The first half of an axis times the sigmoid of the second.");
  c.def("softmin", &Tensor::softmin, arg("dim") = -1, "softmax(-x)");
  // `lambda` is a word of Python.
  c.def("hardshrink", &Tensor::hardshrink, arg("lambd") = 0.5, "0 where |x| <= lambd.");
  c.def("softshrink", &Tensor::softshrink, arg("lambd") = 0.5,
        "Moved toward 0 by lambd, and 0 inside.");
  c.def("threshold", &Tensor::threshold, arg("threshold"), arg("value"),
        "x where it is above the threshold, else the value.");
  c.def("rrelu", &Tensor::rrelu, arg("lower") = 1.0 / 8, arg("upper") = 1.0 / 3,
        "Below 0 times a slope, drawn between the bounds in training mode.");
  c.def("normalize", &Tensor::normalize, arg("p") = 2.0, arg("dim") = 1, arg("eps") = 1e-12,
        "x / max(norm(x, p), eps) along an axis.");
}

}  // namespace

void bind_math(TensorClass& c) {
  bind_tables(c, kUnary, kBinary, kWithNumber);
  c.def("isclose", &Tensor::isclose, arg("other"), arg("rtol") = 1e-5, arg("atol") = 1e-8,
        arg("equal_nan") = false, "Bool: |x - y| <= atol + rtol |y|?");
  c.def("logit", &Tensor::logit, arg("eps") = py::none(),
        "log(x / (1 - x)), of x kept in eps..1 - eps if eps is given.");
  c.def("lerp", py::overload_cast<const Tensor&, const Tensor&>(&Tensor::lerp, py::const_),
        arg("end"), arg("weight"), "x + weight (end - x)");
  c.def("lerp", py::overload_cast<const Tensor&, double>(&Tensor::lerp, py::const_), arg("end"),
        arg("weight"), "x + weight (end - x)");
  c.def("nan_to_num", &Tensor::nan_to_num, arg("nan") = 0.0, arg("posinf") = py::none(),
        arg("neginf") = py::none(), "NaN and infinities replaced.");
  c.def("addcmul", &Tensor::addcmul, arg("a"), arg("b"), arg("value") = 1, "x + value a b");
  c.def("addcdiv", &Tensor::addcdiv, arg("a"), arg("b"), arg("value") = 1, "x + value a / b");
  c.def("frexp", &Tensor::frexp, "m and e with x = m 2^e, |m| in 0.5..1.");
  c.def("polygamma", &Tensor::polygamma, arg("n"), "The n-th derivative of digamma().");
  c.def("mvlgamma", &Tensor::mvlgamma, arg("p"),
        "The logarithm of the multivariate gamma function of p dimensions.");
  bind_activations(c);
}

}  // namespace tuff::python
