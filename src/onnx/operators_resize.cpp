// Resizing and sampling: each axis by the weights that its elements have in the result.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// How places of the result become places of the input, and what is taken there.
struct Way {
  std::string coordinates, mode, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
};

struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1, roi_begin = 0, roi_end = 1;
};

// docs/Operators.md, Resize: coordinate_transformation_mode.
double place(const Way& way, const Axis& a, int64_t i) {
  const double length = a.scale * double(a.in), last = double(a.in - 1), x = double(i);
  if (way.coordinates == "asymmetric") return x / a.scale;
  if (way.coordinates == "align_corners") return length == 1 ? 0 : x * last / (length - 1);
  if (way.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (way.coordinates == "tf_crop_and_resize") {
    if (a.out == 1) return (a.roi_begin + a.roi_end) * last / 2;
    return a.roi_begin * last + x * (a.roi_end - a.roi_begin) * last / double(a.out - 1);
  }
  const double half = (x + 0.5) / a.scale - 0.5;
  if (way.coordinates == "half_pixel") return half;
  if (way.coordinates == "pytorch_half_pixel") return a.out == 1 ? 0 : half;
  if (way.coordinates == "half_pixel_symmetric")
    return double(a.in) / 2 * (1 - double(a.out) / length) + half;
  fail<InvalidArgument>("the coordinates '{}'", way.coordinates);
}

int64_t nearest(const Way& way, double x) {
  if (way.nearest == "floor") return whole(std::floor(x));
  if (way.nearest == "ceil") return whole(std::ceil(x));
  if (way.nearest == "round_prefer_ceil") return whole(std::floor(x + 0.5));
  if (way.nearest == "round_prefer_floor") return whole(std::ceil(x - 0.5));
  fail<InvalidArgument>("the rounding '{}'", way.nearest);
}

double weight(const Way& way, double distance) {
  const double d = std::fabs(distance), a = way.cubic;
  if (way.mode == "linear") return std::max(0.0, 1 - d);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

// Where each element of the result is taken from, and how much of it: (out, taps) of both.
struct Taps {
  int64_t count = 1;
  std::vector<int64_t> places;
  std::vector<float> weights;
};

Taps taps_of(const Way& way, const Axis& a) {
  Taps t;
  require_reckonable(double(a.out));
  if (a.in < 1 && a.out > 0) fail<ShapeError>("an axis of extent 0 becomes one of {}", a.out);
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, a.in - 1); };
  if (way.mode == "nearest") {
    for (int64_t i = 0; i < a.out; i++) t.places.push_back(inside(nearest(way, place(way, a, i))));
    return t;
  }
  const double narrowing = way.antialias ? std::min(a.scale, 1.0) : 1;
  const double reach = (way.mode == "linear" ? 1 : 2) / narrowing;
  require_reckonable(std::ceil(2 * reach) * double(std::max<int64_t>(a.out, 1)));
  t.count = int64_t(std::ceil(2 * reach));
  for (int64_t i = 0; i < a.out; i++) {
    // Further out all taps are the same element.
    const double x = std::clamp(place(way, a, i), -reach - 1, double(a.in) + reach);
    const int64_t first = whole(std::floor(x - reach)) + 1;
    std::vector<double> w;
    for (int64_t k = first; k < first + t.count; k++)
      w.push_back(way.exclude_outside && inside(k) != k
                      ? 0
                      : weight(way, (double(k) - x) * narrowing));
    const double all = std::accumulate(w.begin(), w.end(), 0.0);
    for (int64_t k = 0; k < t.count; k++) {
      t.places.push_back(inside(first + k));
      t.weights.push_back(float(w[size_t(k)] / all));
    }
  }
  return t;
}

// Each element several times in a row: movement alone.
std::optional<int64_t> repeats(const Taps& t, const Axis& a) {
  if (t.count != 1 || a.in == 0 || a.out % a.in != 0) return std::nullopt;
  const int64_t n = a.out / a.in;
  for (int64_t i = 0; i < a.out; i++)
    if (t.places[size_t(i)] != i / n) return std::nullopt;
  return n;
}

