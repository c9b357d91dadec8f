// Builds kernel ASTs by hand, as sched would make them. For the tests of kernel.
#pragma once

#include <vector>

#include "ir/uop.h"

namespace tuff::kernel::testing {

// A kernel in the making: ranges numbered in order, params by slot.
struct AstBuilder {
  int32_t next_range = 0;
  ir::UOp loop(int64_t size) {
    return ir::range(ir::index_const(size), next_range++, ir::AxisKind::Loop);
  }
  ir::UOp ordered(int64_t size) {
    return ir::range(ir::index_const(size), next_range++, ir::AxisKind::Ordered);
  }
  ir::UOp fold(int64_t size) {
    return ir::range(ir::index_const(size), next_range++, ir::AxisKind::Reduce);
  }
};
ir::UOp load(int32_t slot, int64_t count, const ir::UOp& offset, DType t = DType::F32,
                const ir::UOp& gate = {});
ir::UOp reduce_over(ir::Op op, const ir::UOp& value, std::vector<ir::UOp> ranges);
// end(store(index(param slot, offset[, gate]), value), ranges...)
ir::UOp store(int32_t slot, int64_t count, const ir::UOp& offset, const ir::UOp& value,
                 std::vector<ir::UOp> ranges, const ir::UOp& gate = {});
// A row of Shared memory that `value` fills along `column`, and what is there.
ir::UOp kept_row(int32_t number, const ir::UOp& column, const ir::UOp& value);
ir::UOp element(const ir::UOp& row, const ir::UOp& column);
ir::UOp kernel_of(std::vector<ir::UOp> ends);

// Kernels that every test of lowering wants. Slot 0 is the output.
ir::UOp elementwise_ast(int64_t rows, int64_t columns);                      // a + relu(b)
ir::UOp transpose_ast(int64_t rows, int64_t columns, DType t = DType::F32);  // of the input
// Axis order[i] of the input (slot 1) is axis i of the result, both converted to `to`; `twice`: added
// to an input that lies as the result does.
ir::UOp permute_ast(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order, DType t,
                    DType to, bool twice = false);
// The maximum of windows of `window` x `window` that share no element; each of `size` columns of a
// row of windows. And what gives each element of the window's its row back: x * y[window].
ir::UOp pool_ast(int64_t rows, int64_t size, int64_t window, DType t = DType::F32);
ir::UOp unpool_ast(int64_t rows, int64_t size, int64_t window, DType t = DType::F32);
ir::UOp uniform_ast(int64_t n);               // random numbers of [-0.1, 0.2)
ir::UOp sum_ast(int64_t outputs, int64_t n);  // rows of a + b
ir::UOp matmul_ast(int64_t m, int64_t n, int64_t k, bool transposed = false);
ir::UOp matmul_across_ast(int64_t m, int64_t n, int64_t k);  // the left operand lies transposed
// A product of narrow numbers with wide sums, as cooperative matrices compute them, and what may
// stand around it. Slot 1 and 2 are the factors.
struct NarrowProduct {
  int64_t batch = 1, m = 16, n = 16, k = 16;
  DType factor = DType::F16, sum = DType::F32, result = DType::F32;
  bool left_across = false, right_across = false;  // lie transposed
  bool left_positive = false, right_positive = false;  // a factor's numbers below 0 become 0
  bool bias = false;                               // slot 3, of the columns
  bool residual = false;    // the next slot, of the result's dtype, and a relu
  bool transposed = false;  // the output
};
ir::UOp narrow_product_ast(const NarrowProduct& p);
// Rows of BF16 in slot 1 by columns in slot 2, of which pairs of rows lie interleaved: what a CPU's
// matrix registers take.
struct PairProduct {
  int64_t m = 16, n = 16, k = 64;
  bool transposed = false;  // the output
  bool bias = false;        // slot 3, of the columns
};
ir::UOp pair_product_ast(const PairProduct& p);
ir::UOp softmax_ast(int64_t rows, int64_t columns);
// Slots 1 to 3 are q, k and v: heads x positions x width; scores and probabilities are kept rows.
// Narrower than f32: scores, once they are scaled, and probabilities are rounded to that dtype.
ir::UOp attention_ast(int64_t heads, int64_t positions, int64_t width, bool causal = false,
                      DType dtype = DType::F32, double scale = 1);
// The gradient of q, given that of the result in slot 7; slots 1 to 3 get what its rows are reduced
// to, 4 to 6 are q, k and v. Scores and two kinds of gradients are kept rows.
ir::UOp attention_gradient_ast(int64_t heads, int64_t positions, int64_t width);
// The gradients of v and k in slots 0 and 1: slots 2 to 5 are q, k, v and the result's gradient, 6
// to 8 what rows are reduced to. Probabilities and their gradients are kept, column by column.
ir::UOp attention_factor_gradients_ast(int64_t heads, int64_t positions, int64_t width,
                                       bool causal = false);
ir::UOp gather_ast(int64_t rows, int64_t table, int64_t width);
// Rows added to a table at an index, or put there, where that is inside.
ir::UOp scatter_ast(int64_t rows, int64_t table, int64_t width, bool ordered = true);
// Rows of numbers of four bits times a vector, or `columns` of them, one output row each: blocks of a
// factor and 32 numbers, the first 16 in the low halves of 16 bytes, as GGUF's Q4_0 without the
// factor's dtype. Slot 1 is the bytes.
ir::UOp packed_sum_ast(int64_t rows, int64_t blocks, int64_t columns = 1);
ir::UOp conv_ast(int64_t batch, int64_t channels, int64_t size, int64_t filters);  // 3x3, padded

}  // namespace tuff::kernel::testing
