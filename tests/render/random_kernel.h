// Random LinearKernels for the property tests: DAGs of float, integer and bool ops over a Vector
// and a Lane range, loops with an accumulator, gathers and gates. And moves of neighbours of one
// dtype: windows, steps, offsets and gates that words of memory end within, in short buffers.
#pragma once

#include <cstdint>

#include "kernel/lowered.h"

namespace tuff::render {

// The same for the same seed.
kernel::LinearKernel random_kernel(uint32_t seed);
kernel::LinearKernel random_move(uint32_t seed, DType t);

}  // namespace tuff::render
