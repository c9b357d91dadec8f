// Rows for convolutions of one and three axes, transposed ones, and TensorWindows.
#include <tuff/tensor.h>
#include "tensor/errors_table.h"

namespace tuff::test {
namespace windows {
namespace {

Tensor floats(const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); }
Tensor ints(const Sizes& s) { return Tensor::empty(s, {DType::I32, "CPU"}); }

const std::vector<Wrong> kConvolutions = {
    {"conv1d axes", "ShapeError", "must have 3 axes",
     [] { floats({2, 3}).conv1d(floats({1, 2, 3})); }},
    {"conv2d word", "InvalidArgument", "padding 'full' is neither 'same' nor 'valid'",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, "full"); }},
    {"conv2d same", "InvalidArgument", "padding 'same' with stride 1x2: give numbers",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, {1, 2}, "same"); }},
    {"conv2d counts", "InvalidArgument", "a stride of 3 numbers for 2 axes",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, {1, 2, 3}); }},
    {"conv2d sides", "InvalidArgument", "padding 0x-1 behind is negative",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, {{1, 0}, {1, -1}}); }},
    {"conv2d side count", "InvalidArgument", "padding of 3 axes for 2",
     [] { floats({1, 2, 5, 5}).conv2d(floats({1, 2, 3, 3}), {}, 1, {1, 1, 1}); }},
    {"conv3d window", "ShapeError", "a 2x2x4 window (dilation 1x1x1) does not fit",
     [] { floats({1, 2, 3, 3, 3}).conv3d(floats({1, 2, 2, 2, 4})); }},
    {"conv_transpose1d axes", "ShapeError", "must have 3 axes",
     [] { floats({1, 3, 5, 5}).conv_transpose1d(floats({3, 2, 3, 3})); }},
    {"conv_transpose2d channels", "ShapeError", "4 input channels, weight (3, 2, 3, 3) and 1 groups",
     [] { floats({1, 4, 5, 5}).conv_transpose2d(floats({3, 2, 3, 3})); }},
    {"conv_transpose2d groups", "ShapeError", "3 groups",
     [] { floats({1, 4, 5, 5}).conv_transpose2d(floats({4, 2, 3, 3}), {}, 1, 0, 0, 3); }},
    {"conv_transpose2d bias", "ShapeError", "bias (2,) for 4 output channels",
     [] { floats({1, 4, 5, 5}).conv_transpose2d(floats({4, 2, 3, 3}), floats({2}), 1, 0, 0, 2); }},
    {"conv_transpose2d output_padding", "InvalidArgument",
     "output_padding 2x2 must be below the stride 2x2 or the dilation 1x1",
     [] { floats({1, 4, 5, 5}).conv_transpose2d(floats({4, 2, 3, 3}), {}, 2, 0, 2); }},
    {"conv_transpose2d padding", "ShapeError", "nothing is left of (1, 4, 1, 5)",
     [] { floats({1, 4, 1, 5}).conv_transpose2d(floats({4, 2, 2, 2}), {}, 1, 1); }},
    {"conv_transpose2d stride", "InvalidArgument", "stride 0x0",
     [] { floats({1, 4, 5, 5}).conv_transpose2d(floats({4, 2, 2, 2}), {}, 0); }},
    {"conv_transpose3d", "InvalidArgument", "not defined on int32: cast() to a float",
     [] { ints({1, 2, 3, 3, 3}).conv_transpose3d(ints({2, 2, 2, 2, 2})); }},
    {"im2col axes", "ShapeError", "(2, 3) is not (batch, channels, ...)",
     [] { floats({2, 3}).im2col(2); }},
    {"im2col", "ShapeError", "a 4x4 window", [] { floats({1, 2, 3, 5}).im2col(4); }},
    {"fold", "ShapeError", "not of the 9 windows of 4 elements that (4, 4) has",
     [] { floats({1, 8, 8}).fold({4, 4}, 2); }},
    {"fold dtype", "InvalidArgument", "fold: not defined on int32",
     [] { ints({1, 4, 9}).fold({4, 4}, 2); }},
    {"fold axes", "ShapeError", "(4, 9) is not (batch, channels * window, windows)",
     [] { floats({4, 9}).fold({4, 4}, 2); }},
};

