// Layers of windows: convolutions, pools, padding, resizing, shuffles.
#include "layer_class.h"

namespace tuff::python {
namespace {

using py::arg;

template <class Layer>
void bind_convolution(py::module_& m, const char* name, const char* doc) {
  auto c = layer<Layer>(m, name, doc);
  c.def(py::init([](int64_t in, int64_t out, const PerAxis& kernel, const PerAxis& stride,
                    const Padding& padding, bool bias, const PerAxis& dilation, int64_t groups,
                    PadMode padding_mode, DType t, const std::string& device) {
          return Layer(in, out, kernel, stride, padding, bias, {t, device}, dilation, groups,
                       padding_mode);
        }),
        arg("in_channels"), arg("out_channels"), arg("kernel_size"), arg("stride") = PerAxis(1),
        arg("padding") = Padding(0), arg("bias") = true, arg("dilation") = PerAxis(1),
        arg("groups") = 1, arg("padding_mode") = PadMode::Constant, TUFF_LAYER_OPTIONS);
  c.def(py::init([](const Tensor& weight, const MaybeTensor& bias, const PerAxis& stride,
                    const Padding& padding, const PerAxis& dilation, int64_t groups,
                    PadMode padding_mode) {
          return Layer(weight, given(bias), stride, padding, dilation, groups, padding_mode);
        }),
        arg("weight"), arg("bias") = py::none(), arg("stride") = PerAxis(1),
        arg("padding") = Padding(0), arg("dilation") = PerAxis(1), arg("groups") = 1,
        arg("padding_mode") = PadMode::Constant);
}

template <class Layer>
void bind_transposed(py::module_& m, const char* name, const char* doc) {
  auto c = layer<Layer>(m, name, doc);
  c.def(py::init([](int64_t in, int64_t out, const PerAxis& kernel, const PerAxis& stride,
                    const PerAxis& padding, const PerAxis& output_padding, int64_t groups,
                    bool bias, const PerAxis& dilation, DType t, const std::string& device) {
          return Layer(in, out, kernel, stride, padding, output_padding, groups, bias, dilation,
                       {t, device});
        }),
        arg("in_channels"), arg("out_channels"), arg("kernel_size"), arg("stride") = PerAxis(1),
        arg("padding") = PerAxis(0), arg("output_padding") = PerAxis(0), arg("groups") = 1,
        arg("bias") = true, arg("dilation") = PerAxis(1), TUFF_LAYER_OPTIONS);
  c.def(py::init([](const Tensor& weight, const MaybeTensor& bias, const PerAxis& stride,
                    const PerAxis& padding, const PerAxis& output_padding, int64_t groups,
                    const PerAxis& dilation) {
          return Layer(weight, given(bias), stride, padding, output_padding, groups, dilation);
        }),
        arg("weight"), arg("bias") = py::none(), arg("stride") = PerAxis(1),
        arg("padding") = PerAxis(0), arg("output_padding") = PerAxis(0), arg("groups") = 1,
        arg("dilation") = PerAxis(1));
}

template <class Max>
struct MaxPool : Max {
  using Max::Max;
  bool return_indices = false;
};

template <class Max, class Unpool>
void bind_max_pools(py::module_& m, const std::string& axes) {
  LayerClass<MaxPool<Max>>(m, ("MaxPool" + axes).c_str(),
                           "The largest of windows, and where they stood if return_indices.")
      .def(
          "__call__",
          [](const MaxPool<Max>& l, const Tensor& x) {
            return l.return_indices ? py::cast(l.with_indices(x)) : py::cast(l(x));
          },
          arg("x"))
      .def(py::init([](const PerAxis& kernel, const MaybeAxes& stride, const PerAxis& padding,
                       const PerAxis& dilation, bool ceil_mode, bool return_indices) {
             MaxPool<Max> l(kernel, given(stride), padding, dilation, ceil_mode);
             l.return_indices = return_indices;
             return l;
           }),
           arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0),
           arg("dilation") = PerAxis(1), arg("ceil_mode") = false, arg("return_indices") = false);
  LayerClass<Unpool>(m, ("MaxUnpool" + axes).c_str(), "max_pool backwards.")
      .def(
          "__call__",
          [](const Unpool& l, const Tensor& x, const Tensor& indices,
             const MaybeAxes& output_size) { return l(x, indices, given(output_size)); },
          arg("x"), arg("indices"), arg("output_size") = py::none())
      .def(py::init([](const PerAxis& kernel, const MaybeAxes& stride, const PerAxis& padding) {
             return Unpool(kernel, given(stride), padding);
           }),
           arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0));
}

