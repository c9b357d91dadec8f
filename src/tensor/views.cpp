// Movement that is made of reshape, permute, slices and pads.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"
#include "tensor/windows.h"

namespace tuff {

using detail::self;
using detail::text;
using detail::wrap_dim;

namespace {

Tensor rolled(const Tensor& x, int64_t d, int64_t shift) {
  const int64_t n = x.size(d), last = n == 0 ? 0 : (shift % n + n) % n;
  if (last == 0) return x;
  return Tensor::cat({x.narrow(d, n - last, last), x.narrow(d, 0, n - last)}, d);
}

// `before` and `after` are 0 or more.
void require_around(const Tensor& x, int64_t d, int64_t most, PadMode mode) {
  const int64_t n = x.size(d), allowed = mode == PadMode::Reflect ? n - 1 : n;
  if (most > (mode == PadMode::Replicate ? (n > 0 ? most : 0) : std::max<int64_t>(allowed, 0)))
    fail<ShapeError>("pad: axis {} of {} has no {} elements to put around it", d, text(x.sizes()),
                     most);
}

Tensor around(const Tensor& x, int64_t d, int64_t before, int64_t after, PadMode mode) {
  require_around(x, d, std::max(before, after), mode);
  const int64_t n = x.size(d);
  const auto edge = [&](int64_t at, int64_t count) {
    Sizes wide = x.sizes();
    wide[size_t(d)] = count;
    return x.narrow(d, at, 1).expand(wide);
  };
  const auto part = [&](bool in_front, int64_t count) {
    if (mode == PadMode::Replicate) return edge(in_front ? 0 : n - 1, count);
    if (mode == PadMode::Circular) return x.narrow(d, in_front ? n - count : 0, count);
    return x.narrow(d, in_front ? 1 : n - 1 - count, count).flip({d});
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(part(true, before));
  parts.push_back(x);
  if (after > 0) parts.push_back(part(false, after));
  return parts.size() == 1 ? x : Tensor::cat(parts, d);
}

// These extents, -1 for the tensor's own.
Sizes wanted_sizes(const char* what, const Tensor& x, const Sizes& sizes) {
  Sizes own = x.sizes(), out = sizes;
  if (out.size() != own.size())
    fail<ShapeError>("{}: {} extents for {}", what, out.size(), text(own));
  for (size_t d = 0; d < out.size(); d++) {
    if (detail::same(out[d], -1)) out[d] = own[d];
  }
  return out;
}

// Vectors along axis 0, others along axis 1.
Tensor along_columns(const std::vector<Tensor>& parts) {
  return Tensor::cat(parts, parts.empty() || parts[0].dim() == 1 ? 0 : 1);
}

template <class F>
std::vector<Tensor> each(const std::vector<Tensor>& tensors, F&& f) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

}  // namespace

Tensor TensorViews::roll(const Axes& shifts, const Axes& dims) const {
  const Tensor& x = self(this);
  detail::require_numbers("roll", x.sizes());
  if (dims.empty() && shifts.size() == 1)
    return detail::no_view(rolled(x.reshape({-1}), 0, shifts[0]).reshape(x.sizes()));
  if (shifts.size() != dims.size())
    fail<InvalidArgument>("roll: {} shifts for {} axes", shifts.size(), dims.size());
  Tensor out = x;
  for (size_t i = 0; i < dims.size(); i++)
    out = rolled(out, wrap_dim("roll", dims[i], x.dim()), shifts[i]);
  return detail::no_view(out);
}

Tensor TensorViews::repeat_interleave(int64_t repeats, std::optional<int64_t> dim) const {
  if (repeats < 0) fail<InvalidArgument>("repeat_interleave: {} repeats", repeats);
  const Tensor x = dim ? self(this) : self(this).flatten();
  const int64_t d = dim ? wrap_dim("repeat_interleave", *dim, x.dim()) : 0;
  Sizes wide = x.sizes(), out = wide;
  wide.insert(wide.begin() + d + 1, repeats);
  out[size_t(d)] *= repeats;
  return detail::no_view(x.unsqueeze(d + 1).expand(wide).reshape(out));
}

Tensor TensorViews::tile(const Sizes& repeats) const {
  Sizes counts(size_t(std::max<int64_t>(0, self(this).dim() - int64_t(repeats.size()))), 1);
  counts.insert(counts.end(), repeats.begin(), repeats.end());
  return self(this).repeat(counts);
}

std::vector<Tensor> TensorViews::meshgrid(const std::vector<Tensor>& tensors, GridOrder order) {
  Sizes grid;
  for (const Tensor& t : tensors) {
    if (t.dim() > 1) fail<ShapeError>("meshgrid: {} is no vector", text(t.sizes()));
    grid.push_back(t.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < tensors.size(); i++) {
    Sizes along(grid.size(), 1);
    along[i] = grid[i];
    const Tensor t = tensors[i].reshape(along).expand(grid);
    out.push_back(order == GridOrder::Columns && grid.size() > 1 ? t.transpose(0, 1) : t);
  }
  return out;
}

Tensor TensorViews::diag(int64_t diagonal) const {
  const Tensor& x = self(this);
  if (x.dim() == 1) return diag_embed(diagonal, 0, 1);
  if (x.dim() != 2) fail<ShapeError>("diag: {} is no vector and no matrix", text(x.sizes()));
  return detail::no_view(this->diagonal(diagonal));
}

// Of a square of n rows it is every (n + 1)-th element.
Tensor TensorViews::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  const Tensor& x = self(this);
  const int64_t row = wrap_dim("diagonal", dim1, x.dim());
  const int64_t column = wrap_dim("diagonal", dim2, x.dim());
  if (row == column) fail<InvalidArgument>("diagonal: axis {} twice", row);
  detail::require_numbers("diagonal", {x.size(row), x.size(column)});
  const Tensor m = movedim(Axes{row, column}, Axes{-2, -1});
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  const int64_t n = std::min<int64_t>(int64_t(m.size(-2)) - down, int64_t(m.size(-1)) - right);
  if (n <= 0) return m.narrow(-1, 0, 0).narrow(-2, 0, 1).squeeze(-2);
  const Tensor square = m.narrow(-2, down, n).narrow(-1, right, n).flatten(-2, -1);
  return detail::strided(square, square.dim() - 1, n + 1);
}

Tensor TensorViews::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  const Tensor& x = self(this);
  if (x.dim() == 0) fail<ShapeError>("diag_embed: a scalar has no last axis");
  const int64_t rank = x.dim() + 1, row = wrap_dim("diag_embed", dim1, rank);
  const int64_t column = wrap_dim("diag_embed", dim2, rank);
  if (row == column) fail<InvalidArgument>("diag_embed: axis {} twice", row);
  detail::require_numbers("diag_embed", {x.size(-1)});
  const int64_t n = x.size(-1), down = std::max<int64_t>(0, -offset);
  const int64_t right = std::max<int64_t>(0, offset);
  const Tensor rows = detail::pad_axis(x.unsqueeze(-1), rank - 1, 0, n);
  const Tensor flat = rows.flatten(-2, -1).narrow(-1, 0, n * n);
  const Tensor square = detail::unflatten(flat, rank - 2, n, n);
  return square.pad({right, down, down, right}).movedim(Axes{-2, -1}, Axes{row, column});
}

Tensor TensorViews::trace() const {
  if (self(this).dim() != 2) fail<ShapeError>("trace: {} is no matrix", text(self(this).sizes()));
  return diagonal().sum();
}

std::vector<Tensor> TensorViews::unbind(int64_t dim) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("unbind", dim, x.dim());
  detail::require_numbers("unbind", {x.size(d)});
  std::vector<Tensor> out;
  for (int64_t i = 0; i < int64_t(x.size(d)); i++) out.push_back(x.select(d, i));
  return out;
}

