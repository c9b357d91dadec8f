// TensorLinalg: linear algebra under the names that PyTorch's and tinygrad's Tensor have: a part of
// class Tensor, which inherits it. All of it is in linalg.h as well. Users include tensor.h.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Linear algebra of the last two axes; linalg.h says what holds of all of it, and of each.
class TensorLinalg {
 public:
  /// linalg::cholesky().
  Tensor cholesky(bool upper = false) const;
  /// linalg::qr().
  std::pair<Tensor, Tensor> qr(std::string_view mode = "reduced") const;
  /// linalg::svd(): {U, S, Vh}.
  std::tuple<Tensor, Tensor, Tensor> svd(bool full_matrices = true) const;
  /// linalg::det().
  Tensor det() const;
  /// The logarithm of det(); NaN where that is negative.
  Tensor logdet() const;
  /// linalg::slogdet(): {sign, logarithm of the absolute value}.
  std::pair<Tensor, Tensor> slogdet() const;
  /// linalg::inv().
  Tensor inverse() const;
  /// linalg::pinv(), singular values up to rcond times the largest counting as 0.
  Tensor pinverse(double rcond = 1e-15) const;
  /// linalg::matrix_power().
  Tensor matrix_power(int64_t n) const;
  /// Each matrix made nearly orthogonal by an odd polynomial of its singular values, which are
  /// brought to at most 1 first, by division by the Frobenius norm and eps: so many steps of
  /// X (c0 + c1 XᵀX + c2 (XᵀX)² + ...) on the shorter side. The coefficients given are those of
  /// Jordan and others (Muon, 2024), which end between 0.7 and 1.2. f16 and bf16 are computed in
  /// f32. ShapeError below two axes.
  Tensor newton_schulz(int64_t steps = 5,
                       const std::vector<double>& coefficients = {3.4445, -4.7750, 2.0315},
                       double eps = 1e-7) const;

 protected:
  TensorLinalg() = default;
  ~TensorLinalg() = default;
  TensorLinalg(const TensorLinalg&) = default;
  TensorLinalg& operator=(const TensorLinalg&) = default;
};

}  // namespace tuff
