// Pools over the last axes: windows of one size, and windows that cut an axis to so many parts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/positions.h"
#include "tensor/windows.h"

namespace tuff {

using detail::by;
using detail::counter;
using detail::self;
using detail::text;
using detail::unflatten;
using detail::Windows;

namespace {

using Pair = std::pair<Tensor, Tensor>;

// One axis of a pooling: its output extent and how far the input is padded behind.
struct PooledAxis {
  Size n, out;
  int64_t kernel, stride, padding, dilation, behind;
  PooledAxis(const Size& extent, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil_mode)
      : n(extent), kernel(k), stride(s), padding(p), dilation(d) {
    const int64_t reach = d * (k - 1) + 1;
    const Size room = n + 2 * p - reach;
    out = (room + (ceil_mode ? s - 1 : 0)) / s + 1;
    // A window may hang over the end, but has to start before it.
    if (ceil_mode && (out - 1) * s >= n + p) out -= 1;
    behind = std::max(p, ((out - 1) * s + reach - n - p).max());
  }
  bool hangs_over() const { return behind > padding; }
};

struct PoolOptions {
  PerAxis kernel, stride, padding, dilation;
  bool ceil_mode;
};

void require_axes(const char* what, const Tensor& x, size_t axes) {
  if (x.dim() < int64_t(axes))
    fail<ShapeError>("{}: input {} has fewer than {} axes", what, text(x.sizes()), axes);
}

void require_numbers_of_axes(const char* what, const Tensor& x, size_t axes) {
  require_axes(what, x, axes);
  const Sizes own = x.sizes();
  detail::require_numbers(what, Sizes(own.end() - int64_t(axes), own.end()));
}

struct Pooling {
  Windows shape;
  std::vector<PooledAxis> axes;

