// Convolutions and pools.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "onnx/operators.h"
#include "onnx/windows.h"

namespace tuff::onnx {

Sizes spatial(const Sizes& sizes) {
  if (sizes.size() < 3) fail<ShapeError>("(n, c, ...) is wanted, not {}", shape_text(sizes));
  return Sizes(sizes.begin() + 2, sizes.end());
}

namespace {

constexpr int64_t kMostWindow = int64_t{1} << 30;

// What extents are multiplied with and divided by.
void require_inside(const std::vector<int64_t>& numbers, const char* what, int64_t least) {
  for (const int64_t n : numbers)
    if (n < least || n > kMostWindow)
      fail<InvalidArgument>("{} of windows hold {}: {} to {} is possible", what, n, least,
                            kMostWindow);
}

Size at_least_0(const Size& n) { return n.min() >= 0 || n > 0 ? n : Size(0); }

}  // namespace

Windows windows_of(const Node& node, std::vector<int64_t> kernel, const Sizes& x) {
  const size_t n = kernel.size();
  Windows w{.kernel = std::move(kernel), .strides = {}, .dilations = {}, .pads = {}};
  w.strides = node.integers("strides", std::vector<int64_t>(n, 1));
  w.dilations = node.integers("dilations", std::vector<int64_t>(n, 1));
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * n, 0));
  if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n ||
      x.size() != n + 2)
    fail<ShapeError>("windows of {} axes over {}", n, shape_text(x));
  require_inside(w.kernel, "extents", 1);
  require_inside(w.strides, "strides", 1);
  require_inside(w.dilations, "dilations", 1);
  require_inside(pads, "pads", -kMostWindow);
  const std::string mode = node.text("auto_pad", "NOTSET");
  for (size_t a = 0; a < n; a++) {
    w.pads.emplace_back(mode == "NOTSET" ? pads[a] : 0, mode == "NOTSET" ? pads[a + n] : 0);
    if (!mode.starts_with("SAME")) continue;
    const Size in = x[a + 2], out = (in + w.strides[a] - 1) / w.strides[a];
    const int64_t all = at_least_0((out - 1) * w.strides[a] + w.reach(a) - in);
    w.pads[a] = {all / 2, all - all / 2};
    if (mode == "SAME_LOWER") std::swap(w.pads[a].first, w.pads[a].second);
  }
  return w;
}

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const Windows& w,
            int64_t groups) {
  const PerAxis strides(w.strides), dilations(w.dilations);
  const Padding pads(w.pads);
  switch (w.axes()) {
    case 1: return x.conv1d(weight, bias, strides, pads, dilations, groups);
    case 2: return x.conv2d(weight, bias, strides, pads, dilations, groups);
    case 3: return x.conv3d(weight, bias, strides, pads, dilations, groups);
    default: fail<Unsupported>("windows of {} axes", w.axes());
  }
}

namespace {

Outputs convolution(const Node& node) {
  const Tensor x = node.tensor(0), weight = node.tensor(1);
  const Windows w = windows_of(node, spatial(weight.sizes()), x.sizes());
  return {conv(x, weight, node.tensor_or_none(2), w, node.integer("group", 1))};
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Windows& w, int64_t groups) {
  const PerAxis strides(w.strides), dilations(w.dilations);
  switch (w.axes()) {
    case 1: return x.conv_transpose1d(weight, {}, strides, 0, 0, groups, dilations);
    case 2: return x.conv_transpose2d(weight, {}, strides, 0, 0, groups, dilations);
    case 3: return x.conv_transpose3d(weight, {}, strides, 0, 0, groups, dilations);
    default: fail<Unsupported>("windows of {} axes", w.axes());
  }
}

// What is cut off (or, below 0, added) at both ends of each axis of the whole result.
std::vector<std::pair<int64_t, int64_t>> cuts_of(const Node& node, const Windows& w,
                                                 const Sizes& in) {
  const std::vector<int64_t> more =
      node.integers("output_padding", std::vector<int64_t>(w.axes(), 0));
  const std::string mode = node.text("auto_pad", "NOTSET");
  const std::vector<int64_t> shape = node.integers("output_shape");
  Sizes wanted(shape);
  if (more.size() != w.axes() || (!wanted.empty() && wanted.size() < w.axes()))
    fail<InvalidArgument>("output_padding and output_shape have {} and {} numbers for {} axes",
                          more.size(), wanted.size(), w.axes());
  require_inside(more, "output_padding", 0);
  require_inside(shape, "output_shape", 0);
  if (wanted.empty() && mode.starts_with("SAME"))
    for (size_t a = 0; a < w.axes(); a++) wanted.push_back(in[a] * w.strides[a]);
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t a = 0; a < w.axes(); a++) {
    if (wanted.empty()) {
      out.emplace_back(w.pads[a].first, w.pads[a].second - more[a]);
      continue;
    }
    const Size extent = wanted[wanted.size() - w.axes() + a];
    const Size whole = (in[a] - 1) * w.strides[a] + w.reach(a);
    const int64_t all = at_least_0(whole + more[a] - extent);
    const int64_t first = mode == "SAME_UPPER" ? all / 2 : all - all / 2;
    out.emplace_back(first, whole - extent - first);
  }
  return out;
}

