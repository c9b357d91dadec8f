// Convolutions of one to three axes and TensorWindows as rows. Operands: window_convolutions(),
// window_pools() and window_sampling() of scripts/tensor-values.py.
#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> convolutions() {
  return {
      {"conv1d", Rounded, [](Inputs x) { return x[0].conv1d(x[1], x[2], 2, 1); }},
      {"conv1d_same", Rounded, [](Inputs x) { return x[0].conv1d(x[1], {}, 1, "same", 2, 2); }},
      {"conv2d_same", Rounded, [](Inputs x) { return x[0].conv2d(x[1], x[2], 1, "same"); }},
      {"conv2d_sides", Rounded,
       [](Inputs x) { return x[0].conv2d(x[1], {}, 2, {{0, 1}, {2, 0}}); }},
      {"conv3d", Rounded, [](Inputs x) { return x[0].conv3d(x[1], x[2], 1, {0, 1, 1}); }},
      {"conv3d_stride", Rounded,
       [](Inputs x) { return x[0].conv3d(x[1], {}, {1, 2, 2}, 0, {2, 1, 1}, 2); }},
      {"conv_transpose1d", Rounded,
       [](Inputs x) { return x[0].conv_transpose1d(x[1], x[2], 2, 1, 1); }},
      {"conv_transpose2d", Rounded, [](Inputs x) { return x[0].conv_transpose2d(x[1], x[2]); }},
      {"conv_transpose2d_stride", Rounded,
       [](Inputs x) { return x[0].conv_transpose2d(x[1], x[2], {2, 3}, 1, {0, 2}); }},
      {"conv_transpose2d_apart", Rounded,
       [](Inputs x) { return x[0].conv_transpose2d(x[1], {}, {2, 3}); }},
      {"conv_transpose2d_groups", Rounded,
       [](Inputs x) { return x[0].conv_transpose2d(x[1], x[2], 2, {2, 1}, 1, 2, {3, 2}); }},
      {"conv_transpose2d_dilation", Rounded,
       [](Inputs x) { return x[0].conv_transpose2d(x[1], {}, 1, 1, {2, 1}, 1, {3, 2}); }},
      {"conv_transpose2d_none", Exact, [](Inputs x) { return x[0].conv_transpose2d(x[1]); }},
      {"conv_transpose3d", Rounded,
       [](Inputs x) {
         return x[0].conv_transpose3d(x[1], x[2], {1, 2, 2}, {0, 1, 1}, {0, 1, 0});
       }},
      {"im2col", Exact, [](Inputs x) { return x[0].im2col({3, 2}, {1, 2}, {1, 0}, {2, 1}); }},
      {"im2col_line", Exact, [](Inputs x) { return x[0].im2col(3, 1, 0, 2); }},
      {"fold", Rounded,
       [](Inputs x) { return x[0].fold({7, 5}, {3, 2}, {1, 2}, {1, 0}, {2, 2}); }},
      {"fold_apart", Exact, [](Inputs x) { return x[0].fold({4, 6}, 2, 1, 0, 2); }},
  };
}

