#include "tensor/windows.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::pad_axis;
using detail::text;
using detail::unflatten;

Padding::Padding(const std::string& word) : same_(word == "same") {
  if (!same_ && word != "valid")
    fail<InvalidArgument>("padding '{}' is neither 'same' nor 'valid'", word);
}

namespace {

// How many windows lie inside of an axis.
Size window_count(const Size& n, int64_t k, int64_t stride, int64_t dilation) {
  return (n - dilation * (k - 1) - 1) / stride + 1;
}

// Zeros behind an axis that make it as long as an extent at least, whatever varies.
Tensor with_room(const Tensor& x, int64_t d, const Size& extent) {
  return pad_axis(x, d, 0, std::max<int64_t>(0, (extent - x.size(d)).max()));
}

// Windows along one axis, (..., n, ...) -> (..., k, out, ...): the axis k times, cut into rows of
// n + dilation, so that row i starts i*dilation further and no gather is needed. Needs
// out*stride <= n + dilation.
Tensor windows_1d(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation) {
  const Size n = x.size(d), out = window_count(n, k, stride, dilation);
  Sizes repeats(size_t(x.dim()), 1);
  repeats[size_t(d)] = k;
  const Tensor repeated = pad_axis(x.repeat(repeats), d, 0, k * dilation);
  return unflatten(repeated, d, k, n + dilation).slice(d + 1, 0, out * stride, stride);
}

// One axis cropped, or padded with zeros, to an extent.
Tensor with_extent(const Tensor& x, int64_t d, const Size& extent) {
  return with_room(x, d, extent).narrow(d, 0, extent);
}

// Windows that share no element are a cut of the axis: nothing is repeated, and their gradient adds
// nothing up.
Tensor apart_windows(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation) {
  const Size out = window_count(x.size(d), k, stride, dilation);
  const Tensor cut = unflatten(with_extent(x, d, out * stride), d, out, stride);
  const int64_t reach = dilation * (k - 1) + 1;
  return cut.narrow(d + 1, 0, reach).transpose(d, d + 1).slice(d, {}, {}, dilation);
}

// Windows with a stride of which several share an element: tap t = a*stride + q of window o is
// element o + a of phase q, so that each phase has windows of stride 1, and the gradient of an
// element adds up the taps of its own phase alone.
Tensor phase_windows(const Tensor& x, int64_t d, int64_t k, int64_t stride) {
  const int64_t taps = ceil_div(k, stride);
  const Size rows = window_count(x.size(d), k, stride, 1) + taps - 1;
  const Tensor phases = unflatten(with_extent(x, d, rows * stride), d, rows, stride);
  const Tensor windows = windows_1d(phases, d, taps, 1, 1).transpose(d + 1, d + 2);
  return windows.flatten(d, d + 1).narrow(d, 0, k);
}

bool all_positive(const std::vector<int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t n) { return n >= 1; });
}

}  // namespace

// By the window's kind: padded where windows_1d needs it, the windows that this adds cut off again.
Tensor detail::windows_of_axis(const Tensor& x, int64_t d, int64_t k, int64_t stride,
                               int64_t dilation) {
  if (dilation * (k - 1) < stride) return apart_windows(x, d, k, stride, dilation);
  if (stride > 1 && dilation == 1) return phase_windows(x, d, k, stride);
  const Size out = window_count(x.size(d), k, stride, dilation);
  const Tensor padded = with_room(x, d, out * stride - dilation);
  return windows_1d(padded, d, k, stride, dilation).narrow(d + 1, 0, out);
}

Tensor detail::windows_of_axes(const Tensor& x, const Windows& w) {
  const int64_t n = int64_t(w.axes()), first = x.dim() - n;
  Tensor t = x;
  for (int64_t i = n; i-- > 0;)
    t = windows_of_axis(t, first + i, w.kernel[size_t(i)], w.stride[size_t(i)],
                        w.dilation[size_t(i)]);  // (..., K, O) in the place of an axis
  Axes order;
  for (int64_t i = 0; i < first; i++) order.push_back(i);
  for (int64_t i = 0; i < n; i++) order.push_back(first + 2 * i + 1);
  for (int64_t i = 0; i < n; i++) order.push_back(first + 2 * i);
  return t.permute(order);
}

