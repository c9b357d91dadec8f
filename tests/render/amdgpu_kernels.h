// Kernels that the tests of the AMDGPU dialect and of its objects' loader have in common: the
// shapes that matter, to be lowered for a Target.
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

}  // namespace tuff::render
