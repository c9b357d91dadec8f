// Shapes and movement: what elements stand where, without a change of them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "onnx/host.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// ---- shapes as values

Outputs shape(const Node& node) {
  const Sizes sizes = node.value(0).sizes();
  const auto rank = int64_t(sizes.size());
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = inside(node.integer("start", 0)), end = inside(node.integer("end", rank));
  std::vector<Size> out;
  for (int64_t i = start; i < end; i++) out.push_back(sizes[size_t(i)]);
  return {host_integers(std::move(out))};
}

Outputs size(const Node& node) {
  Size out = 1;
  for (const Size& s : node.value(0).sizes()) out *= s;
  return {host_integer(out)};
}

Outputs identity(const Node& node) { return {node.has(0) ? node.value(0) : Value()}; }

Outputs constant(const Node& node) {
  if (node.has("value")) {
    Value out = node.constant("value");
    // No parameter, so that a single float is a number as well, which kernels hold.
    if (out.has_numbers() && out.numbers().count() == 1) return {out.numbers()};
    return {std::move(out)};
  }
  if (node.has("value_int")) return {host_integer(node.integer("value_int"))};
  if (node.has("value_ints")) {
    const std::vector<int64_t> v = node.integers("value_ints");
    return {host_integers({v.begin(), v.end()})};
  }
  HostNumbers out{.dtype = DType::F32, .shape = {}, .ints = {}, .floats = {}};
  if (node.has("value_float")) {
    out.floats = {node.number("value_float")};
    return {out};
  }
  if (!node.has("value_floats")) fail<Unsupported>("a constant that is no tensor of numbers");
  out.floats = node.numbers("value_floats");
  out.shape = {int64_t(out.floats.size())};
  return {out};
}

// So few are reckoned with, as shapes are.
constexpr int64_t kMostFilled = 64;

bool few(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes) {
    if (s < 0 || s > kMostFilled) return false;
    count *= s;
    if (count > kMostFilled) return false;
  }
  return true;
}

Outputs constant_of_shape(const Node& node) {
  const std::vector<Size> extents = node.extents(0);
  HostNumbers value{.dtype = DType::F32, .shape = {}, .ints = {}, .floats = {0}};
  io::onnx::ElementType type = io::onnx::ElementType::Undefined;
  if (node.has("value")) {
    const Value given = node.constant("value");
    value = given.numbers(), type = given.element();
  }
  value.shape = {};
  const bool known = std::ranges::all_of(extents, [](const Size& s) { return s.is_number(); });
  if (known && !value.is_float() && !is_narrow(type)) {
    const std::vector<int64_t> sizes(extents.begin(), extents.end());
    if (few(sizes)) return {host_expand(value, sizes)};
  }
  Sizes sizes;
  for (const Size& s : extents) sizes.push_back(s);
  return {Value(Tensor::full(sizes, value.number(0), node.options(value.dtype))).of(type)};
}

// ---- other shapes of the same elements

Value reshaped(const Value& x, const Sizes& sizes, const std::string& device) {
  const bool known = std::ranges::all_of(sizes, [](const Size& s) { return s.is_number(); });
  if (!x.folds() || !known) return x.tensor(device).reshape(sizes);
  HostNumbers out = x.numbers();
  Size count = 1;
  for (const Size& s : sizes) count *= s;
  if (count != out.count() || std::ranges::any_of(sizes, [](const Size& s) { return s < 0; }))
    fail<ShapeError>("{} cannot become {}", shape_text(x.sizes()), shape_text(sizes));
  out.shape = sizes;
  return out;
}

// -1 becomes what is left, where all others are numbers.
void settle_rest(Sizes& sizes, const Sizes& of) {
  const auto rest = std::ranges::find_if(
      sizes, [](const Size& s) { return s.is_number() && int64_t(s) == -1; });
  if (rest == sizes.end()) return;
  Size all = 1, others = 1;
  for (const Size& s : of) all *= s;
  for (auto it = sizes.begin(); it != sizes.end(); ++it)
    if (it != rest) others *= *it;
  if (!all.is_number() || !others.is_number()) return;
  if (int64_t(others) == 0 || int64_t(all) % int64_t(others) != 0)
    fail<ShapeError>("{} cannot become {}", shape_text(of), shape_text(sizes));
  *rest = int64_t(all) / int64_t(others);
}