  static Pooling of(const char* what, const Tensor& x, size_t n, const PoolOptions& o) {
    require_axes(what, x, n);
    const PerAxis& stride = o.stride.given() ? o.stride : o.kernel;
    Pooling p{detail::windows_from(what, o.kernel, stride, o.dilation, n), {}};
    const std::vector<int64_t> padding = detail::per_axis(what, "a padding", o.padding, n);
    const detail::Sides sides = detail::symmetric(padding);
    detail::require_sides(what, sides);
    detail::require_windows(what, detail::padded(x, sides).sizes(), p.shape);
    for (size_t i = 0; i < n; i++) {
      if (padding[i] > p.shape.kernel[i] / 2)
        fail<InvalidArgument>("{}: padding {} is more than half of the kernel {}", what,
                              by(padding), by(p.shape.kernel));
      p.axes.push_back({x.size(int64_t(i) - int64_t(n)), p.shape.kernel[i], p.shape.stride[i],
                        padding[i], p.shape.dilation[i], o.ceil_mode});
    }
    return p;
  }
  // (..., out..., kernel...)
  Tensor windows(const Tensor& x, Number fill) const {
    detail::Sides sides;
    for (const PooledAxis& a : axes) sides.emplace_back(a.padding, a.behind);
    Tensor t = detail::windows_of_axes(detail::padded(x, sides, fill), shape);
    const int64_t n = int64_t(axes.size());
    for (int64_t i = 0; i < n; i++) t = t.narrow(i - 2 * n, 0, axes[size_t(i)].out);
    return t;
  }
  Axes window_axes() const {
    Axes out;
    for (int64_t i = -int64_t(axes.size()); i < 0; i++) out.push_back(i);
    return out;
  }
};

Number lowest(DType t) {
  if (is_float(t)) return has_infinity(t) ? -INFINITY : -largest_value(t);
  if (!is_signed(t)) return 0;
  return int64_t(uint64_t(-1) << (row(t).storage_bits - 1));
}

Tensor max_pool(const char* what, const Tensor& x, size_t n, const PoolOptions& o) {
  const Pooling p = Pooling::of(what, x, n, o);
  return p.windows(x, lowest(x.dtype())).max(p.window_axes());
}

// Where elements are those that were found: every NaN is, for then the largest is one.
Tensor is_found(const Tensor& x, const Tensor& largest) {
  const Tensor equal = x == largest;
  return is_float(x.dtype()) ? equal | (x != x) : equal;
}

// Row-major positions of the elements of all windows, (out..., kernel...), and whether they lie
// inside.
Pair positions(const Pooling& p, const std::string& device) {
  const int64_t n = int64_t(p.axes.size());
  Tensor at, inside;
  int64_t step = 1;
  for (int64_t i = n; i-- > 0;) {
    const PooledAxis& a = p.axes[size_t(i)];
    const Tensor here = counter(a.out, i, 2 * n, device) * a.stride +
                        counter(a.kernel, n + i, 2 * n, device) * a.dilation - a.padding;
    const Tensor in = (here >= 0) & (here < a.n);
    at = at.defined() ? at + here * step : here;
    inside = inside.defined() ? inside & in : in;
    step *= int64_t(a.n);
  }
  return {at, inside};
}

Pair max_pool_with_indices(const char* what, const Tensor& x, size_t n, const PoolOptions& o) {
  require_numbers_of_axes(what, x, n);
  const Pooling p = Pooling::of(what, x, n, o);
  int64_t count = 1;
  for (const PooledAxis& a : p.axes) count *= int64_t(a.n);
  const Tensor windows = p.windows(x, lowest(x.dtype()));
  const Tensor values = windows.max(p.window_axes());
  Sizes sizes = values.sizes();
  sizes.resize(sizes.size() + n, 1);
  const Tensor largest = values.reshape(sizes);
  const auto [at, inside] = positions(p, x.device());
  const DType t = detail::position_dtype(count);
  const Tensor hit = is_found(windows, largest) & inside;
  const Tensor first = Tensor::where(hit, at.cast(t), std::max<int64_t>(count - 1, 0));
  return {values, first.min(p.window_axes())};
}

std::vector<int64_t> unpooled_extents(const char* what, const Tensor& x, const Windows& w,
                                      const std::vector<int64_t>& padding,
                                      const PerAxis& output_size) {
  const size_t n = w.axes();
  std::vector<int64_t> natural, out;
  for (size_t i = 0; i < n; i++)
    natural.push_back((int64_t(x.size(int64_t(i) - int64_t(n))) - 1) * w.stride[i] -
                      2 * padding[i] + w.kernel[i]);
  out = output_size.given() ? detail::per_axis(what, "an output_size", output_size, n) : natural;
  for (size_t i = 0; i < n; i++) {
    if (out[i] < 0 || std::abs(out[i] - natural[i]) >= w.stride[i])
      fail<InvalidArgument>("{}: output_size {} is a stride or more from {}", what, by(out),
                            by(natural));
  }
  return out;
}

// The gradient of what picks elements by these indices.
Tensor max_unpool(const char* what, const Tensor& x, const Tensor& indices, size_t n,
                  const PoolOptions& o, const PerAxis& output_size) {
  require_numbers_of_axes(what, x, n);
  detail::require_integers(what, indices);
  detail::require_same_device(what, x, indices);
  if (!detail::same(x.sizes(), indices.sizes()))
    fail<ShapeError>("{}: indices {} for {}", what, text(indices.sizes()), text(x.sizes()));
  if (!is_float(x.dtype()))
    fail<InvalidArgument>("{}: not defined on {}: cast() to a float", what, name(x.dtype()));
  const PerAxis& stride = o.stride.given() ? o.stride : o.kernel;
  const Windows w = detail::windows_from(what, o.kernel, stride, o.dilation, n);
  detail::require_positive(what, w);
  const std::vector<int64_t> padding = detail::per_axis(what, "a padding", o.padding, n);
  detail::require_sides(what, detail::symmetric(padding));
  const std::vector<int64_t> out = unpooled_extents(what, x, w, padding, output_size);
  Sizes front = x.sizes();
  const Size pooled = detail::product(std::span<const Size>(front).last(n));
  front.resize(front.size() - n);
  Sizes flat = front, flat_out = front, sizes = front;
  int64_t count = 1;
  for (const int64_t extent : out) count *= extent, sizes.push_back(extent);
  flat.push_back(pooled), flat_out.push_back(count);
  detail::require_inside({what, 0, count}, indices);
  const Tensor at = indices.reshape(flat), values = x.reshape(flat);
  const auto picked = [&](const Tensor& y) { return y.gather(-1, at); };
  Tensor y = detail::adjoint(flat_out, values, picked);
  bool apart = true;
  for (size_t i = 0; i < n; i++) apart = apart && w.kernel[i] <= w.stride[i];
  if (!apart) y = y / detail::adjoint(flat_out, values.ones_like(), picked).clamp(1);
  return y.reshape(sizes);
}

// How many elements each window along an axis averages: with the padding, but not what hangs over.
Tensor counted(const PooledAxis& a, int64_t d, int64_t rank, bool with_padding,
               const std::string& device) {
  const Tensor first = counter(a.out, d, rank, device) * a.stride - a.padding;
  const int64_t low = with_padding ? -a.padding : 0;
  const Number high = a.n + (with_padding ? a.padding : 0);
  return (first + a.kernel).clamp({}, high) - first.clamp(low);
}

Tensor avg_pool(const char* what, const Tensor& given, size_t n, const PoolOptions& o,
                bool count_include_pad, std::optional<int64_t> divisor) {
  const Pooling p = Pooling::of(what, given, n, o);
  if (divisor == 0) fail<InvalidArgument>("{}: divisor_override is 0", what);
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Tensor sum = p.windows(x, 0).sum(p.window_axes());
    bool even = true;
    int64_t size = 1;
    for (const PooledAxis& a : p.axes) {
      even = even && !a.hangs_over() && (a.padding == 0 || count_include_pad);
      size *= a.kernel;
    }
    if (divisor || even) return sum * (1.0 / double(divisor.value_or(size)));
    Tensor count;
    for (size_t i = 0; i < n; i++) {
      const Tensor along =
          counted(p.axes[i], int64_t(i), int64_t(n), count_include_pad, given.device());
      count = count.defined() ? count * along : along;
    }
    return sum / count.cast(x.dtype());
  });
}

