// Convolutions, and TensorWindows.
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Pair = std::pair<Tensor, Tensor>;

void bind_convolutions(TensorClass& c) {
  using Function = Tensor (Tensor::*)(const Tensor&, const Tensor&, const PerAxis&, const Padding&,
                                      const PerAxis&, int64_t) const;
  struct Row {
    const char* name;
    Function function;
    const char* doc;
  };
  for (const Row& r : {
           Row{"conv1d", &Tensor::conv1d, "(N, C, L) by weight (O, C/groups, K)."},
           Row{"conv2d", &Tensor::conv2d, "(N, C, H, W) by weight (O, C/groups, KH, KW)."},
           Row{"conv3d", &Tensor::conv3d, "(N, C, D, H, W) by weight (O, C/groups, KD, KH, KW)."},
       }) {
    c.def(
        r.name,
        [f = r.function](const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
                         const PerAxis& stride, const Padding& padding, const PerAxis& dilation,
                         int64_t groups) {
          return (x.*f)(weight, given(bias), stride, padding, dilation, groups);
        },
        arg("weight"), arg("bias") = py::none(), arg("stride") = PerAxis(1),
        arg("padding") = Padding(0), arg("dilation") = PerAxis(1), arg("groups") = 1, r.doc);
  }
}

void bind_transposed(TensorClass& c) {
  using Function = Tensor (Tensor::*)(const Tensor&, const Tensor&, const PerAxis&, const PerAxis&,
                                      const PerAxis&, int64_t, const PerAxis&) const;
  struct Row {
    const char* name;
    Function function;
  };
  for (const Row& r : {Row{"conv_transpose1d", &Tensor::conv_transpose1d},
                       Row{"conv_transpose2d", &Tensor::conv_transpose2d},
                       Row{"conv_transpose3d", &Tensor::conv_transpose3d}}) {
    c.def(
        r.name,
        [f = r.function](const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
                         const PerAxis& stride, const PerAxis& padding,
                         const PerAxis& output_padding, int64_t groups, const PerAxis& dilation) {
          return (x.*f)(weight, given(bias), stride, padding, output_padding, groups, dilation);
        },
        arg("weight"), arg("bias") = py::none(), arg("stride") = PerAxis(1),
        arg("padding") = PerAxis(0), arg("output_padding") = PerAxis(0), arg("groups") = 1,
        arg("dilation") = PerAxis(1),
        "What the gradient of the convolution by this weight (C, O/groups, ...) is.");
  }
}

// A pair where indices are asked for, else a tensor.
template <class Values, class Both>
py::object with_or_without(bool indices, Values&& values, Both&& both) {
  return indices ? py::cast(both()) : py::cast(values());
}

void bind_max_pools(TensorClass& c) {
  using Values = Tensor (Tensor::*)(const PerAxis&, const PerAxis&, const PerAxis&, const PerAxis&,
                                    bool) const;
  using Both = Pair (Tensor::*)(const PerAxis&, const PerAxis&, const PerAxis&, const PerAxis&,
                                bool) const;
  struct Row {
    const char* name;
    Values values;
    Both both;
  };
  for (const Row& r :
       {Row{"max_pool1d", &Tensor::max_pool1d, &Tensor::max_pool1d_with_indices},
        Row{"max_pool2d", &Tensor::max_pool2d, &Tensor::max_pool2d_with_indices},
        Row{"max_pool3d", &Tensor::max_pool3d, &Tensor::max_pool3d_with_indices}}) {
    c.def(
        r.name,
        [r](const Tensor& x, const PerAxis& kernel, const MaybeAxes& stride,
            const PerAxis& padding, const PerAxis& dilation, bool ceil_mode, bool return_indices) {
          return with_or_without(
              return_indices,
              [&] { return (x.*r.values)(kernel, given(stride), padding, dilation, ceil_mode); },
              [&] { return (x.*r.both)(kernel, given(stride), padding, dilation, ceil_mode); });
        },
        arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0),
        arg("dilation") = PerAxis(1), arg("ceil_mode") = false, arg("return_indices") = false,
        "The largest of windows of the last axes, and where it stood if return_indices.");
  }
}

void bind_unpools(TensorClass& c) {
  using Function = Tensor (Tensor::*)(const Tensor&, const PerAxis&, const PerAxis&,
                                      const PerAxis&, const PerAxis&) const;
  for (const auto& [name, f] :
       {std::pair<const char*, Function>{"max_unpool1d", &Tensor::max_unpool1d},
        {"max_unpool2d", &Tensor::max_unpool2d},
        {"max_unpool3d", &Tensor::max_unpool3d}}) {
    c.def(
        name,
        [f = f](const Tensor& x, const Tensor& indices, const PerAxis& kernel,
                const MaybeAxes& stride, const PerAxis& padding, const MaybeAxes& output_size) {
          return (x.*f)(indices, kernel, given(stride), padding, given(output_size));
        },
        arg("indices"), arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0),
        arg("output_size") = py::none(), "max_pool backwards: elements where their indices say.");
  }
}

