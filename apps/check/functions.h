// The public functions of Tensor as a table: a name, which tests/data/tensor_values.json gives
// inputs and PyTorch's results for, the function, and how exact a device must be. Called by the
// conformance suite (suite.h) and by tests/tensor. A new function of Tensor is a row here and a row
// in scripts/tensor-values.py. Must never know devices.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::check {

// Exact: bit for bit (moves, integers, comparisons, single additions and multiplications).
// Rounded: sums and products of a few dozen terms, division, square roots: each device orders and
//   contracts them as it likes, and Vulkan allows 2.5 ULP for a division.
// Curved: exp2, log2 and sin inside; Vulkan allows 3 + 2|x| ULP for exp2 and 2^-11 for sin.
enum class Precision { Exact, Rounded, Curved };

// Largest difference from the reference interpreter, in parts of the largest magnitude of the
// result.
double tolerance(Precision p);

struct Function {
  std::string name;
  Precision precision;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  std::vector<DType> only = {};  // integer dtypes it takes, where that is not all of them
};

std::span<const Function> functions();
// Whether the function refuses operands of a dtype that memory can hold: with InvalidArgument, or
// ShapeError where integers mean something else than floats do.
bool refuses(const Function& f, DType t);
// Part of it: options, special values, empty tensors, scalars.
std::vector<Function> functions_with_options();
// Elementary functions, activations, products.
std::vector<Function> functions_of_math();
// Factorizations of matrices, and what is made of them.
std::vector<Function> functions_of_linalg();
// Stores by index.
std::vector<Function> functions_of_scatter();
// Movement by other names, statistics, losses.
std::vector<Function> functions_of_views();
// Convolutions, pools, resizing, sampling.
std::vector<Function> functions_of_windows();
// Order, selection, search, running values.
std::vector<Function> functions_of_sorting();
// Gradients of users, and what is computed again.
std::vector<Function> functions_of_autograd();

// Special functions, and further names of PyTorch's.
std::vector<Function> functions_of_special();
// Fourier transforms, strides, axes by names, CTC.
std::vector<Function> functions_of_fft();

}  // namespace tuff::check