Tensor lp_pool(const char* what, const Tensor& given, size_t n, const PoolOptions& o, double p) {
  const Pooling pool = Pooling::of(what, given, n, o);
  if (p == 0 || !std::isfinite(p))
    fail<InvalidArgument>("{}: p is {}{}", what, p, p > 0 ? ": use max_pool" : "");
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Tensor powers = p == 2 ? x.square() : x.pow(p);
    const Tensor sum = pool.windows(powers, 0).sum(pool.window_axes());
    // A root has no slope at 0.
    const Tensor none = sum == 0, root = Tensor::where(none, 1, sum).pow(1 / p);
    return Tensor::where(none, 0, root);
  });
}

// An axis of g * q elements cut to g * p windows: block by block, p of them in q elements, so that
// no window reaches into two blocks.
struct Cut {
  int64_t g, p, q;
  Cut(int64_t n, int64_t out) : g(std::gcd(n, out)), p(out / g), q(n / g) {}

  // (..., n, ...) -> (..., g, 1, q, ...)
  Tensor blocks(const Tensor& x, int64_t d) const { return unflatten(x, d, g, q).unsqueeze(d + 1); }
  Tensor first(int64_t d, int64_t rank, const std::string& device) const {
    return (counter(p, d, rank, device) * q).floor_divide(p);
  }
  Tensor last(int64_t d, int64_t rank, const std::string& device) const {
    return ((counter(p, d, rank, device) + 1) * q - 1).floor_divide(p);
  }
  // Whether window d has element d + 1.
  Tensor has(int64_t d, int64_t rank, const std::string& device) const {
    const Tensor at = counter(q, d + 1, rank, device);
    return (at >= first(d, rank, device)) & (at <= last(d, rank, device));
  }
};