Outputs transposed_convolution(const Node& node) {
  const Tensor x = node.tensor(0), weight = node.tensor(1);
  Windows w = windows_of(node, spatial(weight.sizes()), x.sizes());
  const auto cuts = cuts_of(node, w, spatial(x.sizes()));
  Tensor out = conv_transpose(x, weight, w, node.integer("group", 1));
  std::vector<int64_t> pads;
  for (size_t a = w.axes(); a-- > 0;) {
    pads.push_back(-cuts[a].first);
    pads.push_back(-cuts[a].second);
  }
  out = out.pad(pads);
  if (!node.has(2)) return {out};
  Sizes channel(size_t(out.dim()), 1);
  channel[1] = out.size(1);
  return {out + node.tensor(2).reshape(channel)};
}

// ---- pools

// How many windows fit along an axis, and what is padded behind so that the last one does.
std::pair<Size, int64_t> windows_along(const Windows& w, size_t a, const Size& in, bool ceil) {
  const auto [before, behind] = w.pads[a];
  const Size room = in + before + behind - w.reach(a);
  if (room.min() < 0)
    fail<ShapeError>("a window of {} over {} elements{}", w.reach(a), (in + before + behind).str(),
                     in.is_number() ? "" : ", which may be fewer");
  Size count = (room + (ceil ? w.strides[a] - 1 : 0)) / w.strides[a] + 1;
  if (ceil && (count - 1) * w.strides[a] >= in + before) count -= 1;
  const Size hanging = (count - 1) * w.strides[a] + w.reach(a) - in - before;
  return {count, std::max(behind, hanging.max())};
}

// (n, c, ...) as (n, c, windows..., kernel...).
Tensor window_views(Tensor x, const Windows& w, bool ceil, Number outside) {
  const Sizes in = spatial(x.sizes());
  std::vector<int64_t> pads(2 * w.axes());
  Sizes counts;
  for (size_t a = 0; a < w.axes(); a++) {
    const auto [count, behind] = windows_along(w, a, in[a], ceil);
    const size_t at = 2 * (w.axes() - 1 - a);
    pads[at] = w.pads[a].first, pads[at + 1] = behind;
    counts.push_back(count);
  }
  const DType dtype = x.dtype();
  if (std::ranges::any_of(pads, [](int64_t p) { return p != 0; }))
    x = x.pad(pads, outside).cast(dtype);
  for (size_t a = 0; a < w.axes(); a++) {
    x = x.unfold(int64_t(a) + 2, w.reach(a), w.strides[a]).narrow(int64_t(a) + 2, 0, counts[a]);
    if (w.dilations[a] > 1) x = x.slice(-1, {}, {}, w.dilations[a]);
  }
  return x;
}

Axes kernel_axes(const Windows& w) {
  Axes out(w.axes());
  std::iota(out.begin(), out.end(), -int64_t(w.axes()));
  return out;
}

Windows pool_windows(const Node& node, const Tensor& x) {
  return windows_of(node, node.integers("kernel_shape"), x.sizes());
}

Number lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return is_signed(dtype) ? -(int64_t{1} << (size_bytes(dtype) * 8 - 1)) : int64_t{0};
}

