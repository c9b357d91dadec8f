// TensorProducts: products of vectors and matrices under the names that say their ranks: a part of
// class Tensor, which inherits it. Users include tensor.h.
#pragma once

#include <optional>

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
  /// Sums of products over the last axis of both: (..., k), (..., k) -> all other axes of the one,
  /// then of the other. A scalar is a factor. ShapeError for another k.
  Tensor inner(const Tensor& other) const;
  /// Sums of products over the last `dims` axes of this tensor and the first of the other.
  Tensor tensordot(const Tensor& other, int64_t dims = 2) const;
  /// The same over axes that are named, pair by pair. InvalidArgument for lists of different
  /// lengths, ShapeError for extents that differ.
  Tensor tensordot(const Tensor& other, const Axes& dims, const Axes& other_dims) const;
  /// Powers of the elements of a vector, columns from the highest on: (n, count), count being n if
  /// not given. ShapeError for other ranks, InvalidArgument for a negative count.
  Tensor vander(std::optional<int64_t> count = {}, bool increasing = false) const;
  /// (n), (m) -> (n, m).
  Tensor outer(const Tensor& other) const;
  /// The vector at right angles to two of 3 elements along an axis; the other axes broadcast.
  Tensor cross(const Tensor& other, int64_t dim = -1) const;
  /// Every element times the other tensor, block by block (Kronecker); missing axes are in front.
  Tensor kron(const Tensor& other) const;
  /// beta x + alpha mm(a, b); x, which broadcasts, counts for nothing if beta is 0.
  Tensor addmm(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;
  /// The same of mv(matrix, vector).
  Tensor addmv(const Tensor& matrix, const Tensor& vector, double beta = 1,
               double alpha = 1) const;
  /// The same of outer(a, b).
  Tensor addr(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;
  /// The same of the sum of bmm(a, b) over the batch.
  Tensor addbmm(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;
  /// The same of bmm(a, b).
  Tensor baddbmm(const Tensor& a, const Tensor& b, double beta = 1, double alpha = 1) const;

 protected:
  TensorProducts() = default;
  ~TensorProducts() = default;
  TensorProducts(const TensorProducts&) = default;
  TensorProducts& operator=(const TensorProducts&) = default;
};

}  // namespace tuff
