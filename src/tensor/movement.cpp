// Movement: index transforms of the tensor floor, in PyTorch's names.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "engine/device.h"
#include "tensor/impl.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::derive;
using detail::Movement;
using detail::shape_of;
using detail::uop;
using detail::view_of;
using detail::wrap_dim;

namespace {

bool is_open(const Size& s) { return s.is_number() && int64_t(s) == -1; }

// Element counts of two shapes without the symbolic extents that both have.
std::pair<Size, Size> differing_counts(const Sizes& from, const Sizes& to) {
  Sizes rest = from;
  Size kept = 1;
  for (const Size& s : to) {
    const auto match =
        s.is_number() ? rest.end() : std::find_if(rest.begin(), rest.end(), [&](const Size& r) {
          return detail::same(r, s);
        });
    if (match == rest.end())
      kept *= s;
    else
      rest.erase(match);
  }
  return {detail::product(rest), kept};
}

}  // namespace

Tensor Tensor::reshape(const Sizes& wanted) const {
  const detail::BuildGuard section;
  Sizes sizes = wanted;
  const auto open = std::find_if(sizes.begin(), sizes.end(), is_open);
  if (open != sizes.end()) {
    if (std::find_if(open + 1, sizes.end(), is_open) != sizes.end())
      fail<ShapeError>("reshape: more than one -1 in {}", detail::text(wanted));
    *open = 1;
    const auto [all, known] = differing_counts(this->sizes(), sizes);
    if (detail::same(known, 0) || !detail::same(all % known, 0))
      fail<ShapeError>("reshape: {} elements do not fit {}", numel(), detail::text(wanted));
    *open = all / known;
  }
  const auto [from, to] = differing_counts(this->sizes(), sizes);
  if (!detail::same(from, to) && !(from.is_number() && to.is_number()))
    fail<ShapeError>("reshape: {} has {} elements, {} has {}", detail::text(this->sizes()), numel(),
                     detail::text(sizes), detail::product(sizes));
  ir::Shape shape = shape_of(sizes);
  ir::UOp u = ir::reshape(uop(*this), shape);
  return view_of(*this, std::move(u), Movement::Kind::Reshape, std::move(shape));
}

Tensor Tensor::permute(const Axes& dims) const {
  Axes axes;
  for (int64_t d : dims) axes.push_back(wrap_dim("permute", d, dim()));
  const detail::BuildGuard section;
  ir::UOp u = ir::permute(uop(*this), axes);
  return view_of(*this, std::move(u), Movement::Kind::Permute, std::move(axes));
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  Axes axes(size_t(dim()), 0);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[size_t(wrap_dim("transpose", dim0, dim()))],
            axes[size_t(wrap_dim("transpose", dim1, dim()))]);
  return permute(axes);
}

Tensor Tensor::expand(const Sizes& wanted) const {
  const detail::BuildGuard section;
  const Sizes own = sizes();
  if (detail::same(own, wanted)) return *this;
  if (wanted.size() < own.size())
    fail<ShapeError>("expand: {} has more axes than {}", detail::text(own), detail::text(wanted));
  const size_t fresh = wanted.size() - own.size();
  Sizes padded(fresh, 1), target = wanted;
  padded.insert(padded.end(), own.begin(), own.end());
  for (size_t i = 0; i < target.size(); i++) {
    if (!is_open(target[i])) continue;
    if (i < fresh)
      fail<ShapeError>("expand: -1 keeps an extent, but axis {} of {} is new to {}", i,
                       detail::text(wanted), detail::text(own));
    target[i] = padded[i];
  }
  ir::Shape shape = shape_of(target);
  ir::UOp u = ir::expand(ir::reshape(uop(*this), shape_of(padded)), shape);
  return view_of(*this, std::move(u), Movement::Kind::Expand, std::move(shape));
}