void bind_other_pools(TensorClass& c) {
  using Avg = Tensor (Tensor::*)(const PerAxis&, const PerAxis&, const PerAxis&, bool, bool,
                                 std::optional<int64_t>) const;
  for (const auto& [name, f] : {std::pair<const char*, Avg>{"avg_pool1d", &Tensor::avg_pool1d},
                                {"avg_pool2d", &Tensor::avg_pool2d},
                                {"avg_pool3d", &Tensor::avg_pool3d}}) {
    c.def(
        name,
        [f = f](const Tensor& x, const PerAxis& kernel, const MaybeAxes& stride,
                const PerAxis& padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor_override) {
          return (x.*f)(kernel, given(stride), padding, ceil_mode, count_include_pad,
                        divisor_override);
        },
        arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0),
        arg("ceil_mode") = false, arg("count_include_pad") = true,
        arg("divisor_override") = py::none(), "The mean of windows of the last axes.");
  }
  using Lp = Tensor (Tensor::*)(double, const PerAxis&, const PerAxis&, bool) const;
  for (const auto& [name, f] : {std::pair<const char*, Lp>{"lp_pool1d", &Tensor::lp_pool1d},
                                {"lp_pool2d", &Tensor::lp_pool2d},
                                {"lp_pool3d", &Tensor::lp_pool3d}}) {
    c.def(
        name,
        [f = f](const Tensor& x, double p, const PerAxis& kernel, const MaybeAxes& stride,
                bool ceil_mode) { return (x.*f)(p, kernel, given(stride), ceil_mode); },
        arg("norm_type"), arg("kernel_size"), arg("stride") = py::none(), arg("ceil_mode") = false,
        "The p-th root of the sum of p-th powers of windows of the last axes.");
  }
}

void bind_adaptive_pools(TensorClass& c) {
  using Values = Tensor (Tensor::*)(const PerAxis&) const;
  using Both = Pair (Tensor::*)(const PerAxis&) const;
  for (const auto& [name, f] :
       {std::pair<const char*, Values>{"adaptive_avg_pool1d", &Tensor::adaptive_avg_pool1d},
        {"adaptive_avg_pool2d", &Tensor::adaptive_avg_pool2d},
        {"adaptive_avg_pool3d", &Tensor::adaptive_avg_pool3d}}) {
    c.def(
        name, [f = f](const Tensor& x, const PerAxis& output) { return (x.*f)(output); },
        arg("output_size"),
        "The means of as many windows as `output_size` says; -1 keeps an extent.");
  }
  struct Row {
    const char* name;
    Values values;
    Both both;
  };
  for (const Row& r : {Row{"adaptive_max_pool1d", &Tensor::adaptive_max_pool1d,
                           &Tensor::adaptive_max_pool1d_with_indices},
                       Row{"adaptive_max_pool2d", &Tensor::adaptive_max_pool2d,
                           &Tensor::adaptive_max_pool2d_with_indices},
                       Row{"adaptive_max_pool3d", &Tensor::adaptive_max_pool3d,
                           &Tensor::adaptive_max_pool3d_with_indices}}) {
    c.def(
        r.name,
        [r](const Tensor& x, const PerAxis& output, bool return_indices) {
          return with_or_without(
              return_indices, [&] { return (x.*r.values)(output); },
              [&] { return (x.*r.both)(output); });
        },
        arg("output_size"), arg("return_indices") = false,
        "The largest of as many windows as `output_size` says; -1 keeps an extent.");
  }
}

void bind_sampling(TensorClass& c) {
  c.def(
      "interpolate",
      [](const Tensor& x, const MaybeAxes& size, const Factors& scale_factor,
         const std::string& mode, bool align_corners, bool antialias) {
        return x.interpolate(given(size), given(scale_factor), mode, align_corners, antialias);
      },
      arg("size") = py::none(), arg("scale_factor") = py::none(), arg("mode") = "nearest",
      arg("align_corners") = false, arg("antialias") = false,
      "(N, C, ...) with one to three axes resized: nearest, nearest-exact, area, linear, bilinear, "
      "trilinear, bicubic.");
  c.def(
      "grid_sample",
      [](const Tensor& x, const Tensor& grid, const std::string& mode,
         const std::string& padding_mode,
         bool align_corners) { return x.grid_sample(grid, mode, padding_mode, align_corners); },
      arg("grid"), arg("mode") = "bilinear", arg("padding_mode") = "zeros",
      arg("align_corners") = false,
      "(N, C, H, W) at places (x, y) of -1..1: bilinear, nearest or bicubic; zeros, border or "
      "reflection outside.");
  c.def_static("affine_grid", &Tensor::affine_grid, arg("theta"), arg("size"),
               arg("align_corners") = false, "The grid of an affine map, for grid_sample().");
}

}  // namespace

void bind_windows(TensorClass& c) {
  bind_convolutions(c);
  bind_transposed(c);
  bind_max_pools(c);
  bind_unpools(c);
  bind_other_pools(c);
  bind_adaptive_pools(c);
  bind_sampling(c);
  c.def("im2col", &Tensor::im2col, arg("kernel_size"), arg("dilation") = PerAxis(1),
        arg("padding") = PerAxis(0), arg("stride") = PerAxis(1),
        "Windows over the axes behind (N, C) as (N, C * window, windows).");
  c.def("fold", &Tensor::fold, arg("output_size"), arg("kernel_size"), arg("dilation") = PerAxis(1),
        arg("padding") = PerAxis(0), arg("stride") = PerAxis(1),
        "The sums of what im2col() takes from each element.");
  c.def("pixel_shuffle", &Tensor::pixel_shuffle, arg("upscale_factor"),
        "(..., C r r, H, W) to (..., C, H r, W r).");
  c.def("pixel_unshuffle", &Tensor::pixel_unshuffle, arg("downscale_factor"),
        "pixel_shuffle() backwards.");
  c.def("channel_shuffle", &Tensor::channel_shuffle, arg("groups"),
        "Channels of all groups in turn.");
}

}  // namespace tuff::python