// Each element's position among those of all axes; `by_columns`: the last axis is the slowest of
// those behind (n, c).
Tensor positions(const Tensor& x, bool by_columns) {
  const Sizes in = spatial(x.sizes());
  Size count = 1;
  for (const Size& n : in) count *= n;
  const Tensor all =
      Tensor::arange(0, Number(count), 1, {.dtype = DType::I64, .device = x.device()});
  Sizes sizes{1, 1};
  if (!by_columns) {
    sizes.insert(sizes.end(), in.begin(), in.end());
    return all.reshape(sizes);
  }
  sizes.insert(sizes.end(), in.rbegin(), in.rend());
  Axes axes{0, 1};
  for (size_t a = in.size(); a-- > 0;) axes.push_back(int64_t(a) + 2);
  return all.reshape(sizes).permute(axes);
}

Tensor largest_places(const Node& node, const Tensor& x, const Tensor& views, const Windows& w,
                      bool ceil) {
  const int64_t first = -int64_t(w.axes());
  const Tensor flat = views.flatten(first);
  const Tensor where = positions(x, node.integer("storage_order", 0) != 0),
               places = window_views(where, w, ceil, 0).flatten(first);
  Sizes sizes = flat.sizes();
  const Tensor chosen = flat.argmax(-1, true);
  const Tensor inside = places.expand(sizes).gather(-1, chosen).squeeze(-1);
  Size block = 1;
  for (int64_t a = 2; a < x.dim(); a++) block *= x.size(a);
  Sizes outer(size_t(inside.dim()), 1);
  outer[0] = x.size(0), outer[1] = x.size(1);
  const Size count = x.size(0) * x.size(1);
  const Tensor start =
      Tensor::arange(0, Number(count), 1, node.options(DType::I64)) * Number(block);
  return inside + start.reshape(outer);
}

Outputs max_pool(const Node& node) {
  const Tensor x = node.tensor(0);
  const Windows w = pool_windows(node, x);
  const bool ceil = node.integer("ceil_mode", 0) != 0;
  const Tensor views = window_views(x, w, ceil, lowest(x.dtype()));
  const Tensor out = views.max(kernel_axes(w));
  if (!node.wants(1)) return {out};
  return {out, largest_places(node, x, views, w, ceil)};
}

// How many elements that count each window has along an axis, in the place of that axis of the
// windows: taps below the end of what counts less those below its beginning.
Tensor counts_along(const Windows& w, size_t a, const Size& in, bool ceil, bool with_pads,
                    const TensorOptions& options) {
  const auto [before, behind] = w.pads[a];
  const int64_t stride = w.strides[a], dilation = w.dilations[a], from = with_pads ? 0 : before;
  const Size to = in + before + (with_pads ? behind : 0);
  const Size count = windows_along(w, a, in, ceil).first;
  // The last window may hang over the end, and taps are rounded up to the dilation.
  const int64_t largest = to.max() + stride + w.reach(a) + dilation;
  const DType position = largest <= INT32_MAX ? DType::I32 : DType::I64;
  const Tensor first =
      Tensor::arange(0, Number(count), 1, {.dtype = position, .device = options.device}) * stride;
  const auto taps_below = [&](const Tensor& room) {
    const Tensor taps = dilation == 1 ? room : (room + (dilation - 1)).floor_divide(dilation);
    return taps.clamp(0, w.kernel[a]);
  };
  Sizes sizes(w.axes(), 1);
  sizes[a] = first.size(0);
  return (taps_below(Number(to) - first) - taps_below(from - first))
      .cast(options.dtype)
      .reshape(sizes);
}

Outputs average_pool(const Node& node) {
  const Tensor x = node.tensor(0);
  const Windows w = pool_windows(node, x);
  const bool ceil = node.integer("ceil_mode", 0) != 0;
  const bool with_pads = node.integer("count_include_pad", 0) != 0;
  const Tensor wide = x.cast(accumulator(x.dtype()));
  const Tensor sums = window_views(wide, w, ceil, 0).sum(kernel_axes(w));
  const Sizes in = spatial(x.sizes());
  bool padded = ceil;
  int64_t volume = 1;
  for (size_t a = 0; a < w.axes(); a++) {
    padded |= w.pads[a] != std::pair<int64_t, int64_t>(0, 0);
    volume *= w.kernel[a];
  }
  if (!padded) return {(sums / double(volume)).cast(x.dtype())};
  Tensor counts = counts_along(w, 0, in[0], ceil, with_pads, node.options(DType::F32));
  for (size_t a = 1; a < w.axes(); a++)
    counts = counts * counts_along(w, a, in[a], ceil, with_pads, node.options(DType::F32));
  return {(sums / counts).cast(x.dtype())};
}

