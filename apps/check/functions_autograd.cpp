// Functions with gradients of their own, what is computed again for gradients, and loops.
#include <tuff/autograd.h>
#include <tuff/scan.h>

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

// Of states, rows and weights.
Scanned recurrence(Inputs x, bool reverse) {
  return scan(
      [&](const Tensors& states, const Tensors& rows) {
        const Tensor next = (states[0].matmul(x[2]) + rows[0]).tanh();
        return Scanned{{next}, {next}};
      },
      {x[0]}, {x[1]}, {.reverse = reverse});
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
      {"scan", Curved, [](Inputs x) { return recurrence(x, false).outputs[0]; }},
      {"scan_reverse", Curved, [](Inputs x) { return recurrence(x, true).states[0]; }},
  };
}

}  // namespace tuff::check
