// Images at the places of a grid, and the grids of affine maps.
#include <array>
#include <vector>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/resize.h"

namespace tuff {

using detail::self;
using detail::text;

namespace {

enum class Outside { Zeros, Border, Reflection };

Outside outside_of(std::string_view word) {
  if (word == "zeros") return Outside::Zeros;
  if (word == "border") return Outside::Border;
  if (word == "reflection") return Outside::Reflection;
  fail<InvalidArgument>("grid_sample: padding_mode '{}' is none of zeros, border, reflection",
                        word);
}

// One axis of n elements: coordinates (N, points) in units of elements.
struct Line {
  int64_t n;
  Outside outside;
  bool align_corners;

  Tensor places(const Tensor& c) const {
    return align_corners ? (c + 1) * (double(n - 1) / 2) : ((c + 1) * double(n) - 1) * 0.5;
  }
  // Mirrored at the ends as often as it takes.
  Tensor reflected(const Tensor& x) const {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? double(n - 1) : double(n);
    if (span == 0) return x * 0.0;
    const Tensor off = (x - low).abs(), times = (off.detach() / span).floor();
    const Tensor rest = off - times * span;
    const Tensor odd = times - (times * 0.5).floor() * 2.0 == 1;
    return Tensor::where(odd, span - rest, rest) + low;
  }
  Tensor inside(const Tensor& x) const {
    if (outside == Outside::Zeros) return x;
    return (outside == Outside::Reflection ? reflected(x) : x).clamp(0, double(n - 1));
  }
};

// The element at whole coordinates of each line: those beyond the ends count for nothing.
Tensor corner(const Tensor& x, const std::vector<Line>& lines, const std::vector<Tensor>& at) {
  int64_t count = 1;
  for (const Line& l : lines) count *= l.n;
  const DType t = detail::position_dtype(count);
  Tensor place, counts;
  for (size_t i = 0; i < lines.size(); i++) {
    const Tensor in = (at[i] >= 0) & (at[i] <= double(lines[i].n - 1));
    const Tensor index = at[i].clamp(0, double(lines[i].n - 1)).cast(t);
    counts = counts.defined() ? counts & in : in;
    place = place.defined() ? place * lines[i].n + index : index;
  }
  place = Tensor::where(counts, place, -1);  // picks a zero
  const Size n = x.size(0), points = place.size(1);
  const Tensor hit = place.reshape({n, 1, points, 1}) ==
                     detail::counter(count, 3, 4, x.device()).cast(t);
  return detail::pick(hit, x.reshape({n, x.size(1), 1, count}), {3});
}

using Coordinates = std::vector<Tensor>;  // of each line, (N, points)

Tensor sampled_linear(const Tensor& x, const std::vector<Line>& lines, const Coordinates& at) {
  Coordinates first, rest;
  for (const Tensor& c : at) first.push_back(c.detach().floor()), rest.push_back(c - first.back());
  Tensor sum;
  for (size_t k = 0; k < size_t(1) << lines.size(); k++) {
    Coordinates here;
    Tensor weight;
    for (size_t i = 0; i < lines.size(); i++) {
      const bool next = k >> i & 1;
      here.push_back(next ? first[i] + 1 : first[i]);
      const Tensor w = next ? rest[i] : 1 - rest[i];
      weight = weight.defined() ? weight * w : w;
    }
    const Tensor part = corner(x, lines, here) * weight.unsqueeze(1);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor sampled_cubic(const Tensor& x, const std::vector<Line>& lines, const Coordinates& at) {
  const Tensor row = at[0].detach().floor(), column = at[1].detach().floor();
  const std::array<Tensor, 4> down = detail::cubic_weights(at[0] - row, -0.75),
                              right = detail::cubic_weights(at[1] - column, -0.75);
  Tensor sum;
  for (size_t i = 0; i < 4; i++) {
    const Tensor y = lines[0].inside(row + (int64_t(i) - 1));
    Tensor line;
    for (size_t j = 0; j < 4; j++) {
      const Tensor v = corner(x, lines, {y, lines[1].inside(column + (int64_t(j) - 1))});
      const Tensor part = v * right[j].unsqueeze(1);
      line = line.defined() ? line + part : part;
    }
    line = line * down[i].unsqueeze(1);
    sum = sum.defined() ? sum + line : line;
  }
  return sum;
}

void require_grid(const Tensor& x, const Tensor& grid) {
  const int64_t axes = x.dim() - 2;
  detail::require_same_device("grid_sample", x, grid);
  if (axes < 2 || axes > 3 || grid.dim() != x.dim() || grid.size(-1) != axes ||
      !detail::same(grid.size(0), x.size(0)))
    fail<ShapeError>("grid_sample: a grid {} for {}: (N, OH, OW, 2) for (N, C, H, W), or "
                     "(N, OD, OH, OW, 3) for (N, C, D, H, W)",
                     text(grid.sizes()), text(x.sizes()));
  const Sizes image = x.sizes(), out = grid.sizes();
  detail::require_numbers("grid_sample", Sizes(image.begin() + 1, image.end()));
  detail::require_numbers("grid_sample", Sizes(out.begin() + 1, out.end()));
  for (int64_t d = 2; d < x.dim(); d++) {
    if (x.size(d) == 0) fail<ShapeError>("grid_sample: {} has no element", text(image));
  }
  if (!is_float(grid.dtype()))
    fail<InvalidArgument>("grid_sample: a grid of {}: cast() to a float", name(grid.dtype()));
}

}  // namespace

Tensor TensorWindows::grid_sample(const Tensor& grid, std::string_view mode,
                                  std::string_view padding_mode, bool align_corners) const {
  const Tensor& given = self(this);
  require_grid(given, grid);
  const bool nearest = mode == "nearest", cubic = mode == "bicubic";
  if (!nearest && !cubic && mode != "bilinear")
    fail<InvalidArgument>("grid_sample: mode '{}' is none of bilinear, nearest, bicubic", mode);
  if (cubic && given.dim() != 4)
    fail<InvalidArgument>("grid_sample: 'bicubic' is for (N, C, H, W), not for {}",
                          text(given.sizes()));
  const Outside outside = outside_of(padding_mode);
  const DType t = promote(detail::real_dtype(given.dtype()), grid.dtype());
  const DType wide = detail::compute_dtype(t);
  const Tensor x = given.cast(wide);
  std::vector<Line> lines;
  Coordinates at;
  const int64_t axes = given.dim() - 2;
  for (int64_t i = 0; i < axes; i++) {  // a grid names the last axis first
    const Line l{given.size(i + 2), outside, align_corners};
    const Tensor c = l.places(grid.cast(wide).select(-1, axes - 1 - i).flatten(1));
    lines.push_back(l);
    at.push_back(cubic ? c : l.inside(c));
  }
  if (nearest) {
    for (Tensor& c : at) c = c.detach().round();
  }
  const Tensor out = nearest ? corner(x, lines, at)
                     : cubic ? sampled_cubic(x, lines, at)
                             : sampled_linear(x, lines, at);
  Sizes sizes = grid.sizes();
  sizes.pop_back();
  sizes.insert(sizes.begin() + 1, given.size(1));
  return out.reshape(sizes).cast(t);
}

Tensor TensorWindows::affine_grid(const Tensor& theta, const Sizes& size, bool align_corners) {
  const int64_t axes = int64_t(size.size()) - 2;
  if (axes < 2 || axes > 3 || theta.dim() != 3 || theta.size(1) != axes ||
      theta.size(2) != axes + 1 || !detail::same(theta.size(0), size[0]))
    fail<ShapeError>("affine_grid: theta {} for {}: (N, 2, 3) for (N, C, H, W), or (N, 3, 4) for "
                     "(N, C, D, H, W)",
                     text(theta.sizes()), text(size));
  detail::require_numbers("affine_grid", Sizes(size.begin() + 1, size.end()));
  return detail::computed_wide(theta, [&](const Tensor& map) {
    const int64_t rank = axes + 2;
    Sizes ones(size_t(rank), 1);
    ones[0] = size[0], ones[size_t(rank) - 1] = axes;
    const auto column = [&](int64_t i) { return map.select(2, i).reshape(ones); };
    Tensor sum;
    for (int64_t i = 0; i < axes; i++) {  // theta's first column is of the last axis
      const int64_t d = axes - i, n = size[size_t(d) + 1];
      const double step = !align_corners ? 2.0 / double(n) : n > 1 ? 2.0 / double(n - 1) : 0;
      const double first = !align_corners ? step / 2 - 1 : n > 1 ? -1 : 0;
      const Tensor at =
          detail::counter(n, d, rank, theta.device()).cast(map.dtype()) * step + first;
      sum = sum.defined() ? sum + column(i) * at : column(i) * at;
    }
    return sum + column(axes);
  });
}

}  // namespace tuff
