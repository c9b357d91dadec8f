// TensorMath and TensorProducts as rows: elementary functions, comparisons by name, activations,
// products. Operands: later_elementwise() and later_products() of scripts/tensor-values.py.
#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> elementary() {
  return {
      {"asin", Curved, [](Inputs x) { return x[0].asin(); }},
      {"acos", Curved, [](Inputs x) { return x[0].acos(); }},
      {"atan", Curved, [](Inputs x) { return x[0].atan(); }},
      {"sinh", Curved, [](Inputs x) { return x[0].sinh(); }},
      {"cosh", Curved, [](Inputs x) { return x[0].cosh(); }},
      {"asinh", Curved, [](Inputs x) { return x[0].asinh(); }},
      {"acosh", Curved, [](Inputs x) { return x[0].acosh(); }},
      {"atanh", Curved, [](Inputs x) { return x[0].atanh(); }},
      {"atan2", Curved, [](Inputs x) { return x[0].atan2(x[1]); }},
      {"hypot", Curved, [](Inputs x) { return x[0].hypot(x[1]); }},
      {"log1p", Curved, [](Inputs x) { return x[0].log1p(); }},
      {"expm1", Curved, [](Inputs x) { return x[0].expm1(); }},
      {"log10", Curved, [](Inputs x) { return x[0].log10(); }},
      {"erfc", Curved, [](Inputs x) { return x[0].erfc(); }},
      {"erfinv", Curved, [](Inputs x) { return x[0].erfinv(); }},
      {"i0", Curved, [](Inputs x) { return x[0].i0(); }},
      {"lgamma", Curved, [](Inputs x) { return x[0].lgamma(); }},
      {"digamma", Curved, [](Inputs x) { return x[0].digamma(); }},
      {"logit", Curved, [](Inputs x) { return x[0].logit(); }},
      {"logit_eps", Curved, [](Inputs x) { return x[0].logit(0.25); }},
      {"logaddexp", Curved, [](Inputs x) { return x[0].logaddexp(x[1]); }},
      {"xlogy", Curved, [](Inputs x) { return x[0].xlogy(x[1]); }},
      {"xlogy_number", Curved, [](Inputs x) { return x[0].xlogy(3); }},
      {"sinc", Curved, [](Inputs x) { return x[0].sinc(); }},
      {"rad2deg", Rounded, [](Inputs x) { return x[0].rad2deg(); }},
      {"deg2rad", Rounded, [](Inputs x) { return x[0].deg2rad(); }},
      {"special_elementary", Curved,
       [](Inputs x) {
         const Tensor v = x[0].detach();
         return Tensor::stack({v.atan(), v.asinh(), v.log1p(), v.expm1(), v.erfc(), v.sinh(),
                               v.cosh(), v.atanh(), v.asin(), v.erfinv(), v.logit()});
       }},
  };
}

std::vector<Function> comparisons() {
  return {
      {"named_arithmetic", Rounded,
       [](Inputs x) { return x[0].add(x[1]).mul(x[1]).sub(x[0]).div(4).add(1).mul(3).sub(2); }},
      {"named_comparisons", Exact,
       [](Inputs x) {
         const Tensor &a = x[0], &b = x[1];
         return Tensor::stack({a.eq(b), a.ne(b), a.lt(b), a.le(b), a.gt(b), a.ge(b), a.eq(2),
                               a.ne(2), a.lt(2), a.le(2), a.gt(2), a.ge(2)});
       }},
      {"logical", Exact,
       [](Inputs x) {
         return Tensor::stack({x[0].logical_and(x[1]), x[0].logical_or(x[1]),
                               x[0].logical_xor(x[1])});
       }},
      {"isfinite", Exact, [](Inputs x) { return x[0].isfinite(); }},
      {"isclose", Exact,
       [](Inputs x) {
         return Tensor::stack({x[0].isclose(x[1]), x[0].isclose(x[1], 0, 0.5),
                               x[0].isclose(x[1], 0.125, 0, true)});
       }},
      {"signbit", Exact, [](Inputs x) { return x[0].signbit(); }},
      {"frac", Exact, [](Inputs x) { return x[0].frac(); }},
      {"copysign", Exact, [](Inputs x) { return x[0].copysign(x[1].detach()); }},
      {"copysign_number", Exact, [](Inputs x) { return x[0].copysign(-1.0); }},
      {"lerp", Rounded, [](Inputs x) { return x[0].lerp(x[1], x[2]); }},
      {"lerp_number", Rounded, [](Inputs x) { return x[0].lerp(x[1], 0.75); }},
      {"nan_to_num", Exact, [](Inputs x) { return x[0].nan_to_num(7, 5, -5); }},
      {"clamp_tensors", Exact, [](Inputs x) { return x[0].clamp(x[1], x[2]); }},
      {"clamp_tensor_max", Exact, [](Inputs x) { return x[0].clamp(Tensor(), x[1]); }},
  };
}

