// Random LinearKernels for the property tests: DAGs of float, integer and bool ops over a Vector
// and a Lane range, loops with an accumulator, gathers and gates.
#pragma once

#include <cstdint>

#include "kernel/lowered.h"

namespace tuff::render {

kernel::LinearKernel random_kernel(uint32_t seed);  // the same for the same seed

}  // namespace tuff::render
