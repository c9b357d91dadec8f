// Convolutions of one to three axes, and their gradients as functions: transposed convolutions and
// sums of windows.
#include <algorithm>

#include "base/check.h"
#include "ir/variants.h"
#include "tensor/impl.h"
#include "tensor/windows.h"

namespace tuff {

using detail::by;
using detail::per_axis;
using detail::Sides;
using detail::text;
using detail::Windows;

namespace {

// What is multiplied with the zeros around an image is taken to be finite, forwards and backwards.
Tensor products(const char* what, const Tensor& x, const Tensor& weight) {
  const detail::BuildGuard section;
  const Sizes sizes = detail::broadcast_sizes(what, x.sizes(), weight.sizes());
  const auto of = [&](const Tensor& t) -> ir::UOp { return detail::uop(t.expand(sizes)); };
  return detail::derive(x, ir::finite_product(of(x), of(weight)));
}

Sizes joined(std::initializer_list<Sizes> parts) {
  Sizes out;
  for (const Sizes& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

}  // namespace

Tensor detail::correlated(const char* what, const Tensor& x, const Tensor& weight,
                          const Windows& w, int64_t groups) {
  const int64_t axes = int64_t(w.axes());
  const Size n = x.size(0);
  const int64_t o = weight.size(0), cg = weight.size(1), og = o / groups;
  const Tensor windows = detail::windows_of_axes(x, w);  // (N, C, out..., kernel...)
  const Sizes all = windows.sizes(), ones(size_t(axes), 1), kernel(w.kernel);
  const Sizes out(all.begin() + 2, all.begin() + 2 + axes);
  // Pixels last: what the images' gradient stores of each tap are planes, which it walks in order.
  Axes order{0, 1, 2, 3}, summed{3};
  for (int64_t i = 0; i < axes; i++) order.push_back(4 + axes + i), summed.push_back(4 + i);
  for (int64_t i = 0; i < axes; i++) order.push_back(4 + i);
  const Tensor in = windows.reshape(joined({{n, groups, 1, cg}, out, kernel})).permute(order);
  const Tensor ker = weight.reshape(joined({{1, groups, og, cg}, kernel, ones}));
  return detail::own_sum(what, products(what, in, ker), summed).reshape(joined({{n, o}, out}));
}

namespace {

void require_operands(const char* what, const Tensor& x, const Tensor& weight, size_t axes) {
  if (x.dim() != int64_t(axes) + 2 || weight.dim() != int64_t(axes) + 2)
    fail<ShapeError>("{}: input {} and weight {} must have {} axes", what, text(x.sizes()),
                     text(weight.sizes()), axes + 2);
  detail::require_numbers(what, {x.size(1)});
  detail::require_numbers(what, weight.sizes());
  detail::require_same_device(what, x, weight);
}

void require_bias(const char* what, const Tensor& bias, int64_t channels) {
  if (bias.defined() && bias.sizes() != Sizes{channels})
    fail<ShapeError>("{}: bias {} for {} output channels", what, text(bias.sizes()), channels);
}

Tensor with_bias(const Tensor& x, const Tensor& bias) {
  if (!bias.defined()) return x;
  Sizes along(size_t(x.dim()), 1);
  along[1] = bias.size(0);
  return x + bias.reshape(along);
}

PerAxis kernel_of(const Tensor& weight) {
  const Sizes all = weight.sizes();
  return PerAxis(std::vector<int64_t>(Sizes(all.begin() + 2, all.end())));
}

// Where a window of these numbers goes over a tensor.
struct Convolution {
  const char* function;
  size_t axes;
  PerAxis stride, dilation;
  int64_t groups;

  Windows windows(const Tensor& weight) const {
    return detail::windows_from(function, kernel_of(weight), stride, dilation, axes);
  }
};

Tensor convolution(const Convolution& c, const Tensor& image, const Tensor& kernel,
                   const Tensor& bias, const Padding& padding) {
  require_operands(c.function, image, kernel, c.axes);
  const Tensor given = detail::factor(image), weight = detail::factor(kernel);
  const int64_t channels = given.size(1), o = weight.size(0), groups = c.groups;
  if (groups < 1 || channels % groups || o % groups || weight.size(1) * groups != channels) {
    fail<ShapeError>("{}: {} input channels, weight {} and {} groups do not fit", c.function,
                     channels, text(weight.sizes()), groups);
  }
  require_bias(c.function, bias, o);
  const Windows w = c.windows(weight);
  const DType t = promote(given.dtype(), weight.dtype()), wide = accumulator(t);
  const Tensor x = detail::padded(given.cast(wide), detail::sides_of(c.function, padding, w));
  detail::require_windows(c.function, x.sizes(), w);
  const Tensor sum = detail::correlated(c.function, x, weight.cast(wide), w, groups);
  return with_bias(is_float(t) ? sum.cast(t) : sum, detail::factor(bias));
}

// Integers have no gradient, and so none of what is one.
void require_floats(const char* what, DType t) {
  if (!is_float(t))
    fail<InvalidArgument>("{}: not defined on {}: cast() to a float", what, name(t));
}

// The extents of what a transposed convolution gives.
Sizes grown(const Convolution& c, const Tensor& x, const Windows& w,
            const std::vector<int64_t>& padding, const std::vector<int64_t>& output_padding) {
  Sizes out;
  for (size_t i = 0; i < c.axes; i++) {
    const int64_t more = output_padding[i], most = std::max(w.stride[i], w.dilation[i]);
    if (more < 0 || more >= most)
      fail<InvalidArgument>("{}: output_padding {} must be below the stride {} or the dilation {}",
                            c.function, by(output_padding), by(w.stride), by(w.dilation));
    const Size n = x.size(int64_t(i) + 2);
    const Size extent = (n - 1) * w.stride[i] - 2 * padding[i] + w.reach(i) + more;
    if (n.min() < 1 || extent.min() < 1)
      fail<ShapeError>("{}: nothing is left of {} with a {} kernel and padding {}", c.function,
                       text(x.sizes()), by(w.kernel), by(padding));
    out.push_back(extent);
  }
  return out;
}

Tensor transposed(const Convolution& c, const Tensor& image, const Tensor& kernel,
                  const Tensor& bias, const PerAxis& given_padding, const PerAxis& more) {
  require_operands(c.function, image, kernel, c.axes);
  const Tensor given = detail::factor(image), weight = detail::factor(kernel);
  const int64_t channels = given.size(1), groups = c.groups;
  if (groups < 1 || channels % groups || weight.size(0) != channels)
    fail<ShapeError>("{}: {} input channels, weight {} and {} groups do not fit", c.function,
                     channels, text(weight.sizes()), groups);
  const int64_t o = weight.size(1) * groups;
  require_bias(c.function, bias, o);
  const Windows w = c.windows(weight);
  const std::vector<int64_t> padding = per_axis(c.function, "a padding", given_padding, c.axes);
  const std::vector<int64_t> output_padding =
      per_axis(c.function, "an output_padding", more, c.axes);
  const Sides sides = detail::symmetric(padding);
  detail::require_sides(c.function, sides);
  detail::require_positive(c.function, w);
  const DType t = promote(given.dtype(), weight.dtype()), wide = accumulator(t);
  require_floats(c.function, t);
  const Tensor x = given.cast(wide), ker = weight.cast(wide);
  const Sizes sizes = joined({{x.size(0), o}, grown(c, x, w, padding, output_padding)});
  const Tensor y = detail::adjoint(sizes, x, [&](const Tensor& image) {
    const Tensor out = detail::correlated(c.function, detail::padded(image, sides), ker, w, groups);
    std::vector<std::pair<Size, Size>> part;  // an output_padding may make room for more windows
    for (const Size& s : x.sizes()) part.emplace_back(0, s);
    return out.shrink(part);
  });
  return with_bias(y.cast(t), detail::factor(bias));
}

}  // namespace

Tensor Tensor::conv1d(const Tensor& weight, const Tensor& bias, const PerAxis& stride,
                      const Padding& padding, const PerAxis& dilation, int64_t groups) const {
  return convolution({"conv1d", 1, stride, dilation, groups}, *this, weight, bias, padding);
}
Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const PerAxis& stride,
                      const Padding& padding, const PerAxis& dilation, int64_t groups) const {
  return convolution({"conv2d", 2, stride, dilation, groups}, *this, weight, bias, padding);
}
Tensor Tensor::conv3d(const Tensor& weight, const Tensor& bias, const PerAxis& stride,
                      const Padding& padding, const PerAxis& dilation, int64_t groups) const {
  return convolution({"conv3d", 3, stride, dilation, groups}, *this, weight, bias, padding);
}

#define TUFF_TRANSPOSED(function, axes)                                                          \
  Tensor Tensor::function(const Tensor& weight, const Tensor& bias, const PerAxis& stride,       \
                          const PerAxis& padding, const PerAxis& output_padding, int64_t groups, \
                          const PerAxis& dilation) const {                                       \
    return transposed({#function, axes, stride, dilation, groups}, *this, weight, bias, padding, \
                      output_padding);                                                           \
  }
TUFF_TRANSPOSED(conv_transpose1d, 1)
TUFF_TRANSPOSED(conv_transpose2d, 2)
TUFF_TRANSPOSED(conv_transpose3d, 3)
#undef TUFF_TRANSPOSED

namespace {

// (N, C, image...) -> (N, C * window, windows)
Tensor columns(const Tensor& x, const Windows& w, const Sides& sides) {
  const Tensor t = detail::windows_of_axes(detail::padded(x, sides), w);
  const int64_t n = int64_t(w.axes());
  Axes order{0, 1};
  for (int64_t i = 0; i < n; i++) order.push_back(2 + n + i);
  for (int64_t i = 0; i < n; i++) order.push_back(2 + i);
  const Sizes all = t.sizes();
  const std::span<const Size> extents(all);
  return t.permute(order).reshape({all[0], all[1] * detail::product(extents.subspan(size_t(2 + n))),
                                   detail::product(extents.subspan(2, size_t(n)))});
}

}  // namespace

Tensor TensorWindows::im2col(const PerAxis& kernel, const PerAxis& dilation,
                             const PerAxis& padding, const PerAxis& stride) const {
  const Tensor& x = detail::self(this);
  if (x.dim() < 3)
    fail<ShapeError>("im2col: {} is not (batch, channels, ...)", text(x.sizes()));
  const size_t axes = size_t(x.dim()) - 2;
  const Windows w = detail::windows_from("im2col", kernel, stride, dilation, axes);
  const Sides sides = detail::symmetric(per_axis("im2col", "a padding", padding, axes));
  detail::require_sides("im2col", sides);
  detail::require_windows("im2col", detail::padded(x, sides).sizes(), w);
  return columns(x, w, sides);
}

Tensor TensorWindows::fold(const PerAxis& output, const PerAxis& kernel, const PerAxis& dilation,
                           const PerAxis& padding, const PerAxis& stride) const {
  const Tensor& x = detail::self(this);
  const size_t axes = output.values().size();
  const Windows w = detail::windows_from("fold", kernel, stride, dilation, axes);
  const Sides sides = detail::symmetric(per_axis("fold", "a padding", padding, axes));
  detail::require_sides("fold", sides);
  require_floats("fold", x.dtype());
  if (axes == 0 || x.dim() != 3)
    fail<ShapeError>("fold: {} is not (batch, channels * window, windows) of {} axes",
                     text(x.sizes()), axes);
  detail::require_numbers("fold", {x.size(1), x.size(2)});
  const Sizes out(output.values());
  Sizes around = out;
  for (size_t i = 0; i < axes; i++) around[i] += 2 * sides[i].first;
  detail::require_windows("fold", around, w);
  int64_t window = 1, count = 1;
  for (size_t i = 0; i < axes; i++) {
    window *= w.kernel[i];
    count *= (int64_t(around[i]) - w.reach(i)) / w.stride[i] + 1;
  }
  if (x.size(1) % window != 0 || x.size(2) != count)
    fail<ShapeError>("fold: {} is not of the {} windows of {} elements that {} has",
                     text(x.sizes()), count, window, text(out));
  const Sizes image = joined({{x.size(0), x.size(1) / window}, out});
  const auto windows = [&](const Tensor& t) { return columns(t, w, sides); };
  return detail::adjoint(image, x.cast(accumulator(x.dtype())), windows).cast(x.dtype());
}

}  // namespace tuff