std::vector<Function> pools() {
  return {
      {"max_pool1d", Exact, [](Inputs x) { return x[0].max_pool1d(3, 2, 1, 2); }},
      {"max_pool3d", Exact,
       [](Inputs x) { return x[0].max_pool3d({2, 3, 2}, 2, {0, 1, 1}, 1, true); }},
      {"max_pool1d_indices", Exact,
       [](Inputs x) { return x[0].max_pool1d_with_indices(3, 2, 1).second; }},
      {"max_pool2d_indices", Exact,
       [](Inputs x) {
         return x[0].max_pool2d_with_indices({3, 2}, {2, 1}, {1, 1}, {1, 2}).second;
       }},
      {"max_pool2d_indices_ceil", Exact,
       [](Inputs x) { return x[0].max_pool2d_with_indices(3, 2, 1, 1, true).second; }},
      {"max_pool3d_indices", Exact,
       [](Inputs x) { return x[0].max_pool3d_with_indices(2).second; }},
      {"max_pool2d_none", Exact, [](Inputs x) { return x[0].max_pool2d(2); }},
      {"max_pool2d_negative", Exact,
       [](Inputs x) { return x[0].max_pool2d_with_indices(3, 2, 1).first; }},
      {"avg_pool1d", Rounded, [](Inputs x) { return x[0].avg_pool1d(4, 3, 1, true, false); }},
      {"avg_pool3d", Rounded,
       [](Inputs x) { return x[0].avg_pool3d({2, 3, 2}, 2, {0, 1, 1}, true, false); }},
      {"avg_pool3d_divisor", Rounded,
       [](Inputs x) { return x[0].avg_pool3d(2, 2, 0, false, true, 5); }},
      {"max_unpool1d", Exact, [](Inputs x) { return x[0].max_unpool1d(x[1], 2); }},
      {"max_unpool2d", Exact,
       [](Inputs x) {
         const auto [values, indices] = x[0].max_pool2d_with_indices({2, 3});
         return values.max_unpool2d(indices, {2, 3}, {}, 0, {7, 6});
       }},
      {"max_unpool2d_overlapping", Exact,
       [](Inputs x) {
         const auto [values, indices] = x[0].detach().max_pool2d_with_indices(3, 2, 1);
         return values.max_unpool2d(indices, 3, 2, 1, {7, 6});
       }},
      {"max_unpool3d", Exact,
       [](Inputs x) {
         const auto [values, indices] = x[0].max_pool3d_with_indices(2, {2, 2, 3});
         return values.max_unpool3d(indices, 2, {2, 2, 3}, 0, {4, 5, 6});
       }},
      {"lp_pool1d", Curved, [](Inputs x) { return x[0].lp_pool1d(3, 3, 2); }},
      {"lp_pool2d", Curved, [](Inputs x) { return x[0].lp_pool2d(2, 2); }},
      {"lp_pool3d", Curved, [](Inputs x) { return x[0].lp_pool3d(1.5, {2, 2, 3}); }},
      {"lp_pool2d_zeros", Exact, [](Inputs x) { return x[0].lp_pool2d(2, 2); }},
      {"adaptive_avg_pool1d", Rounded, [](Inputs x) { return x[0].adaptive_avg_pool1d(4); }},
      {"adaptive_avg_pool2d", Rounded, [](Inputs x) { return x[0].adaptive_avg_pool2d({3, 4}); }},
      {"adaptive_avg_pool2d_one", Rounded, [](Inputs x) { return x[0].adaptive_avg_pool2d(1); }},
      {"adaptive_avg_pool2d_kept", Rounded,
       [](Inputs x) { return x[0].adaptive_avg_pool2d({-1, 2}); }},
      {"adaptive_avg_pool3d", Rounded,
       [](Inputs x) { return x[0].adaptive_avg_pool3d({3, 2, 9}); }},
      {"adaptive_max_pool1d", Exact, [](Inputs x) { return x[0].adaptive_max_pool1d(6); }},
      {"adaptive_max_pool2d", Exact, [](Inputs x) { return x[0].adaptive_max_pool2d({3, 4}); }},
      {"adaptive_max_pool2d_equal", Exact,
       [](Inputs x) { return x[0].adaptive_max_pool2d({7, 2}); }},
      {"adaptive_max_pool3d", Exact,
       [](Inputs x) { return x[0].adaptive_max_pool3d({3, 2, 4}); }},
      {"adaptive_max_pool1d_indices", Exact,
       [](Inputs x) { return x[0].adaptive_max_pool1d_with_indices(3).second; }},
      {"adaptive_max_pool2d_indices", Exact,
       [](Inputs x) { return x[0].adaptive_max_pool2d_with_indices({3, 4}).second; }},
      {"adaptive_max_pool3d_indices", Exact,
       [](Inputs x) { return x[0].adaptive_max_pool3d_with_indices({3, 2, 4}).second; }},
  };
}

Function to(const char* name, Precision p, PerAxis size, const char* mode, bool corners = false,
            bool antialias = false) {
  return {name, p,
          [=](Inputs x) { return x[0].interpolate(size, {}, mode, corners, antialias); }};
}
Function by(const char* name, Precision p, std::vector<double> factor, const char* mode) {
  return {name, p, [=](Inputs x) { return x[0].interpolate({}, factor, mode); }};
}

