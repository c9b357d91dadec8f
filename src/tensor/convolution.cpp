// Windows over planes, as movement alone: convolution and pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arith.h"
#include "base/check.h"
#include "ir/variants.h"
#include "tensor/impl.h"

namespace tuff {

using detail::pad_axis;
using detail::text;
using detail::unflatten;

namespace {

// Windows along one axis, (..., n, ...) -> (..., k, out, ...): the axis k times, cut into rows of
// n + dilation, so that row i starts i*dilation further and no gather is needed. Needs
// out*stride <= n + dilation.
Tensor windows_1d(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation) {
  const int64_t n = x.size(d), reach = dilation * (k - 1) + 1, out = (n - reach) / stride + 1;
  Sizes repeats(size_t(x.dim()), 1);
  repeats[size_t(d)] = k;
  const Tensor repeated = pad_axis(x.repeat(repeats), d, 0, k * dilation);
  return unflatten(repeated, d, k, n + dilation).slice(d + 1, 0, out * stride, stride);
}

// One axis cropped, or padded with zeros, to an extent.
Tensor with_extent(const Tensor& x, int64_t d, int64_t extent) {
  return pad_axis(x, d, 0, std::max<int64_t>(0, extent - x.size(d))).narrow(d, 0, extent);
}

// Windows that share no element are a cut of the axis: nothing is repeated, and their gradient adds
// nothing up.
Tensor apart_windows(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation) {
  const int64_t n = x.size(d), reach = dilation * (k - 1) + 1, out = (n - reach) / stride + 1;
  const Tensor cut = unflatten(with_extent(x, d, out * stride), d, out, stride);
  return cut.narrow(d + 1, 0, reach).transpose(d, d + 1).slice(d, {}, {}, dilation);
}

// Windows with a stride of which several share an element: tap t = a*stride + q of window o is
// element o + a of phase q, so that each phase has windows of stride 1, and the gradient of an
// element adds up the taps of its own phase alone.
Tensor phase_windows(const Tensor& x, int64_t d, int64_t k, int64_t stride) {
  const int64_t out = (x.size(d) - k) / stride + 1, taps = ceil_div(k, stride);
  const int64_t rows = out + taps - 1;
  const Tensor phases = unflatten(with_extent(x, d, rows * stride), d, rows, stride);
  const Tensor windows = windows_1d(phases, d, taps, 1, 1).transpose(d + 1, d + 2);
  return windows.flatten(d, d + 1).narrow(d, 0, k);
}

// What is multiplied with the zeros around an image is taken to be finite, forwards and backwards.
Tensor products(const Tensor& x, const Tensor& weight) {
  const detail::BuildGuard section;
  const Sizes sizes = detail::broadcast_sizes("conv2d", x.sizes(), weight.sizes());
  const auto of = [&](const Tensor& t) -> ir::UOp { return detail::uop(t.expand(sizes)); };
  return detail::derive(x, ir::finite_product(of(x), of(weight)));
}

void require_window(const char* what, const Tensor& x, IntPair k, IntPair stride,
                    IntPair dilation) {
  if (k.h < 1 || k.w < 1 || stride.h < 1 || stride.w < 1 || dilation.h < 1 || dilation.w < 1)
    fail<InvalidArgument>("{}: kernel {}x{}, stride {}x{} and dilation {}x{} must be positive",
                          what, k.h, k.w, stride.h, stride.w, dilation.h, dilation.w);
  if (x.size(-2) < dilation.h * (k.h - 1) + 1 || x.size(-1) < dilation.w * (k.w - 1) + 1) {
    fail<ShapeError>("{}: a {}x{} window (dilation {}x{}) does not fit the padded input {}", what,
                     k.h, k.w, dilation.h, dilation.w, text(x.sizes()));
  }
}

void require_padding(const char* what, IntPair padding) {
  if (padding.h < 0 || padding.w < 0)
    fail<InvalidArgument>("{}: padding {}x{} is negative", what, padding.h, padding.w);
}

}  // namespace

// By the window's kind: padded where windows_1d needs it, the windows that this adds cut off again.
Tensor detail::windows_of_axis(const Tensor& x, int64_t d, int64_t k, int64_t stride,
                               int64_t dilation) {
  if (dilation * (k - 1) < stride) return apart_windows(x, d, k, stride, dilation);
  if (stride > 1 && dilation == 1) return phase_windows(x, d, k, stride);
  const int64_t n = x.size(d), out = (n - dilation * (k - 1) - 1) / stride + 1;
  const Tensor padded = pad_axis(x, d, 0, std::max<int64_t>(0, out * stride - n - dilation));
  return windows_1d(padded, d, k, stride, dilation).narrow(d + 1, 0, out);
}

Tensor detail::windows_2d(const Tensor& x, IntPair k, IntPair stride, IntPair dilation) {
  const int64_t h = x.dim() - 2, w = x.dim() - 1;
  Tensor t = windows_of_axis(x, w, k.w, stride.w, dilation.w);  // (..., H, KW, OW)
  t = windows_of_axis(t, h, k.h, stride.h, dilation.h);         // (..., KH, OH, KW, OW)
  Axes order;
  for (int64_t i = 0; i < h; i++) order.push_back(i);
  order.insert(order.end(), {h + 1, h + 3, h, h + 2});
  return t.permute(order);  // (..., OH, OW, KH, KW)
}

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, IntPair stride, IntPair padding,
                      IntPair dilation, int64_t groups) const {
  if (dim() != 4 || weight.dim() != 4)
    fail<ShapeError>("conv2d: input {} and weight {} must have 4 axes", text(sizes()),
                     text(weight.sizes()));
  detail::require_numbers("conv2d", {size(1), size(2), size(3)});
  const Size n = size(0);
  const int64_t c = size(1), o = weight.size(0), k_h = weight.size(2), k_w = weight.size(3);
  if (groups < 1 || c % groups || o % groups || weight.size(1) * groups != c) {
    fail<ShapeError>("conv2d: {} input channels, weight {} and {} groups do not fit", c,
                     text(weight.sizes()), groups);
  }
  if (bias.defined() && bias.sizes() != Sizes{o})
    fail<ShapeError>("conv2d: bias {} for {} output channels", text(bias.sizes()), o);
  detail::require_same_device("conv2d", *this, weight);
  require_padding("conv2d", padding);
  const DType t = promote(dtype(), weight.dtype()), wide = accumulator(t);
  const Tensor x = cast(wide).pad({padding.w, padding.w, padding.h, padding.h});
  require_window("conv2d", x, {k_h, k_w}, stride, dilation);
  const Tensor w = detail::windows_2d(x, {k_h, k_w}, stride, dilation);  // (N, C, OH, OW, KH, KW)
  const int64_t oh = w.size(2), ow = w.size(3), cg = c / groups, og = o / groups;
  // Pixels last: what the images' gradient stores of each tap are planes, which it walks in order.
  const Tensor in =
      w.reshape({n, groups, 1, cg, oh, ow, k_h, k_w}).permute({0, 1, 2, 3, 6, 7, 4, 5});
  const Tensor ker = weight.cast(wide).reshape({1, groups, og, cg, k_h, k_w, 1, 1});
  const Tensor sum = detail::own_sum("conv2d", products(in, ker), {3, 4, 5}).reshape({n, o, oh, ow});
  const Tensor out = is_float(t) ? sum.cast(t) : sum;
  return bias.defined() ? out + bias.reshape({1, o, 1, 1}) : out;
}

