// The hand-built kernels that both renderers are tested with.
#pragma once

#include "kernel/lowered.h"

namespace tuff::render {

kernel::LinearKernel elementwise_kernel();  // out[i] = max(a[i] * 2 + b[i], 0), Vector 8
kernel::LinearKernel matmul_kernel();       // 8x16 = (8x12)(12x16): Lane 4, Vector 8, registers
kernel::LinearKernel row_sum_kernel();      // nested loops, ReduceLane 4, a symbolic extent
kernel::LinearKernel gated_kernel();    // a shifted copy with zeros, lane gates and a uniform gate
kernel::LinearKernel strided_kernel();  // gather by stride 3, scatter by stride 2, folded Vector
kernel::LinearKernel shared_sum_kernel();  // 64 invocations sum 256 values through shared memory
kernel::LinearKernel uniform_kernel();  // out[i] = (bits[i] >> 8) / 2^24 * 0.3 - 0.1, uncontracted
kernel::LinearKernel bool_kernel(int width);  // comparisons, logic and Where over bool memory
kernel::LinearKernel cast_kernel(DType from, DType to, int width);  // 16 elements
kernel::LinearKernel integer_kernel(DType t, int width);  // every integer op of two inputs of 16
kernel::LinearKernel float_kernel(DType t,
                                  int width);  // every float op both renderers know natively
inline constexpr int kIntegerOps = 12, kFloatOps = 10;

}  // namespace tuff::render