std::vector<Tensor> TensorViews::tensor_split(int64_t sections, int64_t dim) const {
  const Tensor& x = self(this);
  if (sections <= 0) fail<InvalidArgument>("tensor_split: {} sections", sections);
  const int64_t d = wrap_dim("tensor_split", dim, x.dim());
  detail::require_numbers("tensor_split", {x.size(d)});
  const int64_t n = x.size(d);
  Axes ends;
  for (int64_t i = 1; i < sections; i++)
    ends.push_back(i * (n / sections) + std::min(i, n % sections));
  return tensor_split_at(ends, d);
}

std::vector<Tensor> TensorViews::tensor_split_at(const Axes& indices, int64_t dim) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("tensor_split_at", dim, x.dim());
  std::vector<Tensor> out;
  std::optional<Size> begin;
  for (int64_t end : indices) {
    out.push_back(x.slice(d, begin, Size(end)));
    begin = Size(end);
  }
  out.push_back(x.slice(d, begin));
  return out;
}

Tensor TensorViews::hstack(const std::vector<Tensor>& tensors) {
  return along_columns(each(tensors, [](const Tensor& t) { return t.atleast_1d(); }));
}
Tensor TensorViews::vstack(const std::vector<Tensor>& tensors) {
  return Tensor::cat(each(tensors, [](const Tensor& t) { return t.atleast_2d(); }), 0);
}
Tensor TensorViews::dstack(const std::vector<Tensor>& tensors) {
  return Tensor::cat(each(tensors, [](const Tensor& t) { return t.atleast_3d(); }), 2);
}
Tensor TensorViews::column_stack(const std::vector<Tensor>& tensors) {
  return Tensor::cat(each(tensors, [](const Tensor& t) {
    return t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t;
  }), 1);
}

