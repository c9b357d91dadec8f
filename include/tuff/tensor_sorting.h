// TensorSorting: order, selection, search, counts and running values: a part of class Tensor, which
// inherits it. Users include tensor.h.
#pragma once

#include <optional>
#include <utility>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;
struct UniqueElements;

/// Elements by their order. Everywhere -0 equals 0, NaN is above all else, and of equal elements
/// the first one comes first (also where the order is descending). Positions are I32, or I64 where
/// an axis has more than 2^31 - 1 elements; a scalar counts as one element. Gradients flow to the
/// elements that were chosen. Unsupported for extents that vary.
///
/// Nothing waits for values and all of it works in a Jit, except where a number of elements depends
/// on data: unique(), unique_consecutive() and bincount() are computed at once, and are
/// InvalidArgument inside a Jit.
class TensorSorting {
 public:
  // ---- order

  /// {elements in order, where they were}.
  std::pair<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false) const;
  /// Where the elements of sort() were.
  Tensor argsort(int64_t dim = -1, bool descending = false) const;
  /// sort() along axis 0, without positions.
  Tensor msort() const;
  /// {the k largest or smallest, where they were}, the most extreme first. ShapeError unless k is
  /// in 0..n.
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true) const;

  // ---- selection; keepdim as in reductions. ShapeError where there is nothing to choose from.

  /// {the k-th smallest, counted from 1, where it was}. ShapeError unless k is in 1..n.
  std::pair<Tensor, Tensor> kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  /// The middle one of all elements, of two the smaller; NaN if there is one.
  Tensor median() const;
  /// {the middle one of an axis, where it was}.
  std::pair<Tensor, Tensor> median(int64_t dim, bool keepdim = false) const;
  /// The same of elements that are not NaN; NaN if there are none.
  Tensor nanmedian() const;
  std::pair<Tensor, Tensor> nanmedian(int64_t dim, bool keepdim = false) const;
  /// {the most frequent element, its last position}; of equally frequent ones the smallest. Of NaN
  /// each counts for itself.
  std::pair<Tensor, Tensor> mode(int64_t dim = -1, bool keepdim = false) const;
  /// The value at q (n - 1) of the sorted elements, of all or of an axis, where that lies between
  /// two of them by `between`; NaN if there is one. Integers become F32. InvalidArgument unless q
  /// is in 0..1, Unsupported for more than 2^24 elements, of F64 2^31 - 1.
  Tensor quantile(double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                  Interpolation between = Interpolation::Linear) const;
  /// For every q of a vector, along a new first axis; for a scalar without that axis. What is
  /// outside of 0..1 counts as its nearer end. ShapeError for more axes of q.
  Tensor quantile(const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                  Interpolation between = Interpolation::Linear) const;
  /// The same of elements that are not NaN; NaN if there are none.
  Tensor nanquantile(double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Interpolation between = Interpolation::Linear) const;
  /// The same for every q of a vector, or for a scalar.
  Tensor nanquantile(const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Interpolation between = Interpolation::Linear) const;

  // ---- search and counts

  /// How many elements of the last axis of this sorted tensor are below each value (right: not
  /// above it), which is where the value can be put. This tensor is a vector, or values (..., m)
  /// have its leading extents (ShapeError). What is not sorted gives some position. NaN is above
  /// all.
  Tensor searchsorted(const Tensor& values, bool right = false) const;
  /// The other way round: where these values can be put among boundaries, a sorted vector.
  Tensor bucketize(const Tensor& boundaries, bool right = false) const;
  /// Bool: is each element (not, if invert) one of these? NaN is none.
  Tensor isin(const Tensor& elements, bool invert = false) const;
  /// How often 0, 1, ... stand in a vector of integers: as many counts (I32) as the largest asks
  /// for, at least minlength. IndexError for a negative one, ShapeError for other ranks.
  Tensor bincount(int64_t minlength = 0) const;
  /// The sums of the weights that stand beside 0, 1, ...; in their dtype, integers in F32.
  Tensor bincount(const Tensor& weights, int64_t minlength = 0) const;
  /// How many elements lie in each of so many equal parts of min..max, max included; of the
  /// smallest to the largest element if min and max are equal. NaN lies in none. In the dtype of
  /// the elements, integers in F32. InvalidArgument unless bins are positive and min <= max are
  /// finite.
  Tensor histc(int64_t bins = 100, double min = 0, double max = 0) const;
  /// The different elements in order; every NaN is one. Waits for the number of them. No gradient.
  UniqueElements unique() const;
  /// The different slices of an axis in order, by their first difference; inverse and counts are
  /// those of slices. Waits as unique() does.
  UniqueElements unique(int64_t dim) const;
  /// The same with each run of equal elements as one, in the order in which they stand.
  UniqueElements unique_consecutive() const;

  // ---- draws, from the generator that rand() uses

  /// So many positions of the last axis of (n) or (m, n), drawn with these weights; negative ones
  /// and NaN count as 0, and where all do, or one is infinite, any position may be drawn. Without
  /// replacement each is drawn once at most: ShapeError for more than n, and weights of 0 come
  /// last.
  Tensor multinomial(int64_t num_samples, bool replacement = false) const;
  /// 0..n-1 in random order: the order of 64 random bits each.
  static Tensor randperm(int64_t n, const TensorOptions& options = {.dtype = DType::I32});

  // ---- running values along an axis

  /// Running products; of integers I64, of unsigned ones U64.
  Tensor cumprod(int64_t dim) const;
  /// {the largest element so far, its last position}; NaN once there was one.
  std::pair<Tensor, Tensor> cummax(int64_t dim) const;
  /// {the smallest element so far, its last position}; NaN once there was one.
  std::pair<Tensor, Tensor> cummin(int64_t dim) const;
  /// The logarithm of the running sum of exponentials, without overflow on the way.
  Tensor logcumsumexp(int64_t dim) const;

 protected:
  TensorSorting() = default;
  ~TensorSorting() = default;
  TensorSorting(const TensorSorting&) = default;
  TensorSorting& operator=(const TensorSorting&) = default;
};

}  // namespace tuff
