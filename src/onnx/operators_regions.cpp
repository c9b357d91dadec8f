// What is sampled at places of its own: regions of interest, convolutions with offsets.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// ---- RoiAlign: places are reckoned on the host, from boxes that it reads

struct Corners {
  std::vector<int64_t> places;
  std::vector<float> weights;
};

// The four neighbours of a place in (h, w), in row-major positions; outside all weights are 0.
void add_corners(Corners& c, double y, double x, int64_t h, int64_t w) {
  const bool outside = y < -1 || y > double(h) || x < -1 || x > double(w);
  y = std::clamp(std::isnan(y) ? 0 : y, 0.0, double(h - 1));
  x = std::clamp(std::isnan(x) ? 0 : x, 0.0, double(w - 1));
  const auto y0 = int64_t(y), x0 = int64_t(x);
  const int64_t y1 = std::min(y0 + 1, h - 1), x1 = std::min(x0 + 1, w - 1);
  const double dy = y - double(y0), dx = x - double(x0);
  const int64_t places[] = {y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1};
  const double weights[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
  for (size_t i = 0; i < 4; i++) {
    c.places.push_back(places[i]);
    c.weights.push_back(outside ? 0 : float(weights[i]));
  }
}

struct RoiOptions {
  int64_t out_h, out_w, ratio, h, w;
  double scale, offset;
  bool takes_largest;
};

// The samples of one cell of one box.
Corners cell_corners(const RoiOptions& o, const double* box, int64_t row, int64_t column) {
  const double x = box[0] * o.scale - o.offset, y = box[1] * o.scale - o.offset;
  double width = box[2] * o.scale - o.offset - x, height = box[3] * o.scale - o.offset - y;
  if (o.offset == 0) width = std::max(width, 1.0), height = std::max(height, 1.0);
  const double cell_h = height / double(o.out_h), cell_w = width / double(o.out_w);
  const int64_t rows = o.ratio > 0 ? o.ratio : std::max<int64_t>(1, whole(std::ceil(cell_h))),
                columns = o.ratio > 0 ? o.ratio : std::max<int64_t>(1, whole(std::ceil(cell_w)));
  require_reckonable(double(rows) * double(columns) * double(o.out_h * o.out_w));
  Corners out;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      add_corners(out, y + cell_h * (double(row) + (double(i) + 0.5) / double(rows)),
                  x + cell_w * (double(column) + (double(k) + 0.5) / double(columns)), o.h, o.w);
  if (!o.takes_largest)
    for (float& weight : out.weights) weight /= float(rows * columns);
  return out;
}

// As many for each cell as the largest has: weights of 0, or the first sample once more.
Corners all_corners(const RoiOptions& o, const std::vector<double>& boxes) {
  std::vector<Corners> cells;
  size_t most = 4;
  for (size_t r = 0; r < boxes.size() / 4; r++)
    for (int64_t i = 0; i < o.out_h * o.out_w; i++) {
      cells.push_back(cell_corners(o, boxes.data() + 4 * r, i / o.out_w, i % o.out_w));
      most = std::max(most, cells.back().places.size());
    }
  Corners out;
  for (Corners& c : cells)
    for (size_t i = 0; i < most; i++) {
      const bool is_there = i < c.places.size();
      out.places.push_back(is_there ? c.places[i] : c.places[0]);
      out.weights.push_back(is_there || o.takes_largest ? c.weights[is_there ? i : 0] : 0);
    }
  return out;
}

Outputs roi_align(const Node& node) {
  const Tensor x = node.tensor(0);
  const std::string coordinates = node.text(
      "coordinate_transformation_mode", node.version() < 16 ? "output_half_pixel" : "half_pixel");
  const RoiOptions o{.out_h = node.positive("output_height", 1),
                     .out_w = node.positive("output_width", 1),
                     .ratio = node.integer("sampling_ratio", 0),
                     .h = x.size(2),
                     .w = x.size(3),
                     .scale = node.number("spatial_scale", 1),
                     .offset = coordinates == "half_pixel" ? 0.5 : 0,
                     .takes_largest = node.text("mode", "avg") == "max"};
  const std::vector<double> boxes = node.floats(1);
  const auto count = int64_t(boxes.size() / 4), cells = o.out_h * o.out_w;
  if (o.h < 1 || o.w < 1) fail<ShapeError>("images {} are empty", shape_text(x.sizes()));
  require_reckonable(double(count) * double(cells) * 4);
  if (count == 0) return {Tensor::empty({0, x.size(1), o.out_h, o.out_w}, node.options(x.dtype()))};
  const Corners c = all_corners(o, boxes);
  const int64_t each = int64_t(c.places.size()) / (count * cells);
  const TensorOptions here{.device = node.device()};
  const Tensor places = Tensor::from(c.places, {count, 1, cells * each}, here),
               weights = Tensor::from(c.weights, {count, 1, cells, each}, here);
  const Tensor taken = x.index_select(0, node.tensor(2))
                           .flatten(2)
                           .gather(2, places.expand({count, x.size(1), cells * each}));
  const Tensor parts = taken.reshape({count, x.size(1), cells, each}) * weights.cast(x.dtype());
  const Tensor out = o.takes_largest ? parts.max({-1}) : parts.sum({-1});
  return {out.reshape({count, x.size(1), o.out_h, o.out_w})};
}

// ---- MaxRoiPool: cells of whole elements (Girshick, 2015), of boxes that the host reads

// Begin and end of a cell along an axis, inside 0..n.
std::pair<int64_t, int64_t> cell_range(double from, double to, int64_t cell, int64_t cells,
                                       int64_t n) {
  const double start = std::round(from), extent = std::max(std::round(to) - start + 1, 1.0),
               each = extent / double(cells);
  const auto inside = [&](double at) {
    return std::clamp<int64_t>(whole(at + start), 0, n);
  };
  return {inside(std::floor(double(cell) * each)), inside(std::ceil(double(cell + 1) * each))};
}

Outputs max_roi_pool(const Node& node) {
  const Tensor x = node.tensor(0);
  const auto pooled = node.integers("pooled_shape");
  const double scale = node.number("spatial_scale", 1);
  const std::vector<double> boxes = node.floats(1);  // (count, 5): image, x1, y1, x2, y2
  std::vector<Tensor> rows;
  for (const size_t i : {0, 1})
    if (pooled.at(i) < 1) fail<InvalidArgument>("pooled_shape holds {}", pooled[i]);
  require_reckonable(double(boxes.size()) * double(pooled[0]) * double(pooled[1]));
  for (size_t r = 0; r < boxes.size() / 5; r++) {
    const double* box = boxes.data() + 5 * r;
    // In the precision of the boxes: what is half a number there is rounded up.
    const auto scaled = [&](size_t i) { return double(float(box[i]) * float(scale)); };
    const Tensor image = x.select(0, whole(box[0]));
    for (int64_t i = 0; i < pooled.at(0) * pooled.at(1); i++) {
      const auto [y0, y1] =
          cell_range(scaled(2), scaled(4), i / pooled[1], pooled[0], image.size(1));
      const auto [x0, x1] =
          cell_range(scaled(1), scaled(3), i % pooled[1], pooled[1], image.size(2));
      rows.push_back(y0 < y1 && x0 < x1
                         ? image.narrow(1, y0, y1 - y0).narrow(2, x0, x1 - x0).max({1, 2})
                         : Tensor::zeros({x.size(1)}, node.options(x.dtype())));
    }
  }
  const auto count = int64_t(boxes.size() / 5);
  if (rows.empty())
    return {Tensor::empty({0, x.size(1), pooled.at(0), pooled.at(1)}, node.options(x.dtype()))};
  return {Tensor::stack(rows)
              .reshape({count, pooled[0], pooled[1], x.size(1)})
              .permute({0, 3, 1, 2})};
}

// ---- DeformConv: each element of a window stands where an offset moves it (Dai et al., 2017)

struct Field {
  Tensor y, x;  // (n, offset groups, window, out_h, out_w)
};

Field moved_places(const Node& node, const Tensor& offset, int64_t kernel_h, int64_t kernel_w,
                   int64_t groups) {
  const auto strides = node.integers("strides", {1, 1}), pads = node.integers("pads", {0, 0, 0, 0}),
             dilations = node.integers("dilations", {1, 1});
  if (strides.size() != 2 || pads.size() != 4 || dilations.size() != 2)
    fail<InvalidArgument>("windows of 2 axes have {} strides, {} pads and {} dilations",
                          strides.size(), pads.size(), dilations.size());
  const int64_t window = kernel_h * kernel_w, out_h = offset.size(2), out_w = offset.size(3);
  const Tensor both =
      offset.reshape({offset.size(0), groups, window, 2, offset.size(2), offset.size(3)});
  const auto counter = [&](int64_t n, const Sizes& sizes) {
    return Tensor::arange(0, n, 1, node.options(DType::F32)).reshape(sizes);
  };
  const Tensor row = counter(kernel_h, {kernel_h, 1}).expand({kernel_h, kernel_w}),
               column = counter(kernel_w, {1, kernel_w}).expand({kernel_h, kernel_w});
  const Tensor y = row.reshape({window, 1, 1}) * double(dilations[0]) +
                   counter(out_h, {out_h, 1}) * double(strides[0]) - double(pads[0]),
               x = column.reshape({window, 1, 1}) * double(dilations[1]) +
                   counter(out_w, {1, out_w}) * double(strides[1]) - double(pads[1]);
  return {both.select(3, 0) + y, both.select(3, 1) + x};
}

// (n, groups, c, h, w) at a field's places, 0 outside: (n, groups, c, window * out_h * out_w).
Tensor sampled(const Tensor& data, const Field& at) {
  const int64_t h = data.size(3), w = data.size(4);
  const Tensor flat = data.flatten(3), y0 = at.y.floor(), x0 = at.x.floor();
  Tensor sum;
  for (int corner = 0; corner < 4; corner++) {
    const Tensor y = y0 + double(corner / 2), x = x0 + double(corner % 2);
    const Tensor inside = (y >= 0) & (y <= double(h - 1)) & (x >= 0) & (x <= double(w - 1));
    const Tensor weight = (1 - (at.y - y).abs()) * (1 - (at.x - x).abs()) * inside.cast(DType::F32);
    const Tensor place = (y.clamp(0.0, double(h - 1)) * double(w) + x.clamp(0.0, double(w - 1)))
                             .cast(DType::I64)
                             .flatten(2)
                             .unsqueeze(2);
    Sizes sizes = place.sizes();
    sizes[2] = flat.size(2);
    const Tensor part =
        flat.gather(3, place.expand(sizes)) * weight.flatten(2).unsqueeze(2).cast(data.dtype());
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Outputs deform_conv(const Node& node) {
  const Tensor x = node.tensor(0), weight = node.tensor(1), offset = node.tensor(2);
  if (x.dim() != 4) fail<Unsupported>("{} axes, 4 are supported", x.dim());
  const int64_t groups = node.positive("group", 1), moves = node.positive("offset_group", 1);
  if (weight.dim() != 4 || offset.dim() != 4)
    fail<ShapeError>("weights {} and offsets {}", shape_text(weight.sizes()),
                     shape_text(offset.sizes()));
  const int64_t n = x.size(0), c = x.size(1), out_c = weight.size(0), kernel_h = weight.size(2),
                kernel_w = weight.size(3), window = kernel_h * kernel_w,
                points = int64_t(offset.size(2)) * int64_t(offset.size(3));
  const Field at = moved_places(node, offset.cast(DType::F32), kernel_h, kernel_w, moves);
  Tensor columns = sampled(x.reshape({n, moves, c / moves, x.size(2), x.size(3)}), at);
  if (node.has(4)) columns = columns * node.tensor(4).reshape({n, moves, 1, window * points});
  columns = columns.reshape({n, groups, c / groups * window, points});
  Tensor y = weight.reshape({groups, out_c / groups, c / groups * window}).matmul(columns);
  y = y.reshape({n, out_c, offset.size(2), offset.size(3)});
  return {node.has(3) ? y + node.tensor(3).reshape({1, out_c, 1, 1}) : y};
}

constexpr Operator kRows[] = {
    {"", "DeformConv", 19, kNewest, deform_conv},
    {"", "MaxRoiPool", 1, kNewest, max_roi_pool},
    {"", "RoiAlign", 10, kNewest, roi_align},
};

}  // namespace

std::span<const Operator> region_operators() { return kRows; }

}  // namespace tuff::onnx
