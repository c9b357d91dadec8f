// TensorProducts: products of vectors and matrices under the names that say their ranks: a part of
// class Tensor, which inherits it. Users include tensor.h.
#pragma once

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Products of tensors of fixed ranks; ShapeError for others. Tensor::matmul() and einsum() take
/// any.
class TensorProducts {
 public:
  /// (n) . (n): one number.
  Tensor dot(const Tensor& other) const;
  /// dot(); of real numbers they are the same.
  Tensor vdot(const Tensor& other) const;
  /// (n, k) x (k).
  Tensor mv(const Tensor& vector) const;
  /// (n, k) x (k, m).
  Tensor mm(const Tensor& other) const;
  /// (b, n, k) x (b, k, m).
  Tensor bmm(const Tensor& other) const;
  /// (n), (m) -> (n, m).
  Tensor outer(const Tensor& other) const;
  /// The vector at right angles to two of 3 elements along an axis; the other axes broadcast.
  Tensor cross(const Tensor& other, int64_t dim = -1) const;
  /// Every element times the other tensor, block by block (Kronecker); missing axes are in front.
  Tensor kron(const Tensor& other) const;
  /// beta x + alpha mm(a, b); x, which broadcasts, counts for nothing if beta is 0.
  Tensor addmm(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;
  /// The same of bmm(a, b).
  Tensor baddbmm(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;

 protected:
  TensorProducts() = default;
  ~TensorProducts() = default;
  TensorProducts(const TensorProducts&) = default;
  TensorProducts& operator=(const TensorProducts&) = default;
};

}  // namespace tuff