Tensor Tensor::pad(const std::vector<int64_t>& padding, Number value) const {
  if (padding.size() % 2 || int64_t(padding.size()) > 2 * dim()) {
    fail<ShapeError>(
        "pad: {} values for a tensor of {} axes: give (before, after) pairs from the last axis on",
        padding.size(), dim());
  }
  ir::Pairs pads(size_t(dim()), {ir::Dim(0), ir::Dim(0)}), crops;
  const Sizes own = sizes();
  for (const Size& s : own) crops.push_back({ir::Dim(0), detail::dim_of(s)});
  for (size_t i = 0; i < padding.size() / 2; i++) {
    const size_t axis = size_t(dim()) - 1 - i;
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    if ((own[axis] + before + after).min() < 0)
      fail<ShapeError>("pad: {} and {} crop more than axis {} of {} has", before, after, axis,
                       detail::text(own));
    pads[axis] = {ir::Dim(std::max<int64_t>(before, 0)),
                  ir::Dim(std::max<int64_t>(after, 0))};
    crops[axis] = {ir::Dim(std::max<int64_t>(-before, 0)),
                   detail::dim_of(own[axis] - std::max<int64_t>(-after, 0))};
  }
  const detail::BuildGuard section;
  const ir::UOp cropped = ir::shrink(uop(*this), crops);
  const Tensor padded = derive(*this, ir::pad(cropped, pads));
  const Scalar fill = detail::scalar_of(dtype(), value);
  if (fill == detail::scalar_of(dtype(), 0)) return padded;
  const Tensor inside = derive(
      *this,
      ir::pad(full(detail::sizes_of(cropped->shape), true, {DType::Bool, device()}).impl()->uop,
                 pads));
  return where(inside, padded, derive(*this, ir::constant(fill)));
}

Tensor Tensor::shrink(const std::vector<std::pair<Size, Size>>& ranges) const {
  ir::Pairs parts;
  for (const auto& [begin, end] : ranges)
    parts.push_back({detail::dim_of(begin), detail::dim_of(end)});
  const detail::BuildGuard section;
  ir::UOp u = ir::shrink(uop(*this), parts);
  return view_of(*this, std::move(u), Movement::Kind::Shrink, std::move(parts));
}

Tensor Tensor::flip(const Axes& dims) const {
  return derive(*this, ir::flip(uop(*this), detail::wrap_dims("flip", dims, dim())));
}

Tensor Tensor::narrow(int64_t d, const Size& given_start, const Size& length) const {
  d = wrap_dim("narrow", d, dim());
  const Sizes own = sizes();
  const Size start = given_start.max() < 0 ? given_start + own[size_t(d)] : given_start;
  if (start.min() < 0 || length.min() < 0 || (own[size_t(d)] - start - length).min() < 0) {
    fail<ShapeError>("narrow: {}..{} is not inside axis {} of {}", start, start + length, d,
                     detail::text(own));
  }
  std::vector<std::pair<Size, Size>> parts;
  for (const Size& s : own) parts.emplace_back(0, s);
  parts[size_t(d)] = {start, start + length};
  return shrink(parts);
}

Tensor detail::pad_axis(const Tensor& x, int64_t d, const Size& before, const Size& after) {
  ir::Pairs pads(size_t(x.dim()), {ir::Dim(0), ir::Dim(0)});
  pads[size_t(d)] = {dim_of(before), dim_of(after)};
  return derive(x, ir::pad(uop(x), pads));
}

Tensor detail::unflatten(const Tensor& x, int64_t d, const Size& outer, const Size& inner) {
  Sizes cut = x.sizes();
  cut[size_t(d)] = outer;
  cut.insert(cut.begin() + d + 1, inner);
  return x.reshape(cut);
}

Size detail::clamped(const Size& v, const Size& low, const Size& high) {
  if ((v - low).min() >= 0 && (high - v).min() >= 0) return v;
  return v < low ? low : v > high ? high : v;
}

namespace {

// A step that leads out of the axis takes one element, however long it is.
Tensor every(const Tensor& x, int64_t d, int64_t step) {
  return detail::strided(x, d, std::min(step, std::max<int64_t>(x.size(d).max(), 1)));
}

}  // namespace

