// Layers of windows over the last axes: convolutions, pools, padding, resizing, shuffles. Their
// functions are Tensor's (tensor.h, tensor_windows.h); called through nn.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tuff/module.h>
#include <tuff/tensor.h>

namespace tuff::nn {

/// What Conv1d, Conv2d and Conv3d have: weight (out, in/groups, kernel), uniform in
/// +-1/sqrt(in/groups * kernel), and what stands around an image where it is padded.
struct Convolution : Module {
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  PerAxis stride;
  Padding padding;
  PerAxis dilation;
  int64_t groups = 1;
  PadMode padding_mode = PadMode::Constant;

 protected:
  Convolution(Tensor weight, Tensor bias, PerAxis stride, Padding padding, PerAxis dilation,
              int64_t groups, PadMode padding_mode)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        stride(std::move(stride)),
        padding(std::move(padding)),
        dilation(std::move(dilation)),
        groups(groups),
        padding_mode(padding_mode) {}
  // Draws weight and bias. InvalidArgument unless groups divides both counts of channels.
  void draw(const char* layer, int64_t in, int64_t out, const PerAxis& kernel, size_t axes,
            bool with_bias, const TensorOptions& options);
  // The image with what padding_mode puts around it, and what is left to pad with zeros.
  std::pair<Tensor, Padding> padded(const Tensor& x) const;
};

#define TUFF_CONVOLUTION(Name, function, axes)                                                    \
  struct Name : Convolution {                                                                     \
    Name(int64_t in_channels, int64_t out_channels, const PerAxis& kernel, PerAxis stride = 1,    \
         Padding padding = 0, bool bias = true, const TensorOptions& options = {},                \
         PerAxis dilation = 1, int64_t groups = 1, PadMode padding_mode = PadMode::Constant)      \
        : Name(Tensor(), Tensor(), std::move(stride), std::move(padding), std::move(dilation),    \
               groups, padding_mode) {                                                            \
      draw(#Name, in_channels, out_channels, kernel, axes, bias, options);                        \
    }                                                                                             \
    Name(Tensor weight, Tensor bias, PerAxis stride = 1, Padding padding = 0,                     \
         PerAxis dilation = 1, int64_t groups = 1, PadMode padding_mode = PadMode::Constant)      \
        : Convolution(std::move(weight), std::move(bias), std::move(stride), std::move(padding),  \
                      std::move(dilation), groups, padding_mode) {}                               \
    Tensor operator()(const Tensor& x) const {                                                    \
      return run(x, [&](const Tensor& in) {                                                       \
        const auto [image, around] = padded(in);                                                  \
        return image.function(weight, bias, stride, around, dilation, groups);                    \
      });                                                                                         \
    }                                                                                             \
  }
/// Tensor::conv1d() of (N, C, L).
TUFF_CONVOLUTION(Conv1d, conv1d, 1);
/// Tensor::conv2d() of (N, C, H, W).
TUFF_CONVOLUTION(Conv2d, conv2d, 2);
/// Tensor::conv3d() of (N, C, D, H, W).
TUFF_CONVOLUTION(Conv3d, conv3d, 3);
#undef TUFF_CONVOLUTION

/// What ConvTranspose1d, ConvTranspose2d and ConvTranspose3d have: weight (in, out/groups, kernel),
/// uniform in +-1/sqrt(out/groups * kernel).
struct TransposedConvolution : Module {
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  PerAxis stride, padding, output_padding;
  int64_t groups = 1;
  PerAxis dilation;