Tensor resized_axis(const Tensor& x, int64_t axis, const Way& way, const Axis& a) {
  const Taps t = taps_of(way, a);
  if (const auto n = repeats(t, a)) return x.repeat_interleave(*n, axis);
  const Tensor places = Tensor::from(t.places, {a.out, t.count}, {.device = x.device()});
  if (t.weights.empty()) return x.index_select(axis, places.flatten());
  const Tensor weights = Tensor::from(t.weights, {a.out, t.count}, {.device = x.device()});
  Sizes along(size_t(x.dim()), 1);
  along[size_t(axis)] = a.out;
  Tensor sum;
  for (int64_t k = 0; k < t.count; k++) {
    const Tensor part = x.index_select(axis, places.select(1, k)) *
                        weights.select(1, k).reshape(along).cast(x.dtype());
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor extrapolated(const Tensor& x, int64_t axis, const Way& way, const Axis& a) {
  require_reckonable(double(a.out));
  std::vector<uint8_t> outside;
  for (int64_t i = 0; i < a.out; i++) {
    const double at = place(way, a, i);
    outside.push_back(at < 0 || at > double(a.in - 1));
  }
  if (std::ranges::count(outside, 1) == 0) return x;
  Sizes along(size_t(x.dim()), 1);
  along[size_t(axis)] = a.out;
  const Tensor mask =
      Tensor::from(outside, along, {.device = x.device()}).cast(DType::Bool);
  return x.masked_fill(mask, way.extrapolation);
}

Tensor resized(const Tensor& x, const Way& way, const std::vector<int64_t>& axes,
               const std::vector<Axis>& each) {
  const bool reckons = way.mode != "nearest";
  Tensor out = reckons ? x.cast(accumulator(is_float(x.dtype()) ? x.dtype() : DType::F32)) : x;
  for (size_t i = 0; i < axes.size(); i++)
    if (each[i].in != each[i].out || each[i].scale != 1 || way.coordinates == "tf_crop_and_resize")
      out = resized_axis(out, axes[i], way, each[i]);
  if (way.coordinates == "tf_crop_and_resize")
    for (size_t i = 0; i < axes.size(); i++) out = extrapolated(out, axes[i], way, each[i]);
  return reckons ? saturated(out, element_of(x.dtype())) : out;
}

void set_sizes(std::vector<Axis>& each, const std::vector<int64_t>& sizes,
               const std::string& policy) {
  for (size_t i = 0; i < each.size(); i++) {
    each[i].out = sizes.at(i);
    each[i].scale = double(sizes[i]) / double(each[i].in);
  }
  if (policy == "stretch") return;
  double scale = each.at(0).scale;
  for (const Axis& a : each)
    scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
  for (Axis& a : each) {
    a.scale = scale;
    a.out = whole(std::floor(scale * double(a.in) + 0.5));
  }
}

void set_scales(std::vector<Axis>& each, const std::vector<double>& scales) {
  for (size_t i = 0; i < each.size(); i++) {
    each[i].scale = scales.at(i);
    each[i].out = whole(std::floor(double(each[i].in) * scales[i]));
  }
}

std::vector<Axis> axes_in(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<Axis> out;
  for (const int64_t a : axes) out.push_back({.in = x.size(a), .out = x.size(a)});
  return out;
}

Outputs resize(const Node& node) {
  const Tensor x = node.tensor(0);
  Way way{.coordinates = node.text("coordinate_transformation_mode", "half_pixel"),
          .mode = node.text("mode", "nearest"),
          .nearest = node.text("nearest_mode", "round_prefer_floor"),
          .cubic = node.number("cubic_coeff_a", -0.75),
          .extrapolation = node.number("extrapolation_value", 0),
          .antialias = node.integer("antialias", 0) != 0,
          .exclude_outside = node.integer("exclude_outside", 0) != 0};
  std::vector<int64_t> axes(size_t(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  axes = axes_of(node.integers("axes", axes), x.dim());
  std::vector<Axis> each = axes_in(x, axes);
  const auto scales = node.has(2) ? node.floats(2) : std::vector<double>();
  if (!scales.empty())
    set_scales(each, scales);
  else
    set_sizes(each, node.integers(3), node.text("keep_aspect_ratio_policy", "stretch"));
  if (way.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = node.floats(1);
    for (size_t i = 0; i < each.size(); i++)
      each[i].roi_begin = roi.at(i), each[i].roi_end = roi.at(i + each.size());
  }
  return {resized(x, way, axes, each)};
}

// Resize before version 11, and Upsample: scales alone, places are divided by them.
Outputs upsample(const Node& node) {
  const Tensor x = node.tensor(0);
  const Way way{.coordinates = "asymmetric",
                .mode = node.text("mode", "nearest"),
                .nearest = "floor"};
  std::vector<int64_t> axes(size_t(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<Axis> each = axes_in(x, axes);
  set_scales(each, node.has("scales") ? node.numbers("scales") : node.floats(1));
  return {resized(x, way, axes, each)};
}

Outputs grid_sample(const Node& node) {
  std::string mode = node.text("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  return {node.tensor(0).grid_sample(node.tensor(1), mode, node.text("padding_mode", "zeros"),
                                     node.integer("align_corners", 0) != 0)};
}

Outputs affine_grid(const Node& node) {
  return {Tensor::affine_grid(node.tensor(0), Sizes(node.integers(1)),
                              node.integer("align_corners", 0) != 0)};
}

constexpr Operator kRows[] = {
    {"", "AffineGrid", 20, kNewest, affine_grid},
    {"", "GridSample", 16, kNewest, grid_sample},
    {"", "Resize", 10, 10, upsample},
    {"", "Resize", 11, kNewest, resize},
    {"", "Upsample", 7, kNewest, upsample},
};

}  // namespace

std::span<const Operator> resize_operators() { return kRows; }

}  // namespace tuff::onnx
