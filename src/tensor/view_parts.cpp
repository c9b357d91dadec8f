// Parts of a tensor cut out or put in: splits of fixed axes, and another tensor in a view's place.
#include <algorithm>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::self;
using detail::text;
using detail::wrap_dim;

namespace {

// The axis that a split of this name goes along.
int64_t axis_of_split(const char* what, const Tensor& x, int64_t axes, int64_t axis) {
  if (x.dim() < axes)
    fail<ShapeError>("{}: {} has {} axes, fewer than {}", what, text(x.sizes()), x.dim(), axes);
  return x.dim() == 1 ? 0 : axis;
}

// As many parts of one length.
std::vector<Tensor> equal_parts(const char* what, const Tensor& x, int64_t sections, int64_t axis) {
  const Size n = x.size(axis);
  if (sections > 0 && n.is_number() && int64_t(n) % sections != 0)
    fail<ShapeError>("{}: axis {} of {} does not divide into {} parts: tensor_split() makes uneven "
                     "ones", what, axis, text(x.sizes()), sections);
  return x.tensor_split(sections, axis);
}

void require_shape_of_part(const char* what, const Tensor& source, const Sizes& part) {
  if (!detail::same(source.sizes(), part))
    fail<ShapeError>("{}: a source of {} for a part of {}: expand() or reshape() it", what,
                     text(source.sizes()), text(part));
}

// Everything of the axes before d, then `index`.
std::vector<Index> indices_up_to(int64_t d, Index index) {
  std::vector<Index> all(static_cast<size_t>(d), Index{indexing::Slice()});
  all.push_back(std::move(index));
  return all;
}

}  // namespace

std::vector<Tensor> TensorViews::hsplit(int64_t sections) const {
  const Tensor& x = self(this);
  return equal_parts("hsplit", x, sections, axis_of_split("hsplit", x, 1, 1));
}
std::vector<Tensor> TensorViews::hsplit_at(const Axes& indices) const {
  return tensor_split_at(indices, axis_of_split("hsplit_at", self(this), 1, 1));
}
std::vector<Tensor> TensorViews::vsplit(int64_t sections) const {
  const Tensor& x = self(this);
  return equal_parts("vsplit", x, sections, axis_of_split("vsplit", x, 2, 0));
}
std::vector<Tensor> TensorViews::vsplit_at(const Axes& indices) const {
  return tensor_split_at(indices, axis_of_split("vsplit_at", self(this), 2, 0));
}
std::vector<Tensor> TensorViews::dsplit(int64_t sections) const {
  const Tensor& x = self(this);
  return equal_parts("dsplit", x, sections, axis_of_split("dsplit", x, 3, 2));
}
std::vector<Tensor> TensorViews::dsplit_at(const Axes& indices) const {
  return tensor_split_at(indices, axis_of_split("dsplit_at", self(this), 3, 2));
}

Tensor TensorViews::t() const {
  const Tensor& x = self(this);
  if (x.dim() > 2)
    fail<ShapeError>("t: {} has more than two axes: transpose() names two", text(x.sizes()));
  return x.dim() == 2 ? x.T() : x;
}

Tensor TensorViews::diagflat(int64_t offset) const { return ravel().diag_embed(offset, 0, 1); }

Tensor TensorViews::select_scatter(const Tensor& source, int64_t dim, int64_t index) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("select_scatter", dim, x.dim());
  require_shape_of_part("select_scatter", source, x.select(d, index).sizes());
  return x.index_put(indices_up_to(d, index), source);
}

Tensor TensorViews::slice_scatter(const Tensor& source, int64_t dim, std::optional<Size> start,
                                  std::optional<Size> stop, int64_t step) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("slice_scatter", dim, x.dim());
  if (step <= 0) fail<InvalidArgument>("slice_scatter: step {} must be positive", step);
  require_shape_of_part("slice_scatter", source, x.slice(d, start, stop, step).sizes());
  return x.index_put(indices_up_to(d, indexing::Slice{start, stop, step}), source);
}

// In row r of the matrices stands the element r, or r + offset where that is below 0.
Tensor TensorViews::diagonal_scatter(const Tensor& source, int64_t offset, int64_t dim1,
                                     int64_t dim2) const {
  const Tensor& x = self(this);
  require_shape_of_part("diagonal_scatter", source, diagonal(offset, dim1, dim2).sizes());
  const Tensor m = movedim(Axes{dim1, dim2}, Axes{-2, -1});
  if (detail::same(source.numel(), 0)) return m.movedim(Axes{-2, -1}, Axes{dim1, dim2});
  const int64_t rank = x.dim(), above = std::max<int64_t>(0, -offset), rows = m.size(-2);
  const int64_t after = rows - above - int64_t(source.size(-1));
  const Tensor value = detail::pad_axis(source, rank - 2, above, after).unsqueeze(-1);
  const Tensor row = detail::counter(rows, rank - 2, rank, x.device()),
               column = detail::counter(m.size(-1), rank - 1, rank, x.device());
  const Tensor out = Tensor::where(column - row == offset, value.cast(x.dtype()), m);
  return out.movedim(Axes{-2, -1}, Axes{dim1, dim2});
}

Tensor TensorViews::as_strided_scatter(const Tensor& source, const Sizes& sizes,
                                       const std::vector<int64_t>& stride, int64_t offset) const {
  const Tensor& x = self(this);
  detail::require_numbers("as_strided_scatter", x.sizes());
  require_shape_of_part("as_strided_scatter", source, sizes);
  const Tensor places = detail::counter(x.numel(), 0, 1, x.device());
  return x.put(places.as_strided(sizes, stride, offset), source);
}

}  // namespace tuff
