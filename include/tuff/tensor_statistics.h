// TensorStatistics: extremes, moments, norms and distances: a part of class Tensor, which inherits
// it. Users include tensor.h.
#pragma once

#include <optional>
#include <utility>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Reductions that give several results or measure tensors against each other. Axes and keepdim as
/// in Tensor's own reductions.
class TensorStatistics {
 public:
  /// Tensor::max() and Tensor::min() by PyTorch's names, where several axes are meant. Elements
  /// that are equally large share the gradient.
  Tensor amax(const Axes& dims = {}, bool keepdim = false) const;
  Tensor amin(const Axes& dims = {}, bool keepdim = false) const;
  /// {smallest, largest}, of all axes or one.
  std::pair<Tensor, Tensor> aminmax(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  /// {largest, where it is}: PyTorch's max(dim). The first of equals, as argmax() has it, which
  /// alone has the gradient.
  std::pair<Tensor, Tensor> max_with_indices(int64_t dim, bool keepdim = false) const;
  std::pair<Tensor, Tensor> min_with_indices(int64_t dim, bool keepdim = false) const;
  /// sum() with NaN as 0.
  Tensor nansum(const Axes& dims = {}, bool keepdim = false) const;
  /// mean() of what is not NaN; NaN if there is nothing. InvalidArgument for integers and bools.
  Tensor nanmean(const Axes& dims = {}, bool keepdim = false) const;
  /// The sum over axes that these sizes, which broadcast to the tensor's, do not have, or have as 1.
  /// ShapeError for others.
  Tensor sum_to_size(const Sizes& sizes) const;
  /// {var(), mean()}.
  std::pair<Tensor, Tensor> var_mean(const Axes& dims = {}, bool keepdim = false,
                                     int64_t correction = 1) const;
  /// {std(), mean()}.
  std::pair<Tensor, Tensor> std_mean(const Axes& dims = {}, bool keepdim = false,
                                     int64_t correction = 1) const;
  /// (sum of |x|^p)^(1/p); the largest |x| for infinity, the smallest for -infinity, how many are
  /// not 0 for 0. The gradient of a norm that is 0 is 0. Squares are not scaled, so that they may
  /// leave the range of the dtype (of F32 for 16 bits).
  Tensor norm(double p = 2, const Axes& dims = {}, bool keepdim = false) const;
  /// How many elements are not 0, as I64.
  Tensor count_nonzero(const Axes& dims = {}) const;
  /// The product of two vectors along an axis over that of their lengths, each of which is at least
  /// eps.
  Tensor cosine_similarity(const Tensor& other, int64_t dim = 1, double eps = 1e-8) const;
  /// (..., n, k), (..., m, k) -> (..., n, m): the norm of the difference of every row of one and
  /// every row of the other.
  Tensor cdist(const Tensor& other, double p = 2) const;
  /// norm(x - other, p) of all elements.
  Tensor dist(const Tensor& other, double p = 2) const;
  /// The distances of each row of (n, k) to all that come after it: (n (n - 1) / 2). ShapeError for
  /// other ranks, InvalidArgument for a negative p.
  Tensor pdist(double p = 2) const;
  /// The norm along the last axis of the difference, to each element of which eps is added.
  Tensor pairwise_distance(const Tensor& other, double p = 2, double eps = 1e-6,
                           bool keepdim = false) const;
  /// Each slice of an axis, whose p-norm is above maxnorm, scaled down to it. InvalidArgument
  /// for p that is not positive, a negative maxnorm and what is no float, ShapeError below two axes.
  Tensor renorm(double p, int64_t dim, double maxnorm) const;
  /// The integral along an axis by the trapezoidal rule: points dx apart, or at x, which is a vector
  /// or has the tensor's shape (ShapeError). 0 for less than two points. Integers become F32.
  Tensor trapezoid(double dx = 1, int64_t dim = -1) const;
  Tensor trapezoid(const Tensor& x, int64_t dim = -1) const;
  /// Its running values, one fewer than points.
  Tensor cumulative_trapezoid(double dx = 1, int64_t dim = -1) const;
  Tensor cumulative_trapezoid(const Tensor& x, int64_t dim = -1) const;
  /// The covariance of variables (rows) over observations (columns), divided by
  /// max(0, count - correction); a vector is one variable. ShapeError beyond two axes.
  Tensor cov(int64_t correction = 1) const;
  /// Pearson's coefficients of the same, kept in -1..1.
  Tensor corrcoef() const;
  /// Whether isclose() holds everywhere. Waits for the values.
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;
  /// The same shape and equal elements; NaN equals nothing. Waits for the values.
  bool equal(const Tensor& other) const;

 protected:
  TensorStatistics() = default;
  ~TensorStatistics() = default;
  TensorStatistics(const TensorStatistics&) = default;
  TensorStatistics& operator=(const TensorStatistics&) = default;
};

}  // namespace tuff
