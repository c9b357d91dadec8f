#include "render/amdgpu_kernels.h"

#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "render/kernel_cases.h"
#include "render/linear_builder.h"

namespace tuff::render {

using namespace ir;
using namespace kernel::testing;

namespace {

// Of pairs of neighbours the smaller goes first: what sorting networks are made of.
UOp sorting_step_ast(int64_t n) {
  AstBuilder b;
  const UOp i = b.loop(n / 2);
  const UOp x = kernel::testing::load(1, n, i * 2), y = kernel::testing::load(1, n, i * 2 + 1);
  const UOp less = alu(Op::CmpLt, {x, y});
  return kernel_of({kernel::testing::store(0, n, i * 2, alu(Op::Where, {less, x, y}), {i}),
                    kernel::testing::store(0, n, i * 2 + 1, alu(Op::Where, {less, y, x}), {i})});
}

}  // namespace

std::vector<AstCase> shaped_cases() {
  std::vector<AstCase> out = {
      {"elementwise", elementwise_ast(13, 64)},
      {"transpose", transpose_ast(64, 48)},
      {"transpose f16", transpose_ast(64, 48, DType::F16)},
      {"pool", pool_ast(4, 16, 2)},
      {"unpool", unpool_ast(4, 16, 2)},
      {"uniform", uniform_ast(1000), 0},
      {"row sums", sum_ast(16, 300)},
      {"sum", sum_ast(1, 5000), 1e-4},
      {"matmul", matmul_ast(64, 64, 64), 1e-4},
      {"matmul transposed", matmul_ast(32, 64, 40, true), 1e-4},
      {"matmul across", matmul_across_ast(48, 64, 32), 1e-4},
      {"matmul ragged", matmul_ast(37, 45, 29), 1e-4},
      {"softmax", softmax_ast(8, 300), 1e-4},
      {"attention", attention_ast(2, 32, 16, true), 1e-3},
      {"attention of f16", attention_ast(2, 64, 32, true, DType::F16), 4e-3},
      {"attention gradient", attention_gradient_ast(1, 32, 16), 1e-3},
      {"gather", gather_ast(16, 100, 24)},
      {"convolution", conv_ast(2, 8, 14, 16), 1e-4},
      {"sorting step", sorting_step_ast(64), 0},
      {"narrow product", narrow_product_ast({.m = 32, .n = 48, .k = 64}), 1e-3},
  };
  NarrowProduct bf16{.m = 32, .n = 32, .k = 32, .factor = DType::BF16, .result = DType::BF16};
  bf16.bias = true;
  out.push_back({"narrow product bf16", narrow_product_ast(bf16), 2e-2});
  for (const DType t : {DType::I8, DType::U8}) {
    NarrowProduct bytes{.m = 32, .n = 32, .k = 64, .factor = t};
    bytes.sum = bytes.result = DType::I32;
    bytes.left_across = bytes.right_across = t == DType::U8;
    out.push_back({fmt::format("narrow product {}", name(t)), narrow_product_ast(bytes), 0});
  }
  return out;
}

kernel::LinearKernel shuffle_kernel() {
  LinearBuilder b("shuffles");
  const UOp out = b.buffer(DType::F32, 64, false, true), x = b.buffer(DType::F32, 64, true, false),
            order = b.buffer(DType::I32, 64, true, false),
            where = b.buffer(DType::I32, 64, false, true);
  const UOp l = b.local(0, 64);
  const UOp lane =
      b.add(make(Op::Special, DType::I32, {b.i32(32)}, SpecialArg{'s', int8_t{0}}));
  const UOp subgroup =
      b.add(make(Op::Special, DType::I32, {b.i32(2)}, SpecialArg{'s', int8_t{1}}));
  const UOp mine = b.load(b.index(x, l)), from = b.load(b.index(order, l));
  const UOp other = b.add(make(Op::Shuffle, DType::F32, {mine, from}));
  const UOp first = b.add(make(Op::Shuffle, DType::F32, {mine, b.i32(3)}));
  b.store(b.index(out, l), b.plus(other, first));
  b.store(b.index(where, l), b.plus(b.times(subgroup, 100), lane));
  return b.k;
}

std::vector<kernel::LinearKernel> gpu_kernels() {
  std::vector<kernel::LinearKernel> out = {
      elementwise_kernel(), matmul_kernel(), row_sum_kernel(), gated_kernel(), strided_kernel(),
      shared_sum_kernel(), uniform_kernel(), bool_kernel(4), shuffle_kernel(),
      float_kernel(DType::F16, 4), float_kernel(DType::F32, 4), float_kernel(DType::F64, 4)};
  for (const DType t : kMemoryTypes)
    if (is_int(t)) out.push_back(integer_kernel(t, 4));
  return out;
}

}  // namespace tuff::render