namespace {

// One axis of a pooling: its output extent and how far the input is padded behind.
struct PooledAxis {
  int64_t n, kernel, stride, padding, out, behind;
  PooledAxis(int64_t extent, int64_t k, int64_t s, int64_t p, int64_t dilation, bool ceil_mode)
      : n(extent), kernel(k), stride(s), padding(p) {
    const int64_t reach = dilation * (k - 1) + 1, room = n + 2 * p - reach;
    out = (room + (ceil_mode ? s - 1 : 0)) / s + 1;
    // A window may hang over the end, but has to start before it.
    if (ceil_mode && (out - 1) * s >= n + p) out--;
    behind = std::max(p, (out - 1) * s + reach - n - p);
  }
  bool hangs_over() const { return behind > padding; }
};

struct Pooling {
  PooledAxis h, w;
  IntPair kernel, stride, dilation;

  static Pooling of(const char* what, const Tensor& x, IntPair k, IntPair given_stride,
                    IntPair padding, IntPair dilation, bool ceil_mode) {
    if (x.dim() < 2) fail<ShapeError>("{}: input {} has fewer than 2 axes", what, text(x.sizes()));
    detail::require_numbers(what, {x.size(-2), x.size(-1)});
    const IntPair stride = given_stride.given ? given_stride : k;
    require_padding(what, padding);
    require_window(what, x.pad({padding.w, padding.w, padding.h, padding.h}), k, stride, dilation);
    if (padding.h > k.h / 2 || padding.w > k.w / 2)
      fail<InvalidArgument>("{}: padding {}x{} is more than half of the kernel {}x{}", what,
                            padding.h, padding.w, k.h, k.w);
    return {{x.size(-2), k.h, stride.h, padding.h, dilation.h, ceil_mode},
            {x.size(-1), k.w, stride.w, padding.w, dilation.w, ceil_mode},
            k,
            stride,
            dilation};
  }
  Tensor windows(const Tensor& x, Number fill) const {
    const Tensor padded = x.pad({w.padding, w.behind, h.padding, h.behind}, fill);
    return detail::windows_2d(padded, kernel, stride, dilation)
        .narrow(-4, 0, h.out)
        .narrow(-3, 0, w.out);
  }
};

Number lowest(DType t) {
  if (is_float(t)) return -INFINITY;
  if (!is_signed(t)) return 0;
  return int64_t(uint64_t(-1) << (row(t).storage_bits - 1));
}

// How many elements each window along an axis averages: with the padding, but not what hangs over.
Tensor counted(const PooledAxis& a, int64_t d, bool with_padding, const std::string& device) {
  const Tensor first = detail::counter(a.out, d, 2, device) * a.stride - a.padding;
  const int64_t low = with_padding ? -a.padding : 0, high = a.n + (with_padding ? a.padding : 0);
  return (first + a.kernel).clamp({}, high) - first.clamp(low);
}

}  // namespace