 protected:
  TransposedConvolution(Tensor weight, Tensor bias, PerAxis stride, PerAxis padding,
                        PerAxis output_padding, int64_t groups, PerAxis dilation)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        stride(std::move(stride)),
        padding(std::move(padding)),
        output_padding(std::move(output_padding)),
        groups(groups),
        dilation(std::move(dilation)) {}
  void draw(const char* layer, int64_t in, int64_t out, const PerAxis& kernel, size_t axes,
            bool with_bias, const TensorOptions& options);
};

#define TUFF_TRANSPOSED(Name, function, axes)                                                      \
  struct Name : TransposedConvolution {                                                            \
    Name(int64_t in_channels, int64_t out_channels, const PerAxis& kernel, PerAxis stride = 1,     \
         PerAxis padding = 0, PerAxis output_padding = 0, int64_t groups = 1, bool bias = true,    \
         PerAxis dilation = 1, const TensorOptions& options = {})                                  \
        : Name(Tensor(), Tensor(), std::move(stride), std::move(padding),                          \
               std::move(output_padding), groups, std::move(dilation)) {                           \
      draw(#Name, in_channels, out_channels, kernel, axes, bias, options);                         \
    }                                                                                              \
    Name(Tensor weight, Tensor bias, PerAxis stride = 1, PerAxis padding = 0,                      \
         PerAxis output_padding = 0, int64_t groups = 1, PerAxis dilation = 1)                     \
        : TransposedConvolution(std::move(weight), std::move(bias), std::move(stride),             \
                                std::move(padding), std::move(output_padding), groups,             \
                                std::move(dilation)) {}                                            \
    Tensor operator()(const Tensor& x) const {                                                     \
      return run(x, [&](const Tensor& in) {                                                        \
        return in.function(weight, bias, stride, padding, output_padding, groups, dilation);       \
      });                                                                                          \
    }                                                                                              \
  }
/// Tensor::conv_transpose1d().
TUFF_TRANSPOSED(ConvTranspose1d, conv_transpose1d, 1);
/// Tensor::conv_transpose2d().
TUFF_TRANSPOSED(ConvTranspose2d, conv_transpose2d, 2);
/// Tensor::conv_transpose3d().
TUFF_TRANSPOSED(ConvTranspose3d, conv_transpose3d, 3);
#undef TUFF_TRANSPOSED

#define TUFF_MAX_POOL(Name, function)                                                              \
  struct Name : Module {                                                                           \
    explicit Name(PerAxis kernel, PerAxis stride = {}, PerAxis padding = 0, PerAxis dilation = 1,  \
                  bool ceil_mode = false)                                                          \
        : kernel(std::move(kernel)),                                                               \
          stride(std::move(stride)),                                                               \
          padding(std::move(padding)),                                                             \
          dilation(std::move(dilation)),                                                           \
          ceil_mode(ceil_mode) {}                                                                  \
    Tensor operator()(const Tensor& x) const {                                                     \
      return run(x, [&](const Tensor& in) {                                                        \
        return in.function(kernel, stride, padding, dilation, ceil_mode);                          \
      });                                                                                          \
    }                                                                                              \
    /* The same, and where each stood. */                                                          \
    std::pair<Tensor, Tensor> with_indices(const Tensor& x) const {                                \
      return x.function##_with_indices(kernel, stride, padding, dilation, ceil_mode);              \
    }                                                                                              \
    void members(Members&) const override {}                                                       \
    PerAxis kernel, stride, padding, dilation;                                                     \
    bool ceil_mode;                                                                                \
  }
/// Tensor::max_pool1d().
TUFF_MAX_POOL(MaxPool1d, max_pool1d);
/// Tensor::max_pool2d().
TUFF_MAX_POOL(MaxPool2d, max_pool2d);
/// Tensor::max_pool3d().
TUFF_MAX_POOL(MaxPool3d, max_pool3d);
#undef TUFF_MAX_POOL

/// What MaxUnpool1d, MaxUnpool2d and MaxUnpool3d have.
struct MaxUnpool : Module {
  /// What a MaxPool's with_indices() gave back in its places, as Tensor::max_unpool1d() does.
  Tensor operator()(const Tensor& x, const Tensor& indices, const PerAxis& output_size = {}) const;
  void members(Members&) const override {}
  PerAxis kernel, stride, padding;

 protected:
  MaxUnpool(int64_t axes, PerAxis kernel, PerAxis stride, PerAxis padding)
      : kernel(std::move(kernel)),
        stride(std::move(stride)),
        padding(std::move(padding)),
        axes_(axes) {}

