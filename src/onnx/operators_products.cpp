// Products of matrices.
#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

Outputs matmul(const Node& node) { return {node.tensor(0).matmul(node.tensor(1))}; }

// alpha a b + beta c, a and b transposed where that is asked for.
Outputs gemm(const Node& node) {
  Tensor a = node.tensor(0), b = node.tensor(1);
  if (node.integer("transA", 0)) a = a.T();
  if (node.integer("transB", 0)) b = b.T();
  const double alpha = node.number("alpha", 1), beta = node.number("beta", 1);
  const DType dtype = a.dtype();
  Tensor out = a.matmul(b);
  if (alpha != 1) out = (out * alpha).cast(dtype);
  if (!node.has(2)) return {out};
  const Tensor c = node.tensor(2);
  return {out + (beta == 1 ? c : (c * beta).cast(dtype))};
}

Outputs einsum(const Node& node) { return {Tensor::einsum(node.text("equation"), node.tensors())}; }

Outputs determinant(const Node& node) { return {node.tensor(0).det()}; }

constexpr Operator kRows[] = {
    {"", "Det", 11, kNewest, determinant},
    {"", "Einsum", 12, kNewest, einsum},
    {"", "Gemm", 1, kNewest, gemm},
    {"", "MatMul", 1, kNewest, matmul},
};

}  // namespace

std::span<const Operator> product_operators() { return kRows; }

}  // namespace tuff::onnx