template <class Avg, class Lp, class AdaptiveAvg, class AdaptiveMax>
void bind_pools(py::module_& m, const std::string& axes) {
  const auto named = [&](const char* name) { return name + axes; };
  layer<Avg>(m, named("AvgPool").c_str(), "The mean of windows.")
      .def(py::init([](const PerAxis& kernel, const MaybeAxes& stride, const PerAxis& padding,
                       bool ceil_mode, bool count_include_pad,
                       std::optional<int64_t> divisor_override) {
             return Avg(kernel, given(stride), padding, ceil_mode, count_include_pad,
                        divisor_override);
           }),
           arg("kernel_size"), arg("stride") = py::none(), arg("padding") = PerAxis(0),
           arg("ceil_mode") = false, arg("count_include_pad") = true,
           arg("divisor_override") = py::none());
  layer<Lp>(m, named("LPPool").c_str(), "The p-th root of the sum of p-th powers of windows.")
      .def(py::init([](double p, const PerAxis& kernel, const MaybeAxes& stride, bool ceil_mode) {
             return Lp(p, kernel, given(stride), ceil_mode);
           }),
           arg("norm_type"), arg("kernel_size"), arg("stride") = py::none(),
           arg("ceil_mode") = false);
  layer<AdaptiveAvg>(m, named("AdaptiveAvgPool").c_str(), "Means of `output` windows.")
      .def(py::init<PerAxis>(), arg("output_size"));
  layer<AdaptiveMax>(m, named("AdaptiveMaxPool").c_str(), "The largest of `output` windows.")
      .def(py::init<PerAxis>(), arg("output_size"));
}

template <class... Pads>
void bind_pads(py::module_& m, std::initializer_list<const char*> names, const char* doc) {
  auto name = names.begin();
  (layer<Pads>(m, *name++, doc).def(py::init<const PerAxis&>(), arg("padding")), ...);
}
template <class Layer>
void bind_constant_pad(py::module_& m, const char* name) {
  layer<Layer>(m, name, "A value around the last axes.")
      .def(py::init<const PerAxis&, double>(), arg("padding"), arg("value"));
}

void bind_all_pads(py::module_& m) {
  bind_pads<nn::ReflectionPad1d, nn::ReflectionPad2d, nn::ReflectionPad3d>(
      m, {"ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"},
      "The mirror image, without the edge, around the last axes.");
  bind_pads<nn::ReplicationPad1d, nn::ReplicationPad2d, nn::ReplicationPad3d>(
      m, {"ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"},
      "The edges around the last axes.");
  bind_pads<nn::CircularPad1d, nn::CircularPad2d, nn::CircularPad3d>(
      m, {"CircularPad1d", "CircularPad2d", "CircularPad3d"},
      "The other ends around the last axes.");
  bind_pads<nn::ZeroPad1d, nn::ZeroPad2d, nn::ZeroPad3d>(
      m, {"ZeroPad1d", "ZeroPad2d", "ZeroPad3d"}, "Zeros around the last axes.");
  bind_constant_pad<nn::ConstantPad1d>(m, "ConstantPad1d");
  bind_constant_pad<nn::ConstantPad2d>(m, "ConstantPad2d");
  bind_constant_pad<nn::ConstantPad3d>(m, "ConstantPad3d");
}