 private:
  int64_t axes_;
};

#define TUFF_MAX_UNPOOL(Name, axes)                                                 \
  struct Name : MaxUnpool {                                                         \
    explicit Name(PerAxis kernel, PerAxis stride = {}, PerAxis padding = 0)         \
        : MaxUnpool(axes, std::move(kernel), std::move(stride), std::move(padding)) \
    {}                                                                              \
  }
/// Tensor::max_unpool1d().
TUFF_MAX_UNPOOL(MaxUnpool1d, 1);
/// Tensor::max_unpool2d().
TUFF_MAX_UNPOOL(MaxUnpool2d, 2);
/// Tensor::max_unpool3d().
TUFF_MAX_UNPOOL(MaxUnpool3d, 3);
#undef TUFF_MAX_UNPOOL

#define TUFF_AVG_POOL(Name, function)                                                             \
  struct Name : Module {                                                                          \
    explicit Name(PerAxis kernel, PerAxis stride = {}, PerAxis padding = 0,                       \
                  bool ceil_mode = false, bool count_include_pad = true,                          \
                  std::optional<int64_t> divisor_override = {})                                   \
        : kernel(std::move(kernel)),                                                              \
          stride(std::move(stride)),                                                              \
          padding(std::move(padding)),                                                            \
          ceil_mode(ceil_mode),                                                                   \
          count_include_pad(count_include_pad),                                                   \
          divisor_override(divisor_override) {}                                                   \
    Tensor operator()(const Tensor& x) const {                                                    \
      return run(x, [&](const Tensor& in) {                                                       \
        return in.function(kernel, stride, padding, ceil_mode, count_include_pad,                 \
                           divisor_override);                                                     \
      });                                                                                         \
    }                                                                                             \
    void members(Members&) const override {}                                                      \
    PerAxis kernel, stride, padding;                                                              \
    bool ceil_mode, count_include_pad;                                                            \
    std::optional<int64_t> divisor_override;                                                      \
  }
/// Tensor::avg_pool1d().
TUFF_AVG_POOL(AvgPool1d, avg_pool1d);
/// Tensor::avg_pool2d().
TUFF_AVG_POOL(AvgPool2d, avg_pool2d);
/// Tensor::avg_pool3d().
TUFF_AVG_POOL(AvgPool3d, avg_pool3d);
#undef TUFF_AVG_POOL

#define TUFF_LP_POOL(Name, function)                                                              \
  struct Name : Module {                                                                          \
    explicit Name(double p, PerAxis kernel, PerAxis stride = {}, bool ceil_mode = false)          \
        : p(p),                                                                                   \
          kernel(std::move(kernel)),                                                              \
          stride(std::move(stride)),                                                              \
          ceil_mode(ceil_mode) {}                                                                 \
    Tensor operator()(const Tensor& x) const {                                                    \
      return run(x, [&](const Tensor& in) {                                                       \
        return in.function(p, kernel, stride, ceil_mode);                                         \
      });                                                                                         \
    }                                                                                             \
    void members(Members&) const override {}                                                      \
    double p;                                                                                     \
    PerAxis kernel, stride;                                                                       \
    bool ceil_mode;                                                                               \
  }
/// Tensor::lp_pool1d().
TUFF_LP_POOL(LPPool1d, lp_pool1d);
/// Tensor::lp_pool2d().
TUFF_LP_POOL(LPPool2d, lp_pool2d);
/// Tensor::lp_pool3d().
TUFF_LP_POOL(LPPool3d, lp_pool3d);
#undef TUFF_LP_POOL

// Those that one list of numbers shapes.
#define TUFF_WINDOWS_BY(Name, argument, call)                             \
  struct Name : Module {                                                  \
    explicit Name(PerAxis argument) : argument(std::move(argument)) {}    \
    Tensor operator()(const Tensor& x) const {                            \
      return run(x, [&](const Tensor& in) { return call; });              \
    }                                                                     \
    void members(Members&) const override {}                              \
    PerAxis argument;                                                     \
  }
/// Tensor::adaptive_avg_pool1d().
TUFF_WINDOWS_BY(AdaptiveAvgPool1d, output, in.adaptive_avg_pool1d(output));
/// Tensor::adaptive_avg_pool2d().
TUFF_WINDOWS_BY(AdaptiveAvgPool2d, output, in.adaptive_avg_pool2d(output));
/// Tensor::adaptive_avg_pool3d().
TUFF_WINDOWS_BY(AdaptiveAvgPool3d, output, in.adaptive_avg_pool3d(output));
/// Tensor::adaptive_max_pool1d().
TUFF_WINDOWS_BY(AdaptiveMaxPool1d, output, in.adaptive_max_pool1d(output));
/// Tensor::adaptive_max_pool2d().
TUFF_WINDOWS_BY(AdaptiveMaxPool2d, output, in.adaptive_max_pool2d(output));
/// Tensor::adaptive_max_pool3d().
TUFF_WINDOWS_BY(AdaptiveMaxPool3d, output, in.adaptive_max_pool3d(output));
#undef TUFF_WINDOWS_BY

/// Around the last axes of x: one number for all sides, or (before, after) from the last axis on,
/// as Tensor::pad() takes them. InvalidArgument for another count.
std::vector<int64_t> padding_of(const char* layer, const PerAxis& padding, size_t axes);

#define TUFF_PAD(Name, axes, mode)                                                       \
  struct Name : Module {                                                                 \
    explicit Name(const PerAxis& padding) : padding(padding_of(#Name, padding, axes)) {} \
    Tensor operator()(const Tensor& x) const {                                           \
      return run(x, [&](const Tensor& in) { return in.pad(padding, PadMode::mode); });   \
    }                                                                                    \
    void members(Members&) const override {}                                             \
    std::vector<int64_t> padding;                                                        \
  }
/// The mirror image without the edge.
TUFF_PAD(ReflectionPad1d, 1, Reflect);
/// The mirror image without the edge, of two axes.
TUFF_PAD(ReflectionPad2d, 2, Reflect);
/// The mirror image without the edge, of three axes.
TUFF_PAD(ReflectionPad3d, 3, Reflect);
/// The edge again.
TUFF_PAD(ReplicationPad1d, 1, Replicate);
/// The edges of two axes again.
TUFF_PAD(ReplicationPad2d, 2, Replicate);
/// The edges of three axes again.
TUFF_PAD(ReplicationPad3d, 3, Replicate);
/// The other end.
TUFF_PAD(CircularPad1d, 1, Circular);
/// The other ends of two axes.
TUFF_PAD(CircularPad2d, 2, Circular);
/// The other ends of three axes.
TUFF_PAD(CircularPad3d, 3, Circular);
/// Zeros.
TUFF_PAD(ZeroPad1d, 1, Constant);
/// Zeros around two axes.
TUFF_PAD(ZeroPad2d, 2, Constant);
/// Zeros around three axes.
TUFF_PAD(ZeroPad3d, 3, Constant);
#undef TUFF_PAD

#define TUFF_CONSTANT_PAD(Name, axes)                                          \
  struct Name : Module {                                                       \
    Name(const PerAxis& padding, double value)                                 \
        : padding(padding_of(#Name, padding, axes)), value(value) {}           \
    Tensor operator()(const Tensor& x) const {                                 \
      return run(x, [&](const Tensor& in) { return in.pad(padding, value); }); \
    }                                                                          \
    void members(Members&) const override {}                                   \
    std::vector<int64_t> padding;                                              \
    double value;                                                              \
  }
/// A value.
TUFF_CONSTANT_PAD(ConstantPad1d, 1);
/// A value around two axes.
TUFF_CONSTANT_PAD(ConstantPad2d, 2);
/// A value around three axes.
TUFF_CONSTANT_PAD(ConstantPad3d, 3);
#undef TUFF_CONSTANT_PAD

/// (N, C, ...) over (k + alpha * the mean of the squares of `size` neighbouring channels, zeros
/// beyond the ends)^beta (Krizhevsky et al., 2012). InvalidArgument unless size is positive.
struct LocalResponseNorm : Module {
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
  Tensor operator()(const Tensor& x) const;
  void members(Members&) const override {}
  int64_t size;
  double alpha, beta, k;
};

/// Tensor::interpolate().
struct Upsample : Module {
  explicit Upsample(PerAxis size, std::vector<double> scale_factor = {},
                    std::string mode = "nearest", bool align_corners = false)
      : size(std::move(size)),
        scale_factor(std::move(scale_factor)),
        mode(std::move(mode)),
        align_corners(align_corners) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) {
      return in.interpolate(size, scale_factor, mode, align_corners);
    });
  }
  void members(Members&) const override {}
  PerAxis size;
  std::vector<double> scale_factor;
  std::string mode;
  bool align_corners;
};

/// Tensor::im2col().
struct Unfold : Module {
  explicit Unfold(PerAxis kernel, PerAxis dilation = 1, PerAxis padding = 0, PerAxis stride = 1)
      : kernel(std::move(kernel)),
        dilation(std::move(dilation)),
        padding(std::move(padding)),
        stride(std::move(stride)) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.im2col(kernel, dilation, padding, stride); });
  }
  void members(Members&) const override {}
  PerAxis kernel, dilation, padding, stride;
};

/// Tensor::fold().
struct Fold : Module {
  Fold(PerAxis output, PerAxis kernel, PerAxis dilation = 1, PerAxis padding = 0,
       PerAxis stride = 1)
      : output(std::move(output)),
        kernel(std::move(kernel)),
        dilation(std::move(dilation)),
        padding(std::move(padding)),
        stride(std::move(stride)) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) {
      return in.fold(output, kernel, dilation, padding, stride);
    });
  }
  void members(Members&) const override {}
  PerAxis output, kernel, dilation, padding, stride;
};

#define TUFF_SHUFFLE(Name, function, argument)                                  \
  struct Name : Module {                                                        \
    explicit Name(int64_t argument) : argument(argument) {}                     \
    Tensor operator()(const Tensor& x) const {                                  \
      return run(x, [&](const Tensor& in) { return in.function(argument); });   \
    }                                                                           \
    void members(Members&) const override {}                                    \
    int64_t argument;                                                           \
  }
/// Tensor::pixel_shuffle().
TUFF_SHUFFLE(PixelShuffle, pixel_shuffle, factor);
/// Tensor::pixel_unshuffle().
TUFF_SHUFFLE(PixelUnshuffle, pixel_unshuffle, factor);
/// Tensor::channel_shuffle().
TUFF_SHUFFLE(ChannelShuffle, channel_shuffle, groups);
#undef TUFF_SHUFFLE

}  // namespace tuff::nn