#define TUFF_POOLS(axes, shape)                                                                \
  {"max_pool" axes, "ShapeError", "fewer than", [] { floats({}).max_pool##shape(2); }},        \
      {"max_pool" axes "_with_indices", "InvalidArgument", "more than half",                   \
       [] { floats({9, 9, 9}).max_pool##shape##_with_indices(2, 2, 2); }},                     \
      {"avg_pool" axes, "InvalidArgument", "divisor_override is 0",                            \
       [] { floats({9, 9, 9}).avg_pool##shape(2, {}, 0, false, true, 0); }},                   \
      {"lp_pool" axes, "InvalidArgument", "p is 0", [] { floats({9, 9, 9}).lp_pool##shape(0, 2); }}, \
      {"adaptive_avg_pool" axes, "InvalidArgument", "output -2",                               \
       [] { floats({9, 9, 9}).adaptive_avg_pool##shape(-2); }},                                \
      {"adaptive_max_pool" axes, "InvalidArgument", "an output of 4 numbers",                  \
       [] { floats({9, 9, 9}).adaptive_max_pool##shape({1, 2, 3, 4}); }},                      \
      {"adaptive_max_pool" axes "_with_indices", "ShapeError", "no element",                   \
       [] { floats({0, 0, 0}).adaptive_max_pool##shape##_with_indices(2); }}
const std::vector<Wrong> kPools = {
    TUFF_POOLS("1d", 1d),
    TUFF_POOLS("2d", 2d),
    TUFF_POOLS("3d", 3d),
    {"max_unpool1d", "IndexError", "max_unpool1d: index 9 at",
     [] { floats({1, 2}).max_unpool1d(Tensor::from(std::vector<int32_t>{0, 9}, {1, 2},
                                                   {DType::I32, "CPU"}), 2); }},
    {"max_unpool2d", "InvalidArgument", "output_size 9x4 is a stride or more from 4x4",
     [] { floats({1, 2, 2}).max_unpool2d(ints({1, 2, 2}), 2, {}, 0, {9, 4}); }},
    {"max_unpool2d dtype", "InvalidArgument", "not defined on int32: cast() to a float",
     [] { ints({1, 2, 2}).max_unpool2d(ints({1, 2, 2}), 2); }},
    {"max_unpool3d", "ShapeError", "indices (2, 2, 3) for (2, 2, 2)",
     [] { floats({2, 2, 2}).max_unpool3d(ints({2, 2, 3}), 2); }},
    {"lp_pool2d infinite", "InvalidArgument", "use max_pool",
     [] { floats({4, 4}).lp_pool2d(1.0 / 0.0, 2); }},
};
#undef TUFF_POOLS

const std::vector<Wrong> kSampling = {
    {"interpolate axes", "ShapeError", "is not (N, C) and one to three axes",
     [] { floats({2, 3}).interpolate(2); }},
    {"interpolate mode", "InvalidArgument", "mode 'cubic' is none of nearest, nearest-exact, area",
     [] { floats({1, 2, 3, 4}).interpolate(2, {}, "cubic"); }},
    {"interpolate rank", "InvalidArgument", "'bilinear' is for (N, C) and 2 axes",
     [] { floats({1, 2, 3}).interpolate(2, {}, "bilinear"); }},
    {"interpolate both", "InvalidArgument", "a size or a scale_factor, not both",
     [] { floats({1, 2, 3}).interpolate(2, {2}); }},
    {"interpolate neither", "InvalidArgument", "give a size or a scale_factor",
     [] { floats({1, 2, 3}).interpolate({}); }},
    {"interpolate size", "InvalidArgument", "a size of 3 numbers for 2 axes",
     [] { floats({1, 2, 3, 4}).interpolate({2, 3, 4}); }},
    {"interpolate factors", "InvalidArgument", "3 scale factors for 2 axes",
     [] { floats({1, 2, 3, 4}).interpolate({}, {2, 2, 2}); }},
    {"interpolate factor", "InvalidArgument", "a scale factor of -1",
     [] { floats({1, 2, 3, 4}).interpolate({}, {-1}); }},
    {"interpolate to nothing", "ShapeError", "axis 2 of (1, 2, 3, 4) to 0",
     [] { floats({1, 2, 3, 4}).interpolate({}, {0.25}); }},
    {"interpolate nothing", "ShapeError", "has no element",
     [] { floats({1, 2, 0}).interpolate(2); }},
    {"interpolate corners", "InvalidArgument", "'area' has no align_corners",
     [] { floats({1, 2, 3}).interpolate(2, {}, "area", true); }},
    {"interpolate antialias", "InvalidArgument", "antialias is for 'bilinear' and 'bicubic'",
     [] { floats({1, 2, 3}).interpolate(2, {}, "linear", false, true); }},
    {"grid_sample", "ShapeError", "a grid (1, 4, 4, 3) for (1, 2, 3, 3)",
     [] { floats({1, 2, 3, 3}).grid_sample(floats({1, 4, 4, 3})); }},
    {"grid_sample mode", "InvalidArgument", "mode 'cubic' is none of bilinear, nearest, bicubic",
     [] { floats({1, 2, 3, 3}).grid_sample(floats({1, 4, 4, 2}), "cubic"); }},
    {"grid_sample padding", "InvalidArgument", "'wrap' is none of zeros, border, reflection",
     [] { floats({1, 2, 3, 3}).grid_sample(floats({1, 4, 4, 2}), "nearest", "wrap"); }},
    {"grid_sample volume", "InvalidArgument", "'bicubic' is for (N, C, H, W)",
     [] { floats({1, 2, 3, 3, 3}).grid_sample(floats({1, 4, 4, 4, 3}), "bicubic"); }},
    {"grid_sample dtype", "InvalidArgument", "a grid of int32: cast() to a float",
     [] { floats({1, 2, 3, 3}).grid_sample(ints({1, 4, 4, 2})); }},
    {"affine_grid", "ShapeError", "theta (2, 3, 3) for (2, 1, 4, 4)",
     [] { Tensor::affine_grid(floats({2, 3, 3}), {2, 1, 4, 4}); }},
    {"pixel_shuffle", "ShapeError", "6 channels are no multiple of 4",
     [] { floats({1, 6, 2, 2}).pixel_shuffle(2); }},
    {"pixel_shuffle factor", "InvalidArgument", "a factor of 0",
     [] { floats({1, 6, 2, 2}).pixel_shuffle(0); }},
    {"pixel_unshuffle", "ShapeError", "3x4 is no multiple of 2",
     [] { floats({1, 6, 3, 4}).pixel_unshuffle(2); }},
    {"channel_shuffle", "InvalidArgument", "4 groups do not divide 6 channels",
     [] { floats({1, 6, 3}).channel_shuffle(4); }},
};

}  // namespace
}  // namespace windows

std::vector<const Wrong*> wrong_rows_of_windows() {
  std::vector<const Wrong*> out;
  for (const std::vector<Wrong>* t :
       {&windows::kConvolutions, &windows::kPools, &windows::kSampling}) {
    for (const Wrong& w : *t) out.push_back(&w);
  }
  return out;
}

}  // namespace tuff::test
