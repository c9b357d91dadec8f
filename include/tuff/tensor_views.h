// TensorViews: movement beyond reshape, permute and slices: a part of class Tensor, which inherits
// it. Users include tensor.h. Must never know how tensors are stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Elements in other places: index transforms, without copies. Errors as those of Tensor's own
/// movement: IndexError for an axis that is not there, ShapeError for extents that do not fit.
class TensorViews {
 public:
  /// Elements moved on along axes, the last ones to the front; of the flattened tensor if no axes
  /// are given. InvalidArgument unless there is a shift for every axis.
  Tensor roll(const Axes& shifts, const Axes& dims = {}) const;
  /// Every element so many times in a row, along an axis or of the flattened tensor.
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}) const;
  /// repeat(), with counts of 1 in front where there are fewer than axes (NumPy's rule).
  Tensor tile(const Sizes& repeats) const;
  /// Grids of coordinates: one tensor per axis, all of the shape that the vectors (or scalars) have
  /// together; GridOrder::Columns exchanges the first two axes (NumPy's "xy").
  static std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors,
                                      GridOrder order = GridOrder::Rows);
  /// A matrix with this vector on a diagonal, or the diagonal of this matrix. ShapeError for other
  /// ranks.
  Tensor diag(int64_t diagonal = 0) const;
  /// A diagonal of two axes, as the last axis: above the main one for offset > 0.
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  /// The last axis on a diagonal of two new axes, which stand at dim1 and dim2 of the result;
  /// zeros elsewhere.
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) const;
  /// The sum of the main diagonal; ShapeError unless of two axes.
  Tensor trace() const;
  /// select() of every position of an axis.
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  /// So many parts, of which the first are one longer if they cannot be equal.
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0) const;
  /// Parts that begin at these positions, the first at 0; cut as slices are.
  std::vector<Tensor> tensor_split_at(const Axes& indices, int64_t dim = 0) const;
  /// Side by side: along axis 1, of vectors along axis 0.
  static Tensor hstack(const std::vector<Tensor>& tensors);
  /// Below each other: along axis 0, vectors as rows.
  static Tensor vstack(const std::vector<Tensor>& tensors);
  /// Behind each other: along axis 2 of what atleast_3d() gives.
  static Tensor dstack(const std::vector<Tensor>& tensors);
  /// As hstack(), vectors as columns.
  static Tensor column_stack(const std::vector<Tensor>& tensors);
  /// Axes to other places; the others keep their order. InvalidArgument for lists that differ in
  /// length or name an axis twice.
  Tensor movedim(const Axes& source, const Axes& destination) const;
  Tensor movedim(int64_t source, int64_t destination) const;
  /// transpose() by NumPy's name.
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  /// expand() by NumPy's name.
  Tensor broadcast_to(const Sizes& sizes) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor view_as(const Tensor& other) const;
  Tensor reshape_as(const Tensor& other) const;
  /// One axis cut into several, of which one extent may be -1.
  Tensor unflatten(int64_t dim, const Sizes& sizes) const;
  /// All axes as one; flatten() by NumPy's name.
  Tensor ravel() const;
  /// Turned by k quarters from the first axis towards the second. InvalidArgument unless two
  /// different axes are given.
  Tensor rot90(int64_t k = 1, const Axes& dims = {0, 1}) const;
  /// Axis 1 turned round; ShapeError below two axes.
  Tensor fliplr() const;
  /// Axis 0 turned round; ShapeError for a scalar.
  Tensor flipud() const;
  /// As Tensor::pad, with elements of the tensor instead of a value. ShapeError where a mirror
  /// image would need more than n - 1 elements of an axis, or a repetition more than n.
  Tensor pad(const std::vector<int64_t>& padding, PadMode mode) const;
  /// Zeros (or another value) behind the axes up to these extents; -1 keeps one. ShapeError for a
  /// smaller one.
  Tensor pad_to(const Sizes& sizes, Number value = 0) const;
  /// The first elements of the axes up to these extents; -1 keeps one. ShapeError for a larger one.
  Tensor shrink_to(const Sizes& sizes) const;
  /// Windows of `size` elements along an axis, `step` apart, as a last axis of their own; they may
  /// overlap. InvalidArgument unless size and step are positive, ShapeError for a window that does
  /// not fit.
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  /// out[i][j] = flattened[offset + i * stride[0] + j * stride[1]], and so on, of the elements in
  /// row-major order, whatever memory they lie in; they may be taken more than once. By movement
  /// where the strides are nested, else by positions. InvalidArgument for negative strides and for
  /// another number of them than of sizes, ShapeError where a position is beyond the tensor.
  Tensor as_strided(const Sizes& sizes, const std::vector<int64_t>& stride,
                    int64_t offset = 0) const;
  /// Axes by names, in einops' notation: "b (h p) c -> b h (p c)" splits, permutes and joins;
  /// "..." are the axes that have no name, "1" and "()" an axis of extent 1. Extents of axes that a
  /// group is split into, all but one, stand in `sizes`. InvalidArgument for a pattern that cannot
  /// be read, or whose sides name different axes; ShapeError for extents that do not fit.
  Tensor rearrange(std::string_view pattern,
                   const std::vector<std::pair<std::string, int64_t>>& sizes = {}) const;
  /// Axes of extent 1 in front, or NumPy's places for them: (n) becomes (1, n), (1, n, 1).
  Tensor atleast_1d() const;
  Tensor atleast_2d() const;
  Tensor atleast_3d() const;

 protected:
  TensorViews() = default;
  ~TensorViews() = default;
  TensorViews(const TensorViews&) = default;
  TensorViews& operator=(const TensorViews&) = default;
};

}  // namespace tuff
