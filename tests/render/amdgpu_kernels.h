// Kernels that the tests of dialects for GPUs and of what compilers make of them have in common:
// the shapes that matter, to be lowered for a Target, and every form of text.
#pragma once

#include <string>
#include <vector>

#include "kernel/lowered.h"

namespace tuff::render {

struct AstCase {
  std::string name;
  ir::UOp ast;
  double tolerance = 1e-5;
};
// Element-wise, transposes, windows, products with and without copies in workgroup memory,
// reductions, softmax, attention and its gradient, random numbers, gathers, convolutions, a sorting
// step.
std::vector<AstCase> shaped_cases();

// Both kinds of shuffles, and the number of the subgroup that a lane belongs to.
kernel::LinearKernel shuffle_kernel();
// As few kernels as show every form of text.
std::vector<kernel::LinearKernel> gpu_kernels();

}  // namespace tuff::render
