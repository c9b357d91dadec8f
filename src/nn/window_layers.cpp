#include <tuff/window_layers.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/windows.h"

namespace tuff::nn {
namespace {

// Uniform in +-1/sqrt(inputs of an output) where `fan` channels and a window lead to one.
void draw_uniform(Tensor& weight, Tensor& bias, const Sizes& sizes, int64_t channels, int64_t fan,
                  bool with_bias, const TensorOptions& options) {
  TensorOptions o = options;
  o.requires_grad = true;
  if (std::ranges::any_of(sizes, [](const Size& n) { return n.max() < 1; }))
    fail<InvalidArgument>("a convolution of weights {}: channels and windows are at least 1",
                          detail::text(sizes));
  const double bound = 1.0 / std::sqrt(double(fan));
  weight = Tensor::uniform(sizes, -bound, bound, o);
  if (with_bias) bias = Tensor::uniform({channels}, -bound, bound, o);
}

void require_groups(const char* layer, int64_t groups, int64_t in, int64_t out) {
  if (groups < 1 || in % groups || out % groups)
    fail<InvalidArgument>("{}: {} groups do not divide {} and {} channels", layer, groups, in, out);
}

Sizes weight_sizes(int64_t first, int64_t second, const std::vector<int64_t>& kernel) {
  Sizes sizes{first, second};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  return sizes;
}

int64_t product(const std::vector<int64_t>& numbers) {
  int64_t n = 1;
  for (const int64_t i : numbers) n *= i;
  return n;
}

}  // namespace

void Convolution::draw(const char* layer, int64_t in, int64_t out, const PerAxis& kernel,
                       size_t axes, bool with_bias, const TensorOptions& options) {
  require_groups(layer, groups, in, out);
  const std::vector<int64_t> k = detail::per_axis(layer, "a kernel", kernel, axes);
  draw_uniform(weight, bias, weight_sizes(out, in / groups, k), out, in / groups * product(k),
               with_bias, options);
}

std::pair<Tensor, Padding> Convolution::padded(const Tensor& x) const {
  if (padding_mode == PadMode::Constant || x.dim() < 3) return {x, padding};
  const size_t axes = size_t(weight.dim()) - 2;
  const Sizes all = weight.sizes();
  const std::vector<int64_t> kernel = Sizes(all.begin() + 2, all.end());
  const detail::Windows w =
      detail::windows_from("padding_mode", kernel, stride, dilation, axes);
  const detail::Sides sides = detail::sides_of("padding_mode", padding, w);
  std::vector<int64_t> list;
  for (size_t i = sides.size(); i-- > 0;)
    list.insert(list.end(), {sides[i].first, sides[i].second});
  return {x.pad(list, padding_mode), Padding()};
}

void TransposedConvolution::draw(const char* layer, int64_t in, int64_t out,
                                 const PerAxis& kernel, size_t axes, bool with_bias,
                                 const TensorOptions& options) {
  require_groups(layer, groups, in, out);
  const std::vector<int64_t> k = detail::per_axis(layer, "a kernel", kernel, axes);
  draw_uniform(weight, bias, weight_sizes(in, out / groups, k), out, out / groups * product(k),
               with_bias, options);
}

Tensor MaxUnpool::operator()(const Tensor& x, const Tensor& indices,
                             const PerAxis& output_size) const {
  return axes_ == 1   ? x.max_unpool1d(indices, kernel, stride, padding, output_size)
         : axes_ == 2 ? x.max_unpool2d(indices, kernel, stride, padding, output_size)
                      : x.max_unpool3d(indices, kernel, stride, padding, output_size);
}

LocalResponseNorm::LocalResponseNorm(int64_t size_, double alpha_, double beta_, double k_)
    : size(size_), alpha(alpha_), beta(beta_), k(k_) {
  if (size < 1) fail<InvalidArgument>("LocalResponseNorm: {} channels", size);
}
Tensor LocalResponseNorm::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& given) {
    if (given.dim() < 3)
      fail<ShapeError>("LocalResponseNorm: {} is not (batch, channels, ...)",
                       detail::text(given.sizes()));
    return detail::computed_wide(given, [&](const Tensor& in) {
      const Tensor squares = detail::pad_axis(in.square(), 1, size / 2, (size - 1) / 2);
      const Tensor mean = squares.unfold(1, size, 1).mean({-1});
      return in / (mean * alpha + k).pow(beta);
    });
  });
}

std::vector<int64_t> padding_of(const char* layer, const PerAxis& padding, size_t axes) {
  std::vector<int64_t> sides = padding.values();
  if (sides.size() == 1) sides.resize(2 * axes, sides[0]);
  if (sides.size() != 2 * axes)
    fail<InvalidArgument>("{}: padding of {} numbers: give one, or {} (before, after) from the "
                          "last axis on",
                          layer, sides.size(), 2 * axes);
  return sides;
}

}  // namespace tuff::nn