Outputs reshape(const Node& node) {
  const Value& x = node.value(0);
  const Sizes from = x.sizes();
  std::vector<Size> wanted;
  if (node.version() >= 5) {
    wanted = node.extents(1);
  } else {
    const std::vector<int64_t> attribute = node.integers("shape");
    wanted.assign(attribute.begin(), attribute.end());
  }
  Sizes sizes;
  for (size_t i = 0; i < wanted.size(); i++) {
    const bool copies = wanted[i].is_number() && int64_t(wanted[i]) == 0 &&
                        !node.integer("allowzero", 0);
    if (copies && i >= from.size())
      fail<ShapeError>("{} has no axis {} to keep", shape_text(from), i);
    sizes.push_back(copies ? from[i] : wanted[i]);
  }
  settle_rest(sizes, from);
  return {reshaped(x, sizes, node.device())};
}

Outputs flatten(const Node& node) {
  const Tensor x = node.tensor(0);
  int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += x.dim();
  if (axis < 0 || axis > x.dim()) fail<IndexError>("axis {} of {} axes", axis, x.dim());
  Size before = 1, behind = 1;
  for (int64_t i = 0; i < x.dim(); i++) (i < axis ? before : behind) *= x.size(i);
  return {x.reshape({before, behind})};
}

Outputs squeeze(const Node& node) {
  const Value& x = node.value(0);
  const auto given = node.integers("axes", 1);
  const Sizes from = x.sizes();
  std::vector<bool> gone(from.size());
  if (given)
    for (const int64_t a : axes_of(*given, x.rank())) gone[size_t(a)] = true;
  Sizes sizes;
  for (size_t i = 0; i < from.size(); i++) {
    const bool is_one = from[i].is_number() && int64_t(from[i]) == 1;
    if (gone[i] && from[i].is_number() && !is_one)
      fail<ShapeError>("axis {} of {} is not of extent 1", i, shape_text(from));
    if (given ? !gone[i] : !is_one) sizes.push_back(from[i]);
  }
  return {reshaped(x, sizes, node.device())};
}

Outputs unsqueeze(const Node& node) {
  const Value& x = node.value(0);
  const auto given = node.integers("axes", 1);
  if (!given) fail<InvalidArgument>("axes are missing");
  const int64_t rank = x.rank() + int64_t(given->size());
  const std::vector<int64_t> axes = axes_of(*given, rank);
  Sizes sizes, from = x.sizes();
  for (int64_t i = 0, k = 0; i < rank; i++)
    sizes.push_back(std::ranges::count(axes, i) ? Size(1) : from.at(size_t(k++)));
  return {reshaped(x, sizes, node.device())};
}