std::vector<int64_t> adaptive_output(const char* what, const Tensor& x, const PerAxis& output,
                                     size_t n) {
  require_numbers_of_axes(what, x, n);
  std::vector<int64_t> out = detail::per_axis(what, "an output", output, n);
  for (size_t i = 0; i < n; i++) {
    const int64_t extent = x.size(int64_t(i) - int64_t(n));
    if (out[i] == -1) out[i] = extent;
    if (out[i] < 0) fail<InvalidArgument>("{}: output {}", what, by(output.values()));
    if (extent == 0 && out[i] > 0)
      fail<ShapeError>("{}: no element of {} for a window", what, text(x.sizes()));
  }
  return out;
}

// Equal windows along all axes: (..., out, k, out, k).
std::optional<Tensor> equal_windows(const Tensor& x, const std::vector<int64_t>& out) {
  const int64_t n = int64_t(out.size());
  Sizes cut = x.sizes();
  const Sizes own(cut.end() - n, cut.end());
  cut.resize(cut.size() - size_t(n));
  for (size_t i = 0; i < out.size(); i++) {
    if (out[i] == 0 || int64_t(own[i]) % out[i] != 0) return {};
    cut.push_back(out[i]), cut.push_back(int64_t(own[i]) / out[i]);
  }
  return x.reshape(cut);
}

Axes every_other(size_t n) {
  Axes axes;
  for (int64_t i = 1 - 2 * int64_t(n); i < 0; i += 2) axes.push_back(i);
  return axes;
}

Tensor without_windows(const Tensor& x, const std::vector<int64_t>& out) {
  Sizes sizes = x.sizes();
  std::copy(out.begin(), out.end(), sizes.end() - int64_t(out.size()));
  return Tensor::zeros(sizes, {x.dtype(), x.device()});
}

bool any_is_zero(const std::vector<int64_t>& out) {
  return std::find(out.begin(), out.end(), 0) != out.end();
}

Tensor adaptive_avg_pool(const char* what, const Tensor& given, const PerAxis& output, size_t n) {
  const std::vector<int64_t> out = adaptive_output(what, given, output, n);
  return detail::computed_wide(given, [&](const Tensor& x) {
    if (any_is_zero(out)) return without_windows(x, out);
    if (const auto equal = equal_windows(x, out)) return equal->mean(every_other(n));
    Tensor t = x;
    for (size_t i = n; i-- > 0;) {
      const int64_t d = t.dim() - int64_t(n - i), rank = t.dim() + 2;
      const Cut cut(t.size(d), out[i]);
      const Tensor sum =
          Tensor::where(cut.has(d + 1, rank, x.device()), cut.blocks(t, d), 0).sum({d + 2});
      const Tensor size =
          cut.last(d + 1, rank - 1, x.device()) - cut.first(d + 1, rank - 1, x.device()) + 1;
      t = (sum / size.cast(x.dtype())).flatten(d, d + 1);
    }
    return t;
  });
}

// Axis by axis, the last one first: the first of equals in row-major order is the first row that
// has one, and the first one in it.
Pair adaptive_max(const char* what, const Tensor& x, const PerAxis& output, size_t n,
                  bool with_indices) {
  const std::vector<int64_t> out = adaptive_output(what, x, output, n);
  int64_t count = 1;
  for (size_t i = 0; i < n; i++) count *= int64_t(x.size(int64_t(i) - int64_t(n)));
  const DType index = detail::position_dtype(count);
  if (any_is_zero(out)) {
    const Tensor none = without_windows(x, out);
    return {none, none.cast(index)};
  }
  if (const auto equal = equal_windows(x, out); equal && !with_indices)
    return {equal->max(every_other(n)), Tensor()};
  Tensor t = x, at;
  int64_t step = 1;
  for (size_t i = n; i-- > 0;) {
    const int64_t d = t.dim() - int64_t(n - i), rank = t.dim() + 2, extent = t.size(d);
    const Cut cut(extent, out[i]);
    const Tensor has = cut.has(d + 1, rank, x.device()), blocks = cut.blocks(t, d);
    const Tensor largest = Tensor::where(has, blocks, lowest(x.dtype())).max({d + 2}, true);
    if (with_indices) {
      Tensor here = (counter(cut.g, d, rank, x.device()) * cut.q +
                     counter(cut.q, d + 2, rank, x.device())).cast(index) * step;
      if (at.defined()) here = here + cut.blocks(at, d);
      const Tensor hit = has & is_found(blocks, largest);
      at = Tensor::where(hit, here, count - 1).min({d + 2}).flatten(d, d + 1);
    }
    t = largest.squeeze(d + 2).flatten(d, d + 1);
    step *= extent;
  }
  return {t, at};
}

}  // namespace

