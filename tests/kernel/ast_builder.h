// Builds kernel ASTs by hand, as sched would make them. For the tests of kernel.
#pragma once

#include <vector>

#include "graph/uop.h"

namespace tuff::kernel::testing {

// A kernel in the making: ranges numbered in order, params by slot.
struct AstBuilder {
  int32_t next_range = 0;
  graph::UOp loop(int64_t size) {
    return graph::range(graph::index_const(size), next_range++, graph::AxisKind::Loop);
  }
  graph::UOp fold(int64_t size) {
    return graph::range(graph::index_const(size), next_range++, graph::AxisKind::Reduce);
  }
};
graph::UOp load(int32_t slot, int64_t count, const graph::UOp& offset, DType t = DType::F32,
                const graph::UOp& gate = {});
graph::UOp reduce_over(graph::Op op, const graph::UOp& value, std::vector<graph::UOp> ranges);
// end(store(index(param slot, offset[, gate]), value), ranges...)
graph::UOp store(int32_t slot, int64_t count, const graph::UOp& offset, const graph::UOp& value,
                 std::vector<graph::UOp> ranges, const graph::UOp& gate = {});
graph::UOp kernel_of(std::vector<graph::UOp> ends);

// Kernels that every test of lowering wants. Slot 0 is the output.
graph::UOp elementwise_ast(int64_t rows, int64_t columns);                      // a + relu(b)
graph::UOp transpose_ast(int64_t rows, int64_t columns, DType t = DType::F32);  // of the input
// The maximum of windows of `window` x `window` that share no element; each of `size` columns of a
// row of windows. And what gives each element of the window's its row back: x * y[window].
graph::UOp pool_ast(int64_t rows, int64_t size, int64_t window, DType t = DType::F32);
graph::UOp unpool_ast(int64_t rows, int64_t size, int64_t window, DType t = DType::F32);
graph::UOp uniform_ast(int64_t n);               // random numbers of [-0.1, 0.2)
graph::UOp sum_ast(int64_t outputs, int64_t n);  // rows of a + b
graph::UOp matmul_ast(int64_t m, int64_t n, int64_t k, bool transposed = false);
graph::UOp matmul_across_ast(int64_t m, int64_t n, int64_t k);  // the left operand lies transposed
// A product of narrow numbers with wide sums, as cooperative matrices compute them, and what may
// stand around it. Slot 1 and 2 are the factors.
struct NarrowProduct {
  int64_t batch = 1, m = 16, n = 16, k = 16;
  DType factor = DType::F16, sum = DType::F32, result = DType::F32;
  bool left_across = false, right_across = false;  // lie transposed
  bool bias = false;                               // slot 3, of the columns
  bool residual = false;    // the next slot, of the result's dtype, and a relu
  bool transposed = false;  // the output
};
graph::UOp narrow_product_ast(const NarrowProduct& p);
graph::UOp softmax_ast(int64_t rows, int64_t columns);
// Slots 1 to 3 are q, k and v: heads x positions x width; scores and probabilities are kept rows.
graph::UOp attention_ast(int64_t heads, int64_t positions, int64_t width, bool causal = false);
// The gradient of q, given that of the result in slot 7; slots 1 to 3 get what its rows are reduced
// to, 4 to 6 are q, k and v. Scores and two kinds of gradients are kept rows.
graph::UOp attention_gradient_ast(int64_t heads, int64_t positions, int64_t width);
// The gradients of v and k in slots 0 and 1: slots 2 to 5 are q, k, v and the result's gradient, 6
// to 8 what rows are reduced to. Probabilities and their gradients are kept, column by column.
graph::UOp attention_factor_gradients_ast(int64_t heads, int64_t positions, int64_t width);
graph::UOp gather_ast(int64_t rows, int64_t table, int64_t width);
graph::UOp conv_ast(int64_t batch, int64_t channels, int64_t size, int64_t filters);  // 3x3, padded

}  // namespace tuff::kernel::testing