Outputs lp_pool(const Node& node) {
  const Tensor x = node.tensor(0);
  const Windows w = pool_windows(node, x);
  const auto p = double(node.version() < 2 ? node.number("p", 2) : double(node.integer("p", 2)));
  const Tensor powers = x.abs().pow(p);
  return {window_views(powers, w, node.integer("ceil_mode", 0) != 0, 0)
              .sum(kernel_axes(w))
              .pow(1 / p)};
}

Axes spatial_axes(const Tensor& x) {
  Axes out;
  for (int64_t a = 2; a < x.dim(); a++) out.push_back(a);
  return out;
}

Outputs global_average(const Node& node) {
  const Tensor x = node.tensor(0);
  return {x.mean(spatial_axes(x), true)};
}
Outputs global_max(const Node& node) {
  const Tensor x = node.tensor(0);
  return {x.max(spatial_axes(x), true)};
}
Outputs global_lp(const Node& node) {
  const Tensor x = node.tensor(0);
  const auto p = double(node.version() < 2 ? node.number("p", 2) : double(node.integer("p", 2)));
  return {x.abs().pow(p).sum(spatial_axes(x), true).pow(1 / p)};
}

// Indices are positions in the whole smaller tensor that max_pool saw.
Outputs max_unpool(const Node& node) {
  const Tensor x = node.tensor(0), places = node.tensor(1);
  const Windows w = windows_of(node, node.integers("kernel_shape"), x.sizes());
  const Sizes in = spatial(x.sizes());
  Sizes inner{x.size(0), x.size(1)};
  for (size_t a = 0; a < w.axes(); a++)
    inner.push_back((in[a] - 1) * w.strides[a] + w.kernel[a] - w.pads[a].first - w.pads[a].second);
  Sizes outer = inner;
  if (node.has(2)) outer = Sizes(node.integers(2));
  Size count = 1;
  for (const Size& s : inner) count *= s;
  const Tensor zeros = Tensor::zeros({count}, node.options(x.dtype()));
  const Tensor out = zeros.put(places.flatten(), x.flatten()).reshape(inner);
  return {outer == inner ? out : out.pad_to(outer)};
}

// Column blocks added up where they came from; pads may differ and are cut off at the end.
Outputs col2im(const Node& node) {
  const std::vector<int64_t> image = node.integers(1), block = node.integers(2);
  const size_t n = image.size();
  const auto pads = node.integers("pads", std::vector<int64_t>(2 * n, 0));
  if (pads.size() != 2 * n) fail<InvalidArgument>("{} pads for {} axes", pads.size(), n);
  require_inside(image, "extents", 0);
  require_inside(block, "blocks", 1);
  require_inside(pads, "pads", 0);
  std::vector<int64_t> whole, cuts;
  for (size_t a = 0; a < n; a++) whole.push_back(image[a] + pads[a] + pads[a + n]);
  for (size_t a = n; a-- > 0;) {
    cuts.push_back(-pads[a]);
    cuts.push_back(-pads[a + n]);
  }
  const auto dilations = node.integers("dilations", std::vector<int64_t>(n, 1)),
             strides = node.integers("strides", std::vector<int64_t>(n, 1));
  require_inside(dilations, "dilations", 1);
  require_inside(strides, "strides", 1);
  return {node.tensor(0)
              .fold(PerAxis(whole), PerAxis(block), PerAxis(dilations), 0, PerAxis(strides))
              .pad(cuts)};
}

constexpr Operator kRows[] = {
    {"", "AveragePool", 1, kNewest, average_pool},
    {"", "Col2Im", 18, kNewest, col2im},
    {"", "Conv", 1, kNewest, convolution},
    {"", "ConvTranspose", 1, kNewest, transposed_convolution},
    {"", "GlobalAveragePool", 1, kNewest, global_average},
    {"", "GlobalLpPool", 1, kNewest, global_lp},
    {"", "GlobalMaxPool", 1, kNewest, global_max},
    {"", "LpPool", 1, kNewest, lp_pool},
    {"", "MaxPool", 1, kNewest, max_pool},
    {"", "MaxUnpool", 9, kNewest, max_unpool},
};

}  // namespace

std::span<const Operator> window_operators() { return kRows; }

}  // namespace tuff::onnx