#define TUFF_POOLS(axes, max, max_with_indices, unpool, avg, lp)                                   \
  Tensor TensorWindows::max(const PerAxis& kernel, const PerAxis& stride, const PerAxis& padding,  \
                            const PerAxis& dilation, bool ceil_mode) const {                       \
    return max_pool(#max, self(this), axes, {kernel, stride, padding, dilation, ceil_mode});       \
  }                                                                                                \
  Pair TensorWindows::max_with_indices(const PerAxis& kernel, const PerAxis& stride,               \
                                       const PerAxis& padding, const PerAxis& dilation,            \
                                       bool ceil_mode) const {                                     \
    return max_pool_with_indices(#max, self(this), axes,                                           \
                                 {kernel, stride, padding, dilation, ceil_mode});                  \
  }                                                                                                \
  Tensor TensorWindows::unpool(const Tensor& indices, const PerAxis& kernel,                       \
                               const PerAxis& stride, const PerAxis& padding,                      \
                               const PerAxis& output_size) const {                                 \
    return max_unpool(#unpool, self(this), indices, axes, {kernel, stride, padding, 1, false},     \
                      output_size);                                                                \
  }                                                                                                \
  Tensor TensorWindows::avg(const PerAxis& kernel, const PerAxis& stride, const PerAxis& padding,  \
                            bool ceil_mode, bool count_include_pad,                                \
                            std::optional<int64_t> divisor_override) const {                       \
    return avg_pool(#avg, self(this), axes, {kernel, stride, padding, 1, ceil_mode},               \
                    count_include_pad, divisor_override);                                          \
  }                                                                                                \
  Tensor TensorWindows::lp(double p, const PerAxis& kernel, const PerAxis& stride, bool ceil_mode) \
      const {                                                                                      \
    return lp_pool(#lp, self(this), axes, {kernel, stride, 0, 1, ceil_mode}, p);                   \
  }
TUFF_POOLS(1, max_pool1d, max_pool1d_with_indices, max_unpool1d, avg_pool1d, lp_pool1d)
TUFF_POOLS(2, max_pool2d, max_pool2d_with_indices, max_unpool2d, avg_pool2d, lp_pool2d)
TUFF_POOLS(3, max_pool3d, max_pool3d_with_indices, max_unpool3d, avg_pool3d, lp_pool3d)
#undef TUFF_POOLS

#define TUFF_ADAPTIVE_POOLS(axes, avg, max, max_with_indices)               \
  Tensor TensorWindows::avg(const PerAxis& output) const {                  \
    return adaptive_avg_pool(#avg, self(this), output, axes);               \
  }                                                                         \
  Tensor TensorWindows::max(const PerAxis& output) const {                  \
    return adaptive_max(#max, self(this), output, axes, false).first;       \
  }                                                                         \
  Pair TensorWindows::max_with_indices(const PerAxis& output) const {       \
    return adaptive_max(#max, self(this), output, axes, true);              \
  }
TUFF_ADAPTIVE_POOLS(1, adaptive_avg_pool1d, adaptive_max_pool1d, adaptive_max_pool1d_with_indices)
TUFF_ADAPTIVE_POOLS(2, adaptive_avg_pool2d, adaptive_max_pool2d, adaptive_max_pool2d_with_indices)
TUFF_ADAPTIVE_POOLS(3, adaptive_avg_pool3d, adaptive_max_pool3d, adaptive_max_pool3d_with_indices)
#undef TUFF_ADAPTIVE_POOLS

}  // namespace tuff