Tensor Tensor::slice(int64_t d, std::optional<Size> start, std::optional<Size> stop,
                     int64_t step) const {
  if (step == 0) fail<InvalidArgument>("slice: step is 0");
  d = wrap_dim("slice", d, dim());
  const Size n = size(d), low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto bound = [&](const Size& v) { return detail::clamped(v.max() < 0 ? v + n : v, low, high); };
  const Size first = step > 0 ? Size(0) : n - 1, last = step > 0 ? n : Size(-1);
  const Size from = start ? bound(*start) : first, to = stop ? bound(*stop) : last;
  const Size wanted = step > 0 ? to - from : from - to;
  const Size length = wanted.min() >= 0 ? wanted : wanted > 0 ? wanted : Size(0);
  if (step > 0) {
    const Tensor part = narrow(d, from, length);
    return step == 1 ? part : every(part, d, step);
  }
  const Tensor part = detail::flipped(narrow(d, from - length + 1, length), d);
  return step == -1 ? part : every(part, d, -std::max(step, -INT64_MAX));
}

Tensor Tensor::select(int64_t d, const Size& index) const {
  d = wrap_dim("select", d, dim());
  const Size n = size(d), i = index.max() < 0 ? index + n : index;
  if (i.min() < 0 || (n - i).min() < 1)
    fail<IndexError>("select: index {} is outside axis {} of {}", index, d, detail::text(sizes()));
  return narrow(d, i, 1).squeeze(d);
}

Tensor Tensor::squeeze(std::optional<int64_t> d) const {
  Sizes out;
  const Sizes own = sizes();
  const int64_t only = d ? wrap_dim("squeeze", *d, dim()) : -1;
  for (int64_t i = 0; i < dim(); i++) {
    if (!detail::same(own[size_t(i)], 1) || (d && i != only)) out.push_back(own[size_t(i)]);
  }
  return reshape(out);
}

Tensor Tensor::unsqueeze(int64_t d) const {
  Sizes out = sizes();
  out.insert(out.begin() + wrap_dim("unsqueeze", d, dim() + 1), 1);
  return reshape(out);
}

Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  if (dim() == 0) return reshape({1});
  const int64_t a = wrap_dim("flatten", start_dim, dim()), b = wrap_dim("flatten", end_dim, dim());
  if (a > b) fail<ShapeError>("flatten: start axis {} is behind end axis {}", start_dim, end_dim);
  const Sizes own = sizes();
  Sizes out(own.begin(), own.begin() + a);
  out.push_back(detail::product(std::span(own).subspan(size_t(a), size_t(b - a + 1))));
  out.insert(out.end(), own.begin() + b + 1, own.end());
  return reshape(out);
}

Tensor Tensor::repeat(const Sizes& repeats) const {
  if (int64_t(repeats.size()) < dim())
    fail<ShapeError>("repeat: {} counts for a tensor of {} axes", repeats.size(), dim());
  Sizes own(repeats.size() - size_t(dim()), 1);
  const Sizes tail = sizes();
  own.insert(own.end(), tail.begin(), tail.end());
  Sizes split, wide, merged;
  for (size_t i = 0; i < own.size(); i++) {
    if (repeats[i].min() < 0) fail<ShapeError>("repeat: {} repeats of axis {}", repeats[i], i);
    split.insert(split.end(), {1, own[i]});
    wide.insert(wide.end(), {repeats[i], own[i]});
    merged.push_back(repeats[i] * own[i]);
  }
  return detail::no_view(reshape(split).expand(wide).reshape(merged));
}