std::vector<Function> activations() {
  return {
      {"elu", Curved, [](Inputs x) { return x[0].elu(1.5); }},
      {"selu", Curved, [](Inputs x) { return x[0].selu(); }},
      {"celu", Curved, [](Inputs x) { return x[0].celu(0.75); }},
      {"hardsigmoid", Rounded, [](Inputs x) { return x[0].hardsigmoid(); }},
      {"hardswish", Rounded, [](Inputs x) { return x[0].hardswish(); }},
      {"hardtanh", Exact, [](Inputs x) { return x[0].hardtanh(-0.5, 1.5); }},
      {"relu6", Exact, [](Inputs x) { return x[0].relu6(); }},
      {"mish", Curved, [](Inputs x) { return x[0].mish(); }},
      {"logsigmoid", Curved, [](Inputs x) { return x[0].logsigmoid(); }},
      {"softsign", Rounded, [](Inputs x) { return x[0].softsign(); }},
      {"prelu", Rounded, [](Inputs x) { return x[0].prelu(x[1]); }},
      {"prelu_channels", Rounded, [](Inputs x) { return x[0].prelu(x[1]); }},
      {"glu", Curved, [](Inputs x) { return x[0].glu(1); }},
      {"softmin", Curved, [](Inputs x) { return x[0].softmin(0); }},
      {"tanhshrink", Curved, [](Inputs x) { return x[0].tanhshrink(); }},
      {"hardshrink", Exact, [](Inputs x) { return x[0].hardshrink(); }},
      {"softshrink", Exact, [](Inputs x) { return x[0].softshrink(); }},
      {"threshold", Exact, [](Inputs x) { return x[0].threshold(0.25, -3); }},
      {"quick_gelu", Curved, [](Inputs x) { return x[0].quick_gelu(); }},
      {"rrelu_outside_training", Rounded, [](Inputs x) { return x[0].rrelu(); }},
      {"normalize", Rounded, [](Inputs x) { return x[0].normalize(); }},
      {"normalize_3", Curved, [](Inputs x) { return x[0].normalize(3, 0); }},
      {"tails_of_activations", Curved,
       [](Inputs x) { return x[0].mish() + x[0].logsigmoid() + x[0].quick_gelu() + x[0].elu(); }},
  };
}

std::vector<Function> products() {
  return {
      {"dot", Rounded, [](Inputs x) { return x[0].dot(x[1]); }},
      {"vdot", Rounded, [](Inputs x) { return x[0].vdot(x[1]); }},
      {"mv", Rounded, [](Inputs x) { return x[0].mv(x[1]); }},
      {"mm", Rounded, [](Inputs x) { return x[0].mm(x[1]); }},
      {"bmm", Rounded, [](Inputs x) { return x[0].bmm(x[1]); }},
      {"outer", Exact, [](Inputs x) { return x[0].outer(x[1]); }},
      {"cross", Rounded, [](Inputs x) { return x[0].cross(x[1]); }},
      {"kron", Exact, [](Inputs x) { return x[0].kron(x[1]); }},
      {"addmm", Rounded, [](Inputs x) { return x[0].addmm(x[1], x[2], 0.5, 2); }},
      {"baddbmm", Rounded, [](Inputs x) { return x[0].baddbmm(x[1], x[2]); }},
  };
}

}  // namespace

std::vector<Function> functions_of_math() {
  std::vector<Function> out;
  for (const auto part : {elementary, comparisons, activations, products})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check