std::vector<int64_t> detail::per_axis(const char* what, const char* noun, const PerAxis& given,
                                      size_t n) {
  std::vector<int64_t> each = given.values();
  if (each.size() == 1) each.resize(n, each[0]);
  if (each.size() != n)
    fail<InvalidArgument>("{}: {} of {} numbers for {} axes: give one, or one for each", what, noun,
                          each.size(), n);
  return each;
}

std::string detail::by(const std::vector<int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

detail::Windows detail::windows_from(const char* what, const PerAxis& kernel,
                                     const PerAxis& stride, const PerAxis& dilation, size_t n) {
  return {per_axis(what, "a kernel", kernel, n), per_axis(what, "a stride", stride, n),
          per_axis(what, "a dilation", dilation, n)};
}

void detail::require_positive(const char* what, const Windows& w) {
  if (!all_positive(w.kernel) || !all_positive(w.stride) || !all_positive(w.dilation))
    fail<InvalidArgument>("{}: kernel {}, stride {} and dilation {} must be positive", what,
                          by(w.kernel), by(w.stride), by(w.dilation));
}

void detail::require_windows(const char* what, const Sizes& padded, const Windows& w) {
  require_positive(what, w);
  for (size_t i = 0; i < w.axes(); i++) {
    const Size& n = padded[padded.size() - w.axes() + i];
    if (n.min() >= w.reach(i)) continue;
    fail<ShapeError>("{}: a {} window (dilation {}) does not fit the padded input {}{}", what,
                     by(w.kernel), by(w.dilation), text(padded),
                     n.is_number() ? "" : ", which varies (" + varying_text(padded) + ")");
  }
}

detail::Sides detail::symmetric(const std::vector<int64_t>& padding) {
  Sides sides;
  for (const int64_t n : padding) sides.emplace_back(n, n);
  return sides;
}

void detail::require_sides(const char* what, const Sides& sides) {
  std::vector<int64_t> before, after;
  for (const auto& [b, a] : sides) before.push_back(b), after.push_back(a);
  const auto negative = [](int64_t n) { return n < 0; };
  if (std::any_of(before.begin(), before.end(), negative))
    fail<InvalidArgument>("{}: padding {} is negative", what, by(before));
  if (std::any_of(after.begin(), after.end(), negative))
    fail<InvalidArgument>("{}: padding {} behind is negative", what, by(after));
}

detail::Sides detail::sides_of(const char* what, const Padding& padding, const Windows& w) {
  Sides sides = padding.sides();
  if (padding.same()) {
    if (std::any_of(w.stride.begin(), w.stride.end(), [](int64_t s) { return s != 1; }))
      fail<InvalidArgument>("{}: padding 'same' with stride {}: give numbers, or a stride of 1",
                            what, by(w.stride));
    sides.clear();
    for (size_t i = 0; i < w.axes(); i++)
      sides.emplace_back((w.reach(i) - 1) / 2, (w.reach(i) - 1) - (w.reach(i) - 1) / 2);
  }
  if (sides.size() == 1) sides.resize(w.axes(), sides[0]);
  if (sides.size() != w.axes())
    fail<InvalidArgument>("{}: padding of {} axes for {}: give one, or one for each", what,
                          sides.size(), w.axes());
  require_sides(what, sides);
  return sides;
}

Tensor detail::padded(const Tensor& x, const Sides& sides, Number fill) {
  std::vector<int64_t> list;
  for (size_t i = sides.size(); i-- > 0;)
    list.insert(list.end(), {sides[i].first, sides[i].second});
  return x.pad(list, fill);
}

}  // namespace tuff