namespace {

// An element of the result looks at every part that a kernel is given. Many parts are joined in
// groups with memory of their own: it looks at a group's parts, then at the groups, and groups of
// equal parts are one program. No more than a kernel of the device takes.
size_t parts_at_once(const std::string& device) {
  const auto on = engine::Device::get(detail::first_device(device));
  return std::clamp<size_t>(on->target().max_buffers, 3, 33) - 1;
}

// Each part stands where it belongs among zeros and is chosen there: a sum of the padded parts
// would lose the sign of -0.
Tensor joined(std::span<const Tensor> parts, int64_t d) {
  Size total = 0, before = 0;
  for (const Tensor& x : parts) total += x.size(d);
  Tensor out;
  for (const Tensor& x : parts) {
    const Tensor part = detail::pad_axis(x, d, before, total - before - x.size(d));
    const Tensor earlier = detail::counter(total, d, x.dim(), x.device()) < before;
    out = out.defined() ? Tensor::where(earlier, out, part) : part;
    before += x.size(d);
  }
  return out;
}

}  // namespace

Tensor Tensor::cat(const std::vector<Tensor>& tensors, int64_t d) {
  if (tensors.empty()) fail<InvalidArgument>("cat: no tensors given");
  const Tensor& first = tensors[0];
  d = wrap_dim("cat", d, first.dim());
  DType t = first.dtype();
  for (const Tensor& x : tensors) {
    detail::require_same_device("cat", first, x);
    Sizes a = first.sizes(), b = x.sizes();
    if (a.size() == b.size()) a[size_t(d)] = b[size_t(d)] = 0;
    if (!detail::same(a, b))
      fail<ShapeError>("cat: {} and {} differ outside axis {}", detail::text(first.sizes()),
                       detail::text(x.sizes()), d);
    t = promote(t, x.dtype());
  }
  std::vector<Tensor> parts, groups;
  for (const Tensor& x : tensors) parts.push_back(x.cast(t));
  const size_t most = parts.size() > 2 ? parts_at_once(first.device()) : 2;
  for (; parts.size() > most; parts = std::exchange(groups, {})) {
    for (std::span<const Tensor> left(parts); !left.empty();) {
      const std::span<const Tensor> group = left.first(std::min(left.size(), most));
      groups.push_back(joined(group, d).contiguous());
      left = left.subspan(group.size());
    }
  }
  return joined(parts, d);
}

Tensor Tensor::stack(const std::vector<Tensor>& tensors, int64_t d) {
  if (tensors.empty()) fail<InvalidArgument>("stack: no tensors given");
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors) {
    if (!detail::same(x.sizes(), tensors[0].sizes()))
      fail<ShapeError>("stack: {} and {} differ", detail::text(tensors[0].sizes()),
                       detail::text(x.sizes()));
    parts.push_back(x.unsqueeze(d));
  }
  return cat(parts, d);
}

std::vector<Tensor> Tensor::split(int64_t size_each, int64_t d) const {
  if (size_each <= 0) fail<InvalidArgument>("split: size {} is not positive", size_each);
  d = wrap_dim("split", d, dim());
  detail::require_numbers("split", {size(d)});
  const int64_t n = size(d);
  if (n == 0) return {*this};
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n; i += size_each)
    out.push_back(narrow(d, i, std::min(size_each, n - i)));
  return out;
}

std::vector<Tensor> Tensor::split_with_sizes(const Sizes& parts, int64_t d) const {
  d = wrap_dim("split_with_sizes", d, dim());
  const bool negative =
      std::any_of(parts.begin(), parts.end(), [](const Size& n) { return n.min() < 0; });
  const Size sum = std::accumulate(parts.begin(), parts.end(), Size(0));
  if (negative || !detail::same(sum, size(d)))
    fail<ShapeError>("split_with_sizes: sizes {} do not add up to axis {} of {}",
                     detail::text(parts), d, detail::text(sizes()));
  std::vector<Tensor> out;
  Size at = 0;
  for (const Size& n : parts) {
    out.push_back(narrow(d, at, n));
    at += n;
  }
  return out;
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t d) const {
  if (chunks <= 0) fail<InvalidArgument>("chunk: {} chunks asked for", chunks);
  detail::require_numbers("chunk", {size(d)});
  return split(std::max<int64_t>(1, (size(d) + chunks - 1) / chunks), d);
}

}  // namespace tuff