void bind_views_of_windows(py::module_& m) {
  layer<nn::Upsample>(m, "Upsample", "Tensor.interpolate().")
      .def(py::init([](const MaybeAxes& size, const Factors& scale_factor,
                       const std::string& mode, bool align_corners) {
             return nn::Upsample(given(size), given(scale_factor), mode, align_corners);
           }),
           arg("size") = py::none(), arg("scale_factor") = py::none(), arg("mode") = "nearest",
           arg("align_corners") = false);
  layer<nn::LocalResponseNorm>(m, "LocalResponseNorm",
                               "x over a power of the mean square of neighbouring channels.")
      .def(py::init<int64_t, double, double, double>(), arg("size"), arg("alpha") = 1e-4,
           arg("beta") = 0.75, arg("k") = 1.0);
  layer<nn::Unfold>(m, "Unfold", "Tensor.im2col().")
      .def(py::init<PerAxis, PerAxis, PerAxis, PerAxis>(), arg("kernel_size"),
           arg("dilation") = PerAxis(1), arg("padding") = PerAxis(0), arg("stride") = PerAxis(1));
  layer<nn::Fold>(m, "Fold", "Tensor.fold().")
      .def(py::init<PerAxis, PerAxis, PerAxis, PerAxis, PerAxis>(), arg("output_size"),
           arg("kernel_size"), arg("dilation") = PerAxis(1), arg("padding") = PerAxis(0),
           arg("stride") = PerAxis(1));
  layer<nn::PixelShuffle>(m, "PixelShuffle", "Tensor.pixel_shuffle().")
      .def(py::init<int64_t>(), arg("upscale_factor"));
  layer<nn::PixelUnshuffle>(m, "PixelUnshuffle", "Tensor.pixel_unshuffle().")
      .def(py::init<int64_t>(), arg("downscale_factor"));
  layer<nn::ChannelShuffle>(m, "ChannelShuffle", "Tensor.channel_shuffle().")
      .def(py::init<int64_t>(), arg("groups"));
}

}  // namespace

void bind_window_layers(py::module_& m) {
  bind_convolution<nn::Conv1d>(m, "Conv1d", "weight (out, in/groups, K).");
  bind_convolution<nn::Conv2d>(m, "Conv2d", "weight (out, in/groups, KH, KW).");
  bind_convolution<nn::Conv3d>(m, "Conv3d", "weight (out, in/groups, KD, KH, KW).");
  bind_transposed<nn::ConvTranspose1d>(m, "ConvTranspose1d", "weight (in, out/groups, K).");
  bind_transposed<nn::ConvTranspose2d>(m, "ConvTranspose2d", "weight (in, out/groups, KH, KW).");
  bind_transposed<nn::ConvTranspose3d>(m, "ConvTranspose3d",
                                       "weight (in, out/groups, KD, KH, KW).");
  bind_max_pools<nn::MaxPool1d, nn::MaxUnpool1d>(m, "1d");
  bind_pools<nn::AvgPool1d, nn::LPPool1d, nn::AdaptiveAvgPool1d, nn::AdaptiveMaxPool1d>(
      m, "1d");
  bind_max_pools<nn::MaxPool2d, nn::MaxUnpool2d>(m, "2d");
  bind_pools<nn::AvgPool2d, nn::LPPool2d, nn::AdaptiveAvgPool2d, nn::AdaptiveMaxPool2d>(
      m, "2d");
  bind_max_pools<nn::MaxPool3d, nn::MaxUnpool3d>(m, "3d");
  bind_pools<nn::AvgPool3d, nn::LPPool3d, nn::AdaptiveAvgPool3d, nn::AdaptiveMaxPool3d>(
      m, "3d");
  bind_all_pads(m);
  bind_views_of_windows(m);
}

}  // namespace tuff::python
