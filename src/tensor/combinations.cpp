// Several tensors together, choices of elements, and positions in matrices.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/positions.h"

namespace tuff {

using detail::self;
using detail::text;

namespace {

void require_vector(const char* what, const Tensor& x) {
  if (x.dim() != 1) fail<ShapeError>("{}: {} is no vector", what, text(x.sizes()));
}

// The next choice of positions below n in order; false behind the last. With replacement they may
// be equal.
bool next_choice(std::vector<int32_t>& chosen, int64_t n, bool with_replacement) {
  const auto r = int64_t(chosen.size());
  for (int64_t i = r - 1; i >= 0; i--) {
    const int64_t last = with_replacement ? n - 1 : n - r + i;
    if (chosen[size_t(i)] == last) continue;
    int32_t value = ++chosen[size_t(i)];
    for (int64_t j = i + 1; j < r; j++) chosen[size_t(j)] = with_replacement ? value : ++value;
    return true;
  }
  return false;
}

// Row by row what stands from begin(row) to end(row).
template <class Begin, class End>
Tensor places_in_rows(const char* what, int64_t rows, int64_t columns, const std::string& device,
                      Begin&& begin, End&& end) {
  if (rows < 0 || columns < 0)
    fail<InvalidArgument>("{}: a matrix of {} x {}", what, rows, columns);
  std::vector<int64_t> row, column;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t last = std::clamp<int64_t>(end(r), 0, columns);
    for (int64_t c = std::clamp<int64_t>(begin(r), 0, columns); c < last; c++) {
      row.push_back(r);
      column.push_back(c);
    }
  }
  const auto count = int64_t(row.size());
  row.insert(row.end(), column.begin(), column.end());
  return Tensor::from(row, {2, count}, {.device = device});
}

}  // namespace

Tensor TensorViews::block_diag(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return Tensor::empty({1, 0});
  std::vector<Tensor> blocks;
  int64_t columns = 0, before = 0;
  DType t = tensors[0].dtype();
  for (const Tensor& x : tensors) {
    if (x.dim() > 2)
      fail<ShapeError>("block_diag: {} has more than two axes", text(x.sizes()));
    blocks.push_back(x.atleast_2d());
    detail::require_numbers("block_diag", blocks.back().sizes());
    columns += int64_t(blocks.back().size(1));
    t = promote(t, x.dtype());
  }
  for (Tensor& x : blocks) {
    const int64_t own = x.size(1);
    x = detail::pad_axis(x.cast(t), 1, before, columns - before - own);
    before += own;
  }
  return Tensor::cat(blocks, 0);
}

std::vector<Tensor> TensorViews::broadcast_tensors(const std::vector<Tensor>& tensors) {
  Sizes all;
  for (const Tensor& x : tensors)
    all = detail::broadcast_sizes("broadcast_tensors", all, x.sizes());
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(x.expand(all));
  return out;
}

Tensor TensorViews::cartesian_prod(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) fail<InvalidArgument>("cartesian_prod: no tensors");
  for (const Tensor& x : tensors) require_vector("cartesian_prod", x);
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (const Tensor& grid : meshgrid(tensors)) columns.push_back(grid.ravel());
  return Tensor::stack(columns, 1);
}

Tensor TensorViews::combinations(int64_t r, bool with_replacement) const {
  const Tensor& x = self(this);
  require_vector("combinations", x);
  detail::require_numbers("combinations", x.sizes());
  if (r < 0) fail<InvalidArgument>("combinations: {} elements", r);
  if (r == 0) return Tensor::empty({0}, {x.dtype(), x.device()});
  const int64_t n = x.numel();
  if (n == 0 || (r > n && !with_replacement))
    return Tensor::empty({0, r}, {x.dtype(), x.device()});
  std::vector<int32_t> chosen(static_cast<size_t>(r), 0), all;
  if (!with_replacement) std::iota(chosen.begin(), chosen.end(), 0);
  do all.insert(all.end(), chosen.begin(), chosen.end());
  while (next_choice(chosen, n, with_replacement));
  const auto count = int64_t(all.size());
  const Tensor index = Tensor::from(all, {count}, {.device = x.device()});
  return x.index_select(0, index).reshape({count / r, r});
}

Tensor TensorViews::tril_indices(int64_t rows, int64_t columns, int64_t offset,
                                 const std::string& device) {
  return places_in_rows(
      "tril_indices", rows, columns, device, [](int64_t) { return 0; },
      [&](int64_t r) { return r + offset + 1; });
}
Tensor TensorViews::triu_indices(int64_t rows, int64_t columns, int64_t offset,
                                 const std::string& device) {
  return places_in_rows(
      "triu_indices", rows, columns, device, [&](int64_t r) { return r + offset; },
      [&](int64_t) { return columns; });
}

std::vector<Tensor> TensorViews::unravel_index(const Sizes& sizes) const {
  Tensor left = self(this);
  detail::require_integers("unravel_index", left);
  detail::require_numbers("unravel_index", sizes);
  const int64_t n = ir::element_count(detail::shape_of(sizes));
  detail::require_inside({"unravel_index", 0, n, "position"}, left);
  std::vector<Tensor> out(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    const int64_t extent = std::max<int64_t>(1, int64_t(sizes[i]));
    out[i] = i == 0 ? left : left.remainder(extent);
    left = left.floor_divide(extent);
  }
  return out;
}

}  // namespace tuff
