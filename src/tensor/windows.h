// Windows over the last axes, as movement alone, and what functions of windows are given. Called by
// convolution, pooling, resize, views and nn's layers. Must never know what is done with a window's
// elements.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::detail {

// One number for each of n axes; InvalidArgument naming function and noun for another count.
std::vector<int64_t> per_axis(const char* what, const char* noun, const PerAxis& given, size_t n);
// "3x5"
std::string by(const std::vector<int64_t>& extents);

struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  size_t axes() const { return kernel.size(); }
  int64_t reach(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};
Windows windows_from(const char* what, const PerAxis& kernel, const PerAxis& stride,
                     const PerAxis& dilation, size_t n);
// InvalidArgument unless all numbers are.
void require_positive(const char* what, const Windows& w);
// The same, and ShapeError for a window that is larger than the last axes of a padded input.
void require_windows(const char* what, const Sizes& padded, const Windows& w);

// (before, after) of each axis.
using Sides = std::vector<std::pair<int64_t, int64_t>>;
Sides symmetric(const std::vector<int64_t>& padding);
// InvalidArgument for negative numbers, and for "same" with a stride.
Sides sides_of(const char* what, const Padding& padding, const Windows& w);
void require_sides(const char* what, const Sides& sides);
// Around the last axes.
Tensor padded(const Tensor& x, const Sides& sides, Number fill = 0);

// Windows along one axis: (..., n, ...) -> (..., k, windows, ...).
Tensor windows_of_axis(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation);
// Along the last axes: (..., H, W) -> (..., OH, OW, KH, KW).
Tensor windows_of_axes(const Tensor& x, const Windows& w);


// The sums of products of an image, padded, with weight (O, C/groups, kernel): (N, O, windows...).
Tensor correlated(const char* what, const Tensor& x, const Tensor& weight, const Windows& w,
                  int64_t groups);

}  // namespace tuff::detail