Tensor TensorViews::movedim(const Axes& source, const Axes& destination) const {
  const Tensor& x = self(this);
  const size_t rank = size_t(x.dim());
  if (source.size() != destination.size())
    fail<InvalidArgument>("movedim: {} axes to {} places", source.size(), destination.size());
  Axes order(rank, -1);
  std::vector<bool> moved(rank);
  for (size_t i = 0; i < source.size(); i++) {
    const size_t from = size_t(wrap_dim("movedim", source[i], x.dim()));
    const size_t to = size_t(wrap_dim("movedim", destination[i], x.dim()));
    if (moved[from] || order[to] != -1)
      fail<InvalidArgument>("movedim: an axis twice in {} or {}", text(source), text(destination));
    moved[from] = true;
    order[to] = int64_t(from);
  }
  size_t next = 0;
  for (int64_t& place : order) {
    if (place != -1) continue;
    while (moved[next]) next++;
    place = int64_t(next++);
  }
  return x.permute(order);
}
Tensor TensorViews::movedim(int64_t source, int64_t destination) const {
  return movedim(Axes{source}, Axes{destination});
}
Tensor TensorViews::swapaxes(int64_t axis0, int64_t axis1) const {
  return self(this).transpose(axis0, axis1);
}

Tensor TensorViews::broadcast_to(const Sizes& sizes) const { return self(this).expand(sizes); }
Tensor TensorViews::expand_as(const Tensor& other) const {
  return self(this).expand(other.sizes());
}
Tensor TensorViews::view_as(const Tensor& other) const { return self(this).view(other.sizes()); }
Tensor TensorViews::reshape_as(const Tensor& other) const {
  return self(this).reshape(other.sizes());
}

Tensor TensorViews::unflatten(int64_t dim, const Sizes& sizes) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("unflatten", dim, x.dim());
  if (sizes.empty()) fail<ShapeError>("unflatten: no extents given");
  Sizes parts = sizes, out = x.sizes();
  Size known = 1;
  for (const Size& s : parts) {
    if (!detail::same(s, -1)) known *= s;
  }
  const auto open = std::find_if(parts.begin(), parts.end(),
                                 [](const Size& s) { return detail::same(s, -1); });
  if (open != parts.end() && !detail::same(known, 0)) *open = x.size(d) / known;
  if (!detail::same(detail::product(parts), x.size(d)))
    fail<ShapeError>("unflatten: {} does not fit axis {} of {}", text(sizes), d, text(out));
  out.erase(out.begin() + d);
  out.insert(out.begin() + d, parts.begin(), parts.end());
  return x.reshape(out);
}
Tensor TensorViews::ravel() const { return self(this).flatten(); }