std::vector<Function> resized() {
  return {
      to("interpolate_nearest", Exact, {8, 3}, "nearest"),
      by("interpolate_nearest_up", Exact, {2}, "nearest"),
      to("interpolate_nearest_down", Exact, 4, "nearest"),
      by("interpolate_nearest_factor", Exact, {1.7}, "nearest"),
      to("interpolate_nearest_int", Exact, {5, 8}, "nearest"),
      to("interpolate_exact", Exact, {8, 3}, "nearest-exact"),
      to("interpolate_exact_down", Exact, 3, "nearest-exact"),
      by("interpolate_exact_factor", Exact, {0.6}, "nearest-exact"),
      to("interpolate_linear", Rounded, 10, "linear"),
      to("interpolate_linear_corners", Rounded, 4, "linear", true),
      to("interpolate_bilinear", Rounded, {9, 4}, "bilinear"),
      to("interpolate_bilinear_one", Rounded, 1, "bilinear", true),
      by("interpolate_bilinear_up", Rounded, {2, 3}, "bilinear"),
      by("interpolate_bilinear_factor", Rounded, {1.7, 0.6}, "bilinear"),
      to("interpolate_trilinear", Rounded, {4, 7, 3}, "trilinear"),
      to("interpolate_trilinear_corners", Rounded, {5, 2, 8}, "trilinear", true),
      to("interpolate_bicubic", Rounded, {9, 4}, "bicubic"),
      to("interpolate_bicubic_corners", Rounded, {3, 11}, "bicubic", true),
      by("interpolate_bicubic_factor", Rounded, {1.7}, "bicubic"),
      by("interpolate_bicubic_up", Rounded, {2}, "bicubic"),
      to("interpolate_area", Rounded, {3, 9}, "area"),
      to("interpolate_antialias", Rounded, {2, 3}, "bilinear", false, true),
      to("interpolate_antialias_cubic", Rounded, {3, 10}, "bicubic", false, true),
      by("interpolate_none", Exact, {2}, "bilinear"),
  };
}

Function at(const char* name, Precision p, const char* mode, const char* outside,
            bool corners = false) {
  return {name, p, [=](Inputs x) { return x[0].grid_sample(x[1], mode, outside, corners); }};
}

std::vector<Function> sampled() {
  return {
      at("grid_sample", Rounded, "bilinear", "zeros"),
      at("grid_sample_corners", Rounded, "bilinear", "zeros", true),
      at("grid_sample_border", Rounded, "bilinear", "border"),
      at("grid_sample_reflection", Rounded, "bilinear", "reflection"),
      at("grid_sample_reflection_corners", Rounded, "bilinear", "reflection", true),
      at("grid_sample_nearest", Exact, "nearest", "zeros"),
      at("grid_sample_nearest_border", Exact, "nearest", "border", true),
      at("grid_sample_bicubic", Rounded, "bicubic", "zeros"),
      at("grid_sample_bicubic_border", Rounded, "bicubic", "border", true),
      at("grid_sample_bicubic_reflection", Rounded, "bicubic", "reflection"),
      at("grid_sample_volume", Rounded, "bilinear", "zeros"),
      at("grid_sample_volume_nearest", Exact, "nearest", "reflection", true),
      {"affine_grid", Rounded,
       [](Inputs x) { return Tensor::affine_grid(x[0], {2, 3, 4, 5}); }},
      {"affine_grid_corners", Rounded,
       [](Inputs x) { return Tensor::affine_grid(x[0], {2, 3, 4, 1}, true); }},
      {"affine_grid_volume", Rounded,
       [](Inputs x) { return Tensor::affine_grid(x[0], {1, 2, 2, 3, 4}); }},
      {"pixel_shuffle", Exact, [](Inputs x) { return x[0].pixel_shuffle(2); }},
      {"pixel_unshuffle", Exact, [](Inputs x) { return x[0].pixel_unshuffle(2); }},
      {"channel_shuffle", Exact, [](Inputs x) { return x[0].channel_shuffle(3); }},
  };
}

}  // namespace

std::vector<Function> functions_of_windows() {
  std::vector<Function> all = convolutions();
  for (const auto& part : {pools, resized, sampled}) {
    for (Function& f : part()) all.push_back(std::move(f));
  }
  return all;
}

}  // namespace tuff::check
