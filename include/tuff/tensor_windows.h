// TensorWindows: pools, resizing and sampling of the last axes: a part of class Tensor, which
// inherits it. Users include tensor.h. Must never know how kernels are made of windows.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// What windows over the last axes see: one axis (..., L), two (..., H, W), three (..., D, H, W).
/// ShapeError for fewer axes and for windows that do not fit. Windows are views: their elements are
/// never copied together.
class TensorWindows {
 public:
  /// The largest of each window; the stride is the kernel's if not given. Padding counts as -inf,
  /// of at most half the kernel. With ceil_mode a window may hang over the end. Where a window has
  /// several largest elements they share the gradient.
  Tensor max_pool1d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    const PerAxis& dilation = 1, bool ceil_mode = false) const;
  /// As max_pool1d(), of (..., H, W).
  Tensor max_pool2d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    const PerAxis& dilation = 1, bool ceil_mode = false) const;
  /// As max_pool1d(), of (..., D, H, W).
  Tensor max_pool3d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    const PerAxis& dilation = 1, bool ceil_mode = false) const;
  /// The same, and where each stood: the row-major position in the axes that are pooled, of equals
  /// (and of NaN) the first, as I32, or I64 where there are more than 2^31 - 1 of them.
  std::pair<Tensor, Tensor> max_pool1d_with_indices(const PerAxis& kernel,
                                                    const PerAxis& stride = {},
                                                    const PerAxis& padding = 0,
                                                    const PerAxis& dilation = 1,
                                                    bool ceil_mode = false) const;
  /// As max_pool1d_with_indices(), of (..., H, W).
  std::pair<Tensor, Tensor> max_pool2d_with_indices(const PerAxis& kernel,
                                                    const PerAxis& stride = {},
                                                    const PerAxis& padding = 0,
                                                    const PerAxis& dilation = 1,
                                                    bool ceil_mode = false) const;
  /// As max_pool1d_with_indices(), of (..., D, H, W).
  std::pair<Tensor, Tensor> max_pool3d_with_indices(const PerAxis& kernel,
                                                    const PerAxis& stride = {},
                                                    const PerAxis& padding = 0,
                                                    const PerAxis& dilation = 1,
                                                    bool ceil_mode = false) const;
  /// max_pool backwards: each element where its index, as max_pool2d_with_indices() gives them,
  /// says, zeros elsewhere; of elements that several windows chose the mean. `output_size` tells
  /// apart what the pool made the same of; (n - 1) stride - 2 padding + kernel if not given.
  /// InvalidArgument for one that is a stride or more away from that, and for integers; IndexError
  /// for an index beyond it.
  Tensor max_unpool1d(const Tensor& indices, const PerAxis& kernel, const PerAxis& stride = {},
                      const PerAxis& padding = 0, const PerAxis& output_size = {}) const;
  /// As max_unpool1d(), of (..., H, W).
  Tensor max_unpool2d(const Tensor& indices, const PerAxis& kernel, const PerAxis& stride = {},
                      const PerAxis& padding = 0, const PerAxis& output_size = {}) const;
  /// As max_unpool1d(), of (..., D, H, W).
  Tensor max_unpool3d(const Tensor& indices, const PerAxis& kernel, const PerAxis& stride = {},
                      const PerAxis& padding = 0, const PerAxis& output_size = {}) const;
  /// As max_pool; divided by the window's size, by what of it lies inside if not
  /// count_include_pad, or by the override (InvalidArgument: 0).
  Tensor avg_pool1d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    bool ceil_mode = false, bool count_include_pad = true,
                    std::optional<int64_t> divisor_override = {}) const;
  /// As avg_pool1d(), of (..., H, W).
  Tensor avg_pool2d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    bool ceil_mode = false, bool count_include_pad = true,
                    std::optional<int64_t> divisor_override = {}) const;
  /// As avg_pool1d(), of (..., D, H, W).
  Tensor avg_pool3d(const PerAxis& kernel, const PerAxis& stride = {}, const PerAxis& padding = 0,
                    bool ceil_mode = false, bool count_include_pad = true,
                    std::optional<int64_t> divisor_override = {}) const;
  /// The p-th root of the sum of p-th powers, without absolute values: NaN where that sum is
  /// negative and p is no 1. InvalidArgument: p is 0.
  Tensor lp_pool1d(double p, const PerAxis& kernel, const PerAxis& stride = {},
                   bool ceil_mode = false) const;
  /// As lp_pool1d(), of (..., H, W).
  Tensor lp_pool2d(double p, const PerAxis& kernel, const PerAxis& stride = {},
                   bool ceil_mode = false) const;
  /// As lp_pool1d(), of (..., D, H, W).
  Tensor lp_pool3d(double p, const PerAxis& kernel, const PerAxis& stride = {},
                   bool ceil_mode = false) const;
  /// The means of as many windows as `output` says: window i of n elements is from floor(i n / out)
  /// to ceil((i + 1) n / out). -1 keeps an extent. InvalidArgument for an output below that.
  Tensor adaptive_avg_pool1d(const PerAxis& output) const;
  /// As adaptive_avg_pool1d(), of (..., H, W).
  Tensor adaptive_avg_pool2d(const PerAxis& output) const;
  /// As adaptive_avg_pool1d(), of (..., D, H, W).
  Tensor adaptive_avg_pool3d(const PerAxis& output) const;
  /// The largest of these windows, with ties as max_pool1d().
  Tensor adaptive_max_pool1d(const PerAxis& output) const;
  /// As adaptive_max_pool1d(), of (..., H, W).
  Tensor adaptive_max_pool2d(const PerAxis& output) const;
  /// As adaptive_max_pool1d(), of (..., D, H, W).
  Tensor adaptive_max_pool3d(const PerAxis& output) const;
  /// The same, with indices as max_pool1d_with_indices().
  std::pair<Tensor, Tensor> adaptive_max_pool1d_with_indices(const PerAxis& output) const;
  /// As adaptive_max_pool1d_with_indices(), of (..., H, W).
  std::pair<Tensor, Tensor> adaptive_max_pool2d_with_indices(const PerAxis& output) const;
  /// As adaptive_max_pool1d_with_indices(), of (..., D, H, W).
  std::pair<Tensor, Tensor> adaptive_max_pool3d_with_indices(const PerAxis& output) const;

  /// (N, C, ...) with one to three axes resized: to `size`, or by scale_factor (one for all, or one
  /// for each). "nearest" (rounded down, as PyTorch does), "nearest-exact", "area" (the means of
  /// adaptive_avg_pool), "linear", "bilinear", "trilinear" (by the number of axes), "bicubic"
  /// (Keys, 1981, a = -0.75; two axes). align_corners: the first and the last element stay where
  /// they are, instead of the edges of the outermost ones. antialias widens the weights of bilinear
  /// and bicubic ones by the factor by which an axis shrinks. F16 and BF16 are computed in F32.
  /// InvalidArgument for another mode, for options that a mode has not, and unless one of size and
  /// scale_factor is given.
  Tensor interpolate(const PerAxis& size, const std::vector<double>& scale_factor = {},
                     std::string_view mode = "nearest", bool align_corners = false,
                     bool antialias = false) const;
  /// Coordinates of grid_sample() for affine maps: theta (N, 2, 3) and size (N, C, H, W) give
  /// (N, H, W, 2), (N, 3, 4) and (N, C, D, H, W) give (N, D, H, W, 3).
  static Tensor affine_grid(const Tensor& theta, const Sizes& size, bool align_corners = false);
  /// (N, C, H, W) at the places of a grid (N, OH, OW, 2) of (x, y) in -1..1, or (N, C, D, H, W) at
  /// (N, OD, OH, OW, 3): (N, C, OH, OW). -1 and 1 are the edges of the outermost elements, or their
  /// centres if align_corners. Mode "bilinear" (of three axes too), "nearest" (halves to even),
  /// "bicubic" (two axes). Outside are "zeros", the "border", or its "reflection" (padding_mode).
  /// InvalidArgument for other words.
  Tensor grid_sample(const Tensor& grid, std::string_view mode = "bilinear",
                     std::string_view padding_mode = "zeros", bool align_corners = false) const;

  /// Windows over the axes behind (N, C): (N, C * window, windows), what a convolution multiplies
  /// its weight with (PyTorch's functional unfold).
  Tensor im2col(const PerAxis& kernel, const PerAxis& dilation = 1, const PerAxis& padding = 0,
                const PerAxis& stride = 1) const;
  /// The sums of what im2col() would take from each element of (N, C, output...): its gradient.
  /// InvalidArgument for integers.
  Tensor fold(const PerAxis& output, const PerAxis& kernel, const PerAxis& dilation = 1,
              const PerAxis& padding = 0, const PerAxis& stride = 1) const;
  /// (..., C r r, H, W) to (..., C, H r, W r) (Shi et al., 2016).
  Tensor pixel_shuffle(int64_t factor) const;
  /// pixel_shuffle() backwards.
  Tensor pixel_unshuffle(int64_t factor) const;
  /// (N, groups * C, ...) to (N, C * groups, ...): channels of all groups in turn (Zhang et al.,
  /// 2018).
  Tensor channel_shuffle(int64_t groups) const;

 protected:
  TensorWindows() = default;
  ~TensorWindows() = default;
  TensorWindows(const TensorWindows&) = default;
  TensorWindows& operator=(const TensorWindows&) = default;
};

}  // namespace tuff
