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
  /// Equal parts along axis 1, of vectors along axis 0; ShapeError for scalars, and where they
  /// would not be equal. hsplit_at() is tensor_split_at() there.
  std::vector<Tensor> hsplit(int64_t sections) const;
  std::vector<Tensor> hsplit_at(const Axes& indices) const;
  /// hsplit() along axis 0; ShapeError below two axes.
  std::vector<Tensor> vsplit(int64_t sections) const;
  std::vector<Tensor> vsplit_at(const Axes& indices) const;
  /// hsplit() along axis 2; ShapeError below three axes.
  std::vector<Tensor> dsplit(int64_t sections) const;
  std::vector<Tensor> dsplit_at(const Axes& indices) const;
  /// Matrices (vectors as rows, scalars as (1, 1)) along a diagonal, zeros elsewhere; (1, 0) of
  /// none. ShapeError beyond two axes.
  static Tensor block_diag(const std::vector<Tensor>& tensors);
  /// All expanded to the shape that they have together; ShapeError where there is none.
  static std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
  /// Every choice of one element of each vector: (product of their lengths, how many), the last one
  /// running fastest; of one vector itself. ShapeError for other ranks.
  static Tensor cartesian_prod(const std::vector<Tensor>& tensors);
  /// Every choice of r elements of a vector, in order: (how many, r); with_replacement: one element
  /// may be chosen several times. InvalidArgument for a negative r, ShapeError for other ranks.
  Tensor combinations(int64_t r = 2, bool with_replacement = false) const;
  /// Rows and columns (2, count) of the elements on and below a diagonal of (rows, columns), row by
  /// row; I64. InvalidArgument for negative extents.
  static Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0,
                             const std::string& device = {});
  /// The same on and above a diagonal.
  static Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0,
                             const std::string& device = {});
  /// Where positions of the flattened tensor of these sizes are: one tensor per axis.
  /// InvalidArgument for positions that are no integers.
  std::vector<Tensor> unravel_index(const Sizes& sizes) const;
  /// A matrix with the flattened tensor on a diagonal.
  Tensor diagflat(int64_t offset = 0) const;
  /// This tensor with `source`, of the shape of select(dim, index), in its place.
  Tensor select_scatter(const Tensor& source, int64_t dim, int64_t index) const;
  /// The same of slice(dim, start, stop, step).
  Tensor slice_scatter(const Tensor& source, int64_t dim = 0, std::optional<Size> start = {},
                       std::optional<Size> stop = {}, int64_t step = 1) const;
  /// The same of diagonal(offset, dim1, dim2).
  Tensor diagonal_scatter(const Tensor& source, int64_t offset = 0, int64_t dim1 = 0,
                          int64_t dim2 = 1) const;
  /// The same of as_strided(sizes, stride, offset). InvalidArgument for extents that vary.
  Tensor as_strided_scatter(const Tensor& source, const Sizes& sizes,
                            const std::vector<int64_t>& stride, int64_t offset = 0) const;
  /// n times the differences of neighbours along an axis; of bools whether they differ.
  /// InvalidArgument for a negative n, ShapeError for a scalar.
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  /// The same of the axis with `prepend` in front and `append` behind; undefined ones are none.
  Tensor diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const;
  /// Axes to other places; the others keep their order. InvalidArgument for lists that differ in
  /// length or name an axis twice.
  Tensor movedim(const Axes& source, const Axes& destination) const;
  Tensor movedim(int64_t source, int64_t destination) const;
  /// transpose() by NumPy's name.
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  /// Two axes exchanged; vectors and scalars as they are. ShapeError beyond two axes.
  Tensor t() const;
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