Tensor TensorViews::rot90(int64_t k, const Axes& dims) const {
  const Tensor& x = self(this);
  if (dims.size() != 2) fail<InvalidArgument>("rot90: {} axes, not two", dims.size());
  const int64_t a = wrap_dim("rot90", dims[0], x.dim()), b = wrap_dim("rot90", dims[1], x.dim());
  if (a == b) fail<InvalidArgument>("rot90: axis {} twice", a);
  switch ((k % 4 + 4) % 4) {
    case 1: return x.flip({b}).transpose(a, b);
    case 2: return x.flip({a, b});
    case 3: return x.flip({a}).transpose(a, b);
    default: return detail::no_view(x);
  }
}
Tensor TensorViews::fliplr() const {
  if (self(this).dim() < 2) fail<ShapeError>("fliplr: {} has no axis 1", text(self(this).sizes()));
  return self(this).flip({1});
}
Tensor TensorViews::flipud() const {
  if (self(this).dim() < 1) fail<ShapeError>("flipud: a scalar has no axis 0");
  return self(this).flip({0});
}

Tensor TensorViews::pad(const std::vector<int64_t>& padding, PadMode mode) const {
  Tensor x = self(this);
  if (mode == PadMode::Constant) return x.pad(padding);
  std::vector<int64_t> crops;
  for (int64_t n : padding) crops.push_back(std::min<int64_t>(n, 0));
  x = x.pad(crops);  // refuses a list that does not fit
  for (size_t i = 0; i < padding.size() / 2; i++) {
    const int64_t d = x.dim() - 1 - int64_t(i), before = std::max<int64_t>(padding[2 * i], 0);
    const int64_t after = std::max<int64_t>(padding[2 * i + 1], 0);
    if (before + after == 0) continue;
    detail::require_numbers("pad", {x.size(d)});
    x = around(x, d, before, after, mode);
  }
  return x;
}

Tensor TensorViews::pad_to(const Sizes& sizes, Number value) const {
  const Tensor& x = self(this);
  const Sizes own = x.sizes(), wanted = wanted_sizes("pad_to", x, sizes);
  std::vector<int64_t> padding;
  for (size_t d = own.size(); d-- > 0;) {
    const Size more = wanted[d] - own[d];
    detail::require_numbers("pad_to", {more});
    if (int64_t(more) < 0)
      fail<ShapeError>("pad_to: axis {} of {} is longer than {}", d, text(own), wanted[d]);
    padding.insert(padding.end(), {0, int64_t(more)});
  }
  return x.pad(padding, value);
}

Tensor TensorViews::shrink_to(const Sizes& sizes) const {
  const Tensor& x = self(this);
  const Sizes own = x.sizes(), wanted = wanted_sizes("shrink_to", x, sizes);
  std::vector<std::pair<Size, Size>> ranges;
  for (size_t d = 0; d < own.size(); d++) {
    if (wanted[d].min() < 0 || (own[d] - wanted[d]).min() < 0)
      fail<ShapeError>("shrink_to: axis {} of {} is shorter than {}", d, text(own), wanted[d]);
    ranges.emplace_back(0, wanted[d]);
  }
  return x.shrink(ranges);
}

Tensor TensorViews::unfold(int64_t dim, int64_t size, int64_t step) const {
  const Tensor& x = self(this);
  const int64_t d = wrap_dim("unfold", dim, x.dim());
  if (size < 1 || step < 1)
    fail<InvalidArgument>("unfold: size {} and step {} must be positive", size, step);
  if (x.size(d).min() < size)
    fail<ShapeError>("unfold: axis {} of {} is shorter than {}", d, text(x.sizes()), size);
  return detail::windows_of_axis(x, d, size, step, 1).movedim(d, -1);
}

Tensor TensorViews::atleast_1d() const {
  return self(this).dim() == 0 ? self(this).reshape({1}) : self(this);
}
Tensor TensorViews::atleast_2d() const {
  return self(this).dim() >= 2 ? self(this) : atleast_1d().unsqueeze(0);
}
Tensor TensorViews::atleast_3d() const {
  return self(this).dim() >= 3 ? self(this) : atleast_2d().unsqueeze(-1);
}

}  // namespace tuff