Tensor Tensor::max_pool2d(IntPair kernel, IntPair stride, IntPair padding, IntPair dilation,
                          bool ceil_mode) const {
  const Pooling p = Pooling::of("max_pool2d", *this, kernel, stride, padding, dilation, ceil_mode);
  return p.windows(*this, lowest(dtype())).max({-2, -1});
}

Tensor Tensor::avg_pool2d(IntPair kernel, IntPair stride, IntPair padding, bool ceil_mode,
                          bool count_include_pad, std::optional<int64_t> divisor_override) const {
  const Pooling p = Pooling::of("avg_pool2d", *this, kernel, stride, padding, 1, ceil_mode);
  if (divisor_override == 0) fail<InvalidArgument>("avg_pool2d: divisor_override is 0");
  return detail::computed_wide(*this, [&](const Tensor& x) {
    const Tensor sum = p.windows(x, 0).sum({-2, -1});
    const bool padded = p.h.padding || p.w.padding;
    const bool even = !(p.h.hangs_over() || p.w.hangs_over() || (padded && !count_include_pad));
    if (divisor_override || even)
      return sum * (1.0 / double(divisor_override.value_or(kernel.h * kernel.w)));
    return sum / (counted(p.h, 0, count_include_pad, device()) *
                  counted(p.w, 1, count_include_pad, device()))
                     .cast(x.dtype());
  });
}

}  // namespace tuff