Outputs transpose(const Node& node) {
  const Value& x = node.value(0);
  std::vector<int64_t> axes(size_t(x.rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  axes = node.integers("perm", axes);
  if (x.folds() && axes.size() == size_t(x.rank()))
    return {host_transpose(x.numbers(), axes_of(axes, x.rank()))};
  return {node.tensor(0).permute(axes)};
}

Sizes sizes_of(const std::vector<Size>& extents) {
  Sizes out;
  for (const Size& s : extents) out.push_back(s);
  return out;
}

Outputs expand(const Node& node) {
  const Value& x = node.value(0);
  const Sizes sizes = broadcast_sizes(x.sizes(), sizes_of(node.extents(1)));
  const bool known = std::ranges::all_of(sizes, [](const Size& s) { return s.is_number(); });
  if (node.folds() && known && few(sizes)) return {host_expand(x.numbers(), sizes)};
  return {node.tensor(0).expand(sizes)};
}

// Before version 6 one axis is repeated.
Outputs tile(const Node& node) {
  const Tensor x = node.tensor(0);
  if (node.version() >= 6) return {x.repeat(sizes_of(node.extents(1)))};
  Sizes repeats(size_t(x.dim()), 1);
  repeats.at(size_t(node.integer(2))) = node.integer(1);
  return {x.repeat(repeats)};
}

Outputs depth_to_space(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t b = node.positive("blocksize");
  const Size n = x.size(0), c = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  if (node.text("mode", "DCR") == "CRD")
    return {x.reshape({n, c, b, b, h, w})
                .permute({0, 1, 4, 2, 5, 3})
                .reshape({n, c, h * b, w * b})};
  return {x.reshape({n, b, b, c, h, w}).permute({0, 3, 4, 1, 5, 2}).reshape({n, c, h * b, w * b})};
}

Outputs space_to_depth(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t b = node.positive("blocksize");
  const Size n = x.size(0), c = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  const bool by_channel = node.text("mode", "DCR") == "CRD";
  return {x.reshape({n, c, h, b, w, b})
              .permute(by_channel ? Axes{0, 1, 3, 5, 2, 4} : Axes{0, 3, 5, 1, 2, 4})
              .reshape({n, c * (b * b), h, w})};
}

// ---- parts

Outputs concat(const Node& node) {
  const int64_t axis = axis_of(node.integer("axis", 1), node.value(0).rank());
  if (node.folds()) {
    std::vector<HostNumbers> parts;
    for (const Value& v : node.values()) parts.push_back(v.numbers());
    return {host_concat(parts, axis)};
  }
  return {Tensor::cat(node.tensors(), axis)};
}

Sizes part_sizes(const Node& node, const Size& extent) {
  if (const auto given = node.integers("split", 1)) return Sizes(*given);
  // As even as can be, the last one shorter.
  const int64_t count = node.positive("num_outputs", int64_t(node.output_count()));
  require_reckonable(double(count));
  const Size each = (extent + (count - 1)) / count;
  Sizes out(size_t(count), each);
  out.back() = extent - each * (count - 1);
  return out;
}

Outputs split(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t axis = axis_of(node.integer("axis", 0), x.dim());
  Outputs out;
  for (const Tensor& part : x.split_with_sizes(part_sizes(node, x.size(axis)), axis))
    out.emplace_back(part);
  return out;
}

Size bounded(const Size& s) {
  constexpr int64_t kFar = int64_t{1} << 40;
  return s.is_number() ? Size(std::clamp<int64_t>(s, -kFar, kFar)) : s;
}

// The positions that NumPy's start:stop:step has.
std::vector<int64_t> slice_places(int64_t n, int64_t start, int64_t stop, int64_t step) {
  const auto inside = [&](int64_t i) {
    const int64_t from_front = i < 0 ? i + n : i;
    return step > 0 ? std::clamp<int64_t>(from_front, 0, n)
                    : std::clamp<int64_t>(from_front, -1, n - 1);
  };
  std::vector<int64_t> out;
  const int64_t last = inside(stop);
  for (int64_t i = inside(start); step > 0 ? i < last : i > last; i += step) out.push_back(i);
  return out;
}

Value sliced(const Value& x, int64_t axis, const Size& start, const Size& stop, int64_t step,
             const std::string& device) {
  if (step == 0) fail<InvalidArgument>("a step of 0");
  if (x.folds() && start.is_number() && stop.is_number()) {
    const HostNumbers n = x.numbers();
    return host_take(n, axis, slice_places(n.shape[size_t(axis)], start, stop, step));
  }
  return x.tensor(device).slice(axis, start, stop, step);
}

// Attributes before version 10, inputs since then.
Outputs slice(const Node& node) {
  Value x = node.value(0);
  std::vector<Size> starts, stops;
  std::optional<std::vector<int64_t>> axes;
  if (node.version() < 10) {
    const auto a = node.integers("starts"), b = node.integers("ends");
    starts.assign(a.begin(), a.end());
    stops.assign(b.begin(), b.end());
    if (node.has("axes")) axes = node.integers("axes");
  } else {
    starts = node.extents(1), stops = node.extents(2);
    if (node.has(3)) axes = node.integers(3);
  }
  std::vector<int64_t> steps(starts.size(), 1);
  if (node.has(4)) steps = node.integers(4);
  if (stops.size() != starts.size() || steps.size() != starts.size() ||
      (axes && axes->size() != starts.size()))
    fail<InvalidArgument>("starts, ends, axes and steps differ in number");
  for (size_t i = 0; i < starts.size(); i++) {
    const int64_t axis = axis_of(axes ? (*axes)[i] : int64_t(i), x.rank());
    x = sliced(x, axis, bounded(starts[i]), bounded(stops[i]), bounded(steps[i]), node.device());
  }
  return {x};
}

// ---- padding

Number padding_value(const Node& node) {
  if (node.version() < 11) return node.number("value", 0);
  if (!node.has(2)) return 0;
  return node.value(2).numbers().number(0);
}

PadMode padding_mode(const std::string& mode) {
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Replicate;
  if (mode == "wrap") return PadMode::Circular;
  fail<InvalidArgument>("the padding mode '{}'", mode);
}

// A mirror image or a repetition that reaches further than the axis is long: as often as it takes.
Tensor padded_far(const Tensor& x, int64_t axis, int64_t before, int64_t behind, PadMode mode) {
  const int64_t n = x.size(axis);
  if (n == 0) fail<ShapeError>("an axis of extent 0 has nothing to repeat");
  require_reckonable(double(before) + double(n) + double(behind));
  const int64_t period = mode == PadMode::Reflect ? std::max<int64_t>(2 * n - 2, 1) : n;
  std::vector<int64_t> places;
  for (int64_t i = -before; i < n + behind; i++) {
    const int64_t at = ((i % period) + period) % period;
    places.push_back(mode == PadMode::Replicate ? std::clamp<int64_t>(i, 0, n - 1)
                     : at < n                   ? at
                                                : period - at);
  }
  return x.index_select(axis, Tensor::from(places, {int64_t(places.size())},
                                           {.device = x.device()}));
}

Outputs pad(const Node& node) {
  Tensor x = node.tensor(0);
  const std::string mode = node.text("mode", "constant");
  std::vector<int64_t> pads = node.version() >= 11 ? node.integers(1)
                              : node.has("pads")   ? node.integers("pads")
                                                   : node.integers("paddings");
  std::vector<int64_t> axes(pads.size() / 2);
  std::iota(axes.begin(), axes.end(), 0);
  axes = axes_of(node.has(3) ? node.integers(3) : axes, x.dim());
  if (pads.size() != 2 * axes.size())
    fail<InvalidArgument>("{} paddings for {} axes", pads.size(), axes.size());
  std::vector<int64_t> flat(size_t(x.dim()) * 2);
  for (size_t i = 0; i < axes.size(); i++) {
    const int64_t before = pads[i], behind = pads[i + axes.size()];
    if (mode == "constant" || before < 0 || behind < 0) {
      const auto at = size_t(x.dim() - 1 - axes[i]) * 2;
      const bool all = mode == "constant";
      flat[at] = all ? before : std::min<int64_t>(before, 0);
      flat[at + 1] = all ? behind : std::min<int64_t>(behind, 0);
    }
  }
  if (std::ranges::any_of(flat, [](int64_t p) { return p != 0; }))
    x = x.pad(flat, padding_value(node)).cast(x.dtype());
  for (size_t i = 0; mode != "constant" && i < axes.size(); i++) {
    const int64_t before = std::max<int64_t>(pads[i], 0),
                  behind = std::max<int64_t>(pads[i + axes.size()], 0);
    if (before || behind) x = padded_far(x, axes[i], before, behind, padding_mode(mode));
  }
  return {x};
}

// Cropped from, or padded around, the middle.
Outputs center_crop_pad(const Node& node) {
  Tensor x = node.tensor(0);
  const std::vector<int64_t> wanted = node.integers(1);
  std::vector<int64_t> axes(size_t(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  axes = axes_of(node.integers("axes", axes), x.dim());
  if (wanted.size() != axes.size())
    fail<InvalidArgument>("{} extents for {} axes", wanted.size(), axes.size());
  for (size_t i = 0; i < axes.size(); i++) {
    const int64_t n = x.size(axes[i]), more = wanted[i] - n;
    if (more <= 0) {
      x = x.narrow(axes[i], -more / 2, wanted[i]);
      continue;
    }
    std::vector<int64_t> flat(size_t(x.dim()) * 2);
    const auto at = size_t(x.dim() - 1 - axes[i]) * 2;
    flat[at] = more / 2, flat[at + 1] = more - more / 2;
    x = x.pad(flat);
  }
  return {x};
}

// ---- what is made of shapes

constexpr double kMostRange = 4611686018427387904.0;  // 2^62: differences stay inside int64

Outputs range(const Node& node) {
  const HostNumbers start = node.value(0).numbers(), limit = node.value(1).numbers(),
                    delta = node.value(2).numbers();
  const DType dtype = start.dtype;
  if (start.is_float()) {
    const double from = start.floats.at(0), step = delta.floats.at(0);
    const int64_t count =
        std::max<int64_t>(0, whole(std::ceil((limit.floats.at(0) - from) / step)));
    const Tensor steps = Tensor::arange(0, count, 1, node.options(DType::I32));
    const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
    return {(steps.cast(wide) * step + from).cast(dtype)};
  }
  const Size from = start.ints.at(0), to = limit.ints.at(0), step = delta.ints.at(0);
  if (!from.is_number() || !to.is_number())
    return {Tensor::arange(Number(from), Number(to), Number(step), node.options(dtype))};
  const int64_t by = step;
  if (by == 0) fail<InvalidArgument>("a step of 0");
  if (std::max(std::abs(double(from)), std::abs(double(to))) > kMostRange ||
      std::abs(double(by)) > kMostRange)
    fail<InvalidArgument>("a range from {} to {} by {}", from.str(), to.str(), by);
  const int64_t count = std::max<int64_t>(
      0, (int64_t(to) - int64_t(from) + by + (by > 0 ? -1 : 1)) / by);
  if (count > kMostFilled || !node.folds())
    return {Tensor::arange(Number(0), Number(count), 1, node.options(dtype)) * by + int64_t(from)};
  HostNumbers out{.dtype = dtype, .shape = {count}, .ints = {}, .floats = {}};
  for (int64_t i = 0; i < count; i++) out.ints.emplace_back(int64_t(from) + i * by);
  return {out};
}

Outputs eye_like(const Node& node) {
  const Value& x = node.value(0);
  const Sizes sizes = x.sizes();
  if (sizes.size() != 2) fail<ShapeError>("a matrix is wanted, not {}", shape_text(sizes));
  const int64_t n = sizes[0], m = sizes[1], k = node.integer("k", 0);
  const auto counter = [&](int64_t count) {
    return Tensor::arange(0, count, 1, node.options(DType::I32));
  };
  const Tensor on = counter(n).reshape({n, 1}) + k == counter(m).reshape({1, m});
  return {on.cast(node.dtype("dtype").value_or(x.dtype()))};
}

Outputs trilu(const Node& node) {
  const int64_t k = node.has(1) ? node.integer(1) : 0;
  const Tensor x = node.tensor(0);
  return {node.integer("upper", 1) ? x.triu(k) : x.tril(k)};
}

constexpr Operator kRows[] = {
    {"", "CenterCropPad", 18, kNewest, center_crop_pad, 0},
    {"", "Concat", 1, kNewest, concat, 0},
    {"", "Constant", 1, kNewest, constant},
    {"", "ConstantOfShape", 9, kNewest, constant_of_shape},
    {"", "DepthToSpace", 1, kNewest, depth_to_space, 0},
    {"", "Expand", 8, kNewest, expand, 0},
    {"", "EyeLike", 9, kNewest, eye_like},
    {"", "Flatten", 1, kNewest, flatten, 0},
    {"", "Identity", 1, kNewest, identity},
    {"", "Pad", 1, kNewest, pad, 0},
    {"", "Range", 11, kNewest, range},
    {"", "Reshape", 1, kNewest, reshape, 0},
    {"", "Shape", 1, kNewest, shape},
    {"", "Size", 1, kNewest, size},
    {"", "Slice", 1, kNewest, slice, 0},
    {"", "SpaceToDepth", 1, kNewest, space_to_depth, 0},
    {"", "Split", 2, kNewest, split, 0},
    {"", "Squeeze", 1, kNewest, squeeze, 0},
    {"", "Tile", 1, kNewest, tile, 0},
    {"", "Transpose", 1, kNewest, transpose, 0},
    {"", "Trilu", 14, kNewest, trilu, 0},
    {"", "Unsqueeze", 1, kNewest, unsqueeze, 0},
};

}  // namespace

std::span<const Operator> shape_operators() { return kRows; }

}  // namespace tuff::onnx
