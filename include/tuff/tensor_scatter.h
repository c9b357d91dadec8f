// TensorScatter: what is stored by index: a part of class Tensor, which inherits it. Users include
// tensor.h. Must never know how devices store.
#pragma once

#include <optional>
#include <string_view>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Elements put to, or combined at, places that integer tensors name. The cost is that of a copy
/// and of what is stored, whatever the tensor's size; in place, without the copy. Of elements that
/// come to one place the last counts, or all are combined in the order of the index: the same bits
/// on every run. Sums and products of F16 and BF16 are rounded once, at the end. Gradients go to
/// what is left and to what was put.
///
/// Positions follow the rule of Tensor's indexing: they may count from the end; one outside
/// of -n..n-1 is an IndexError where the host knows it, and else puts nothing. Values are cast
/// to this tensor's dtype. ShapeError for shapes that do not fit, InvalidArgument for an index that
/// is no integer and for a reduction that is not named.
///
/// Functions whose name ends in _ are those in place, with the rules of TensorWrites.
class TensorScatter {
 public:
  /// out[index[i][j]][j] = source[i][j] for dim 0, and so on. index is no larger than source, nor
  /// than this tensor off `dim`; where it is smaller, only that part of the source is put. reduce
  /// "add" or "multiply" combines.
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& source,
                 std::string_view reduce = "") const;
  /// The same number everywhere.
  Tensor scatter(int64_t dim, const Tensor& index, Number value,
                 std::string_view reduce = "") const;
  /// scatter() in place.
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& source,
                   std::string_view reduce = "");
  /// scatter() in place.
  Tensor& scatter_(int64_t dim, const Tensor& index, Number value, std::string_view reduce = "");
  /// scatter() that adds.
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& source) const;
  /// scatter_add() in place.
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& source);
  /// scatter() by "sum", "prod", "mean", "amax" or "amin". What this tensor holds where something
  /// comes to takes part unless include_self is false. Means of integers are rounded down.
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                        std::string_view reduce, bool include_self = true) const;
  /// scatter_reduce() in place.
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                          std::string_view reduce, bool include_self = true);
  /// Rows of an axis, of which index (one axis, or none) names as many as source has: out[index[i]]
  /// += alpha * source[i] for dim 0.
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, Number alpha = 1) const;
  /// index_add() in place.
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, Number alpha = 1);
  /// Rows replaced by those of the source.
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  /// index_copy() in place.
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  /// Rows filled with a number.
  Tensor index_fill(int64_t dim, const Tensor& index, Number value) const;
  /// Rows filled with what a tensor without axes holds.
  Tensor index_fill(int64_t dim, const Tensor& index, const Tensor& value) const;
  /// index_fill() in place.
  Tensor& index_fill_(int64_t dim, const Tensor& index, Number value);
  /// index_fill() in place.
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Tensor& value);
  /// Rows combined as scatter_reduce() does by "prod", "mean", "amax" or "amin".
  Tensor index_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce, bool include_self = true) const;
  /// index_reduce() in place.
  Tensor& index_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                        std::string_view reduce, bool include_self = true);
  /// Elements of the flattened tensor replaced by those of source, which has as many as index, or
  /// added to.
  Tensor put(const Tensor& index, const Tensor& source, bool accumulate = false) const;
  /// put() in place.
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false);
  /// Where the mask (bool, broadcast) holds, the next element of the flattened source; zeros where
  /// it has too few.
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  /// masked_scatter() in place.
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);
  /// The elements where the mask (bool; both broadcast) holds, in row-major order, as a vector.
  /// Waits for how many there are; InvalidArgument inside a Jit.
  Tensor masked_select(const Tensor& mask) const;
  /// gather() of what index and this tensor broadcast to off `dim`; of the flattened tensor without
  /// one.
  Tensor take_along_dim(const Tensor& index, std::optional<int64_t> dim = {}) const;

 protected:
  TensorScatter() = default;
  ~TensorScatter() = default;
  TensorScatter(const TensorScatter&) = default;
  TensorScatter& operator=(const TensorScatter&) = default;
};

/// Whether every result has the same bits on every run, which is the default. Without it GPUs add,
/// multiply and compare what comes to one place (scatter_add(), index_add(), the gradients of
/// embedding(), gather() and indexing) in any order, by atomic operations where that is faster:
/// sums of floats differ in their last bits from run to run then. For the whole process, from what
/// is realized, or recorded by a Jit, next.
void use_deterministic_algorithms(bool on);
bool are_deterministic_algorithms_enabled();  ///< As use_deterministic_algorithms() was told.

}  // namespace tuff
