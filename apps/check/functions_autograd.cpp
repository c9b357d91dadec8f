// Functions with gradients of their own, and what is computed again for gradients.
#include <tuff/autograd.h>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

// Rounded, as if it were not.
const autograd::Function& straight_through() {
  static const autograd::Function f{
      [](autograd::FunctionContext&, Inputs x) { return Tensors{x[0].round()}; },
      [](autograd::FunctionContext&, Inputs g) { return g; }};
  return f;
}

}  // namespace

std::vector<Function> functions_of_autograd() {
  return {
      {"function_rounded", Rounded, [](Inputs x) { return straight_through()({x[0]})[0] * x[0]; }},
      {"checkpoint", Curved,
       [](Inputs x) {
         return checkpoint(
             [&](const Tensor& y) { return y.matmul(x[1]).tanh().matmul(x[1]).tanh(); }, x[0]);
       }},
  };
}

}  // namespace tuff::check
