// Convolutions and pools of the largest element, as Conv and MaxPool. What they are is found by
// building them again: equal graphs are the same nodes.
#include <algorithm>
#include <limits>

#include "onnx/exporter.h"
#include "tensor/impl.h"
#include "tensor/windows.h"

namespace tuff::onnx {
namespace {

using ir::Dim;
using ir::IntVec;
using ir::Op;
using ir::Shape;
using ir::UOp;
using detail::Windows;
using Given = std::span<const Exported>;

constexpr size_t kMostAxes = 3;
constexpr int64_t kMostTries = 4096;  // of stride and dilation
constexpr size_t kMostGrowths[kMostAxes] = {1024, 32, 10};  // of each of so many axes

bool are_numbers(const Shape& s, size_t from) {
  return std::all_of(s.begin() + std::ptrdiff_t(from), s.end(),
                     [](const Dim& d) { return d.is_const(); });
}

// What an axis may have been cut into windows by.
struct Cut {
  int64_t stride, dilation;
};
std::vector<Cut> cuts(int64_t n, int64_t kernel, int64_t windows) {
  std::vector<Cut> out;
  for (int64_t d = 1; d == 1 || d * (kernel - 1) < n; d++) {
    const int64_t room = n - d * (kernel - 1) - 1;
    if (room < 0) break;
    for (int64_t s = 1; s <= std::max<int64_t>(room, 1) + 1; s++)
      if (room / s + 1 == windows) out.push_back({s, d});
    if (kernel == 1) break;
  }
  return out;
}

// The windows that make the node, of those that fit the extents: equal along all axes first.
std::optional<Windows> windows_of(const std::vector<int64_t>& image,
                                  const std::vector<int64_t>& kernel,
                                  const std::vector<int64_t>& windows,
                                  const std::function<bool(const Windows&)>& make_it) {
  std::vector<std::vector<Cut>> axes;
  int64_t tries = 1;
  for (size_t i = 0; i < image.size(); i++) {
    axes.push_back(cuts(image[i], kernel[i], windows[i]));
    tries *= int64_t(axes.back().size());
    if (tries == 0 || tries > kMostTries) return std::nullopt;
  }
  const auto tried = [&](const std::vector<Cut>& chosen) -> std::optional<Windows> {
    Windows w{kernel, {}, {}};
    for (const Cut& c : chosen) w.stride.push_back(c.stride), w.dilation.push_back(c.dilation);
    return make_it(w) ? std::optional(w) : std::nullopt;
  };
  for (const Cut& c : axes[0])
    if (const auto w = tried(std::vector<Cut>(image.size(), c))) return w;
  for (int64_t t = 0; t < tries; t++) {
    std::vector<Cut> chosen;
    int64_t rest = t;
    for (const auto& a : axes) {
      chosen.push_back(a[size_t(rest) % a.size()]);
      rest /= int64_t(a.size());
    }
    if (const auto w = tried(chosen)) return w;
  }
  return std::nullopt;
}

std::vector<int64_t> numbers(const Shape& s, size_t from, size_t count) {
  std::vector<int64_t> out;
  for (size_t i = from; i < from + count; i++) out.push_back(s[i].value());
  return out;
}

// Nodes that windows may be cut from: this one and those below movement.
std::vector<UOp> images_below(const UOp& u, size_t rank) {
  std::vector<UOp> out;
  for (UOp x = u;; x = x->src(0)) {
    if (x->shape.size() == rank && are_numbers(x->shape, 1)) out.push_back(x);
    if (!ir::is_movement(x->op)) return out;
  }
}

Tensor wrapped(const UOp& u) { return detail::wrap(u, ir::device_of(u)); }

// Zeros around the last axes alone.
struct Padded {
  UOp image;
  std::vector<int64_t> pads;  // in front of each axis, and behind each
};
Padded without_pads(const UOp& x, size_t axes) {
  Padded out{x, std::vector<int64_t>(2 * axes, 0)};
  if (x->op != Op::Pad) return out;
  const auto& pairs = x->get<ir::Pairs>();
  for (size_t i = 0; i < pairs.size(); i++) {
    const bool is_number = pairs[i].a.is_const() && pairs[i].b.is_const();
    if (!is_number || (i < 2 && !(pairs[i].a == 0 && pairs[i].b == 0)))
      return {x, std::vector<int64_t>(2 * axes, 0)};
    if (i < 2) continue;
    out.pads[i - 2] = pairs[i].a.value();
    out.pads[axes + i - 2] = pairs[i].b.value();
  }
  out.image = x->src(0);
  return out;
}

AttributeList attributes_of(const Windows& w, const std::vector<int64_t>& pads) {
  return {attribute("dilations", w.dilation), attribute("kernel_shape", w.kernel),
          attribute("pads", pads), attribute("strides", w.stride)};
}

struct Convolution {
  Padded x;
  UOp weight;
  Windows windows;
  int64_t groups;
};

// The source is (N, groups, outputs, inputs, kernel..., windows...): see detail::correlated().
std::optional<Convolution> convolution_of(Exporter& e, const UOp& u) {
  if (u->op != Op::Reduce || u->src(0)->op != Op::Mul) return std::nullopt;
  const Shape& all = u->src(0)->shape;
  const size_t axes = all.size() < 6 ? 0 : (all.size() - 4) / 2;
  if (axes < 1 || axes > kMostAxes || all.size() % 2 || !are_numbers(all, 1)) return std::nullopt;
  const std::vector<int64_t> kernel = numbers(all, 4, axes), out = numbers(all, 4 + axes, axes);
  const int64_t groups = all[1].value(), inputs = all[3].value();
  const UOp in = narrow(u->src(0)->src(0)), ker = narrow(u->src(0)->src(1));
  Shape of_weight{Dim(groups * all[2].value()), Dim(inputs)};
  for (const int64_t k : kernel) of_weight.emplace_back(k);
  if (ir::element_count(ker->shape) != ir::element_count(of_weight)) return std::nullopt;
  const UOp weight = ir::reshape(ker, of_weight);
  for (const UOp& x : images_below(in, axes + 2)) {
    if (!(x->shape[0] == all[0]) || !(x->shape[1] == groups * inputs)) continue;
    const auto again = [&](const Windows& w) {
      const Tensor y = detail::correlated("export", wrapped(x), wrapped(weight), w, groups);
      const UOp made = e.plain(detail::uop(y));
      return made == u || (made->op == Op::Reshape && made->src(0) == u);
    };
    if (const auto w = windows_of(numbers(x->shape, 2, axes), kernel, out, again))
      return Convolution{without_pads(x, axes), weight, *w, groups};
  }
  return std::nullopt;
}

Exporter::Plan convolution(Exporter& e, const Convolution& c, const UOp& u) {
  return {{c.x.image, c.weight}, [&e, c, u](Given from) {
            AttributeList attributes = attributes_of(c.windows, c.x.pads);
            attributes.push_back(attribute("group", c.groups));
            const std::string y = e.node("Conv", {e.exact(from[0], c.x.image->shape),
                                                  e.exact(from[1], c.weight->shape)},
                                         std::move(attributes));
            Shape made{u->shape[0], c.weight->shape[0]};
            made.insert(made.end(), u->shape.end() - std::ptrdiff_t(c.windows.axes()),
                        u->shape.end());
            if (unit_map(made, u->shape)) return Exported{y, made, u->shape};
            return Exported{e.reshaped(y, made, u->shape), u->shape, u->shape};
          }};
}

// Around an image stands what is less than all else: where(inside, padded image, -inf).
Padded without_lowest(Exporter& e, const UOp& x, size_t axes) {
  const Padded none{x, std::vector<int64_t>(2 * axes, 0)};
  if (x->op != Op::Where || !is_float(x->dtype)) return none;
  const Padded found = without_pads(x->src(1), axes);
  if (found.image == x->src(1)) return none;
  detail::Sides sides;
  for (size_t i = 0; i < axes; i++) sides.emplace_back(found.pads[i], found.pads[axes + i]);
  const double lowest = has_infinity(x->dtype) ? -std::numeric_limits<double>::infinity()
                                               : -largest_value(x->dtype);
  const Tensor again = detail::padded(wrapped(found.image), sides, lowest);
  return e.is(again, x) ? found : none;
}

// Windows of an image, each reduced to a value: the source is (N, C, windows..., kernel...).
struct Pool {
  UOp image;
  Windows windows;
};
std::optional<Pool> pool_of(Exporter& e, const UOp& u, Op op) {
  if (u->op != Op::Reduce || u->get<ir::ReduceArg>().op != op || !is_float(u->dtype))
    return std::nullopt;
  const Shape& all = u->src(0)->shape;
  const IntVec& reduced = u->get<ir::ReduceArg>().axes;
  const size_t axes = all.size() < 4 ? 0 : (all.size() - 2) / 2;
  if (axes < 1 || axes > kMostAxes || all.size() % 2 || !are_numbers(all, 1)) return std::nullopt;
  if (reduced.front() < int64_t(2 + axes)) return std::nullopt;
  const std::vector<int64_t> kernel = numbers(all, 2 + axes, axes), out = numbers(all, 2, axes);
  for (size_t i = 0; i < axes; i++)
    if (kernel[i] != 1 && std::ranges::find(reduced, int64_t(2 + axes + i)) == reduced.end())
      return std::nullopt;
  for (const UOp& x : images_below(u->src(0), axes + 2)) {
    if (!(x->shape[0] == all[0]) || !(x->shape[1] == all[1])) continue;
    const auto again = [&](const Windows& w) {
      return e.is(detail::windows_of_axes(wrapped(x), w), u->src(0));
    };
    if (const auto w = windows_of(numbers(x->shape, 2, axes), kernel, out, again))
      return Pool{x, *w};
  }
  return std::nullopt;
}

Exporter::Plan pool(Exporter& e, const char* op, const Padded& x, AttributeList attributes,
                    const Shape& made, const UOp& u) {
  return {{x.image}, [&e, op, x, attributes, made, u](Given from) {
            return Exported{e.node(op, {e.exact(from[0], x.image->shape)}, attributes), made,
                            u->shape};
          }};
}

std::optional<Exporter::Plan> max_pool(Exporter& e, const UOp& u) {
  const auto p = pool_of(e, u, Op::Max);
  if (!p) return std::nullopt;
  const size_t axes = p->windows.axes();
  const Padded x = without_lowest(e, p->image, axes);
  const Shape made(u->shape.begin(), u->shape.end() - std::ptrdiff_t(axes));
  return pool(e, "MaxPool", x, attributes_of(p->windows, x.pads), made, u);
}

Tensor averages(const Tensor& x, const Windows& w, const std::vector<int64_t>& padding,
                    bool counts_pads) {
  const PerAxis kernel(w.kernel), stride(w.stride), pads(padding);
  switch (w.axes()) {
    case 1: return x.avg_pool1d(kernel, stride, pads, false, counts_pads);
    case 2: return x.avg_pool2d(kernel, stride, pads, false, counts_pads);
    default: return x.avg_pool3d(kernel, stride, pads, false, counts_pads);
  }
}

// The sum of a window times a number, or over how many of its elements are inside.
std::optional<Exporter::Plan> average_pool(Exporter& e, const UOp& u) {
  if ((u->op != Op::Mul && u->op != Op::Div) || u->dtype != DType::F32) return std::nullopt;
  UOp sum = u->src(0);
  while (sum->op == Op::Reshape) sum = sum->src(0);
  const auto p = pool_of(e, sum, Op::Add);
  if (!p || std::ranges::any_of(p->windows.dilation, [](int64_t d) { return d != 1; }))
    return std::nullopt;
  const size_t axes = p->windows.axes();
  const Padded whole{p->image, std::vector<int64_t>(2 * axes, 0)};
  for (const Padded& x : {without_pads(p->image, axes), whole}) {
    for (const bool counts_pads : {true, false}) {
      const std::vector<int64_t> padding(x.pads.begin(), x.pads.begin() + std::ptrdiff_t(axes));
      const Tensor again = averages(wrapped(x.image), p->windows, padding, counts_pads);
      if (!e.is(again, u)) continue;
      AttributeList attributes = attributes_of(p->windows, x.pads);
      attributes.erase(attributes.begin());  // dilations, which later versions have
      attributes.push_back(attribute("count_include_pad", int64_t(counts_pads)));
      return pool(e, "AveragePool", x, std::move(attributes), u->shape, u);
    }
  }
  return std::nullopt;
}

// ---- transposed convolutions: windows of products, laid over each other

struct Transposed {
  UOp x, weight;
  int64_t groups;
};

// The source is (N, groups, inputs, outputs, kernel..., image...), of which inputs are summed.
std::optional<Transposed> transposed_of(const UOp& u) {
  UOp sum = u;
  const auto is_add = [](const UOp& x) {
    return x->op == Op::Reduce && x->get<ir::ReduceArg>().op == Op::Add;
  };
  while (ir::is_movement(sum->op) || (is_add(sum) && sum->src(0)->op != Op::Mul))
    sum = sum->src(0);
  if (sum == u || !is_add(sum) || sum->get<ir::ReduceArg>().axes != IntVec{2}) return std::nullopt;
  const UOp product = sum->src(0);
  const Shape& all = product->shape;
  const size_t axes = all.size() < 6 ? 0 : (all.size() - 4) / 2;
  if (axes < 1 || axes > kMostAxes || all.size() % 2 || !are_numbers(all, 1) ||
      u->shape.size() != axes + 2 || !are_numbers(u->shape, 1))
    return std::nullopt;
  const int64_t groups = all[1].value(), inputs = all[2].value() * groups;
  Shape of_x{all[0], Dim(inputs)}, of_weight{Dim(inputs), all[3]};
  of_weight.insert(of_weight.end(), all.begin() + 4, all.begin() + 4 + std::ptrdiff_t(axes));
  of_x.insert(of_x.end(), all.begin() + 4 + std::ptrdiff_t(axes), all.end());
  const UOp x = narrow(product->src(0)), weight = narrow(product->src(1));
  Shape seen = all;
  for (size_t i = 3; i < 4 + axes; i++) seen[i] = Dim(1);
  if (x->shape != seen || ir::element_count(weight->shape) != ir::element_count(of_weight) ||
      !(u->shape[0] == all[0]) || !(u->shape[1] == groups * all[3].value()))
    return std::nullopt;
  return Transposed{ir::reshape(x, of_x), ir::reshape(weight, of_weight), groups};
}

// What an axis of so many elements may have been grown by.
struct Growth {
  int64_t stride, dilation, padding, more;
};
// The first ones by dilation: a long signal has millions.
std::vector<Growth> growths(int64_t n, int64_t kernel, int64_t grown) {
  std::vector<Growth> out;
  for (int64_t d = 1; d == 1 || (kernel > 1 && d <= grown); d++)
    for (int64_t p = 0; p <= d * (kernel - 1); p++)
      for (int64_t s = 1; s == 1 || (n > 1 && (n - 1) * s <= grown + 2 * p); s++) {
        const int64_t more = grown - ((n - 1) * s - 2 * p + d * (kernel - 1) + 1);
        if (more >= 0 && more < std::max(s, d)) out.push_back({s, d, p, more});
        if (out.size() == kMostGrowths[0]) return out;
      }
  return out;
}

struct Growths {
  std::vector<int64_t> stride, dilation, padding, more;
  void push_back(const Growth& g) {
    stride.push_back(g.stride), dilation.push_back(g.dilation);
    padding.push_back(g.padding), more.push_back(g.more);
  }
};

Tensor grown(const Transposed& t, const Growths& g) {
  const Tensor x = wrapped(t.x), w = wrapped(t.weight);
  const PerAxis stride(g.stride), padding(g.padding), more(g.more), dilation(g.dilation);
  switch (g.stride.size()) {
    case 1: return x.conv_transpose1d(w, {}, stride, padding, more, t.groups, dilation);
    case 2: return x.conv_transpose2d(w, {}, stride, padding, more, t.groups, dilation);
    default: return x.conv_transpose3d(w, {}, stride, padding, more, t.groups, dilation);
  }
}

// Those that make the node: equal ones along all axes first.
std::optional<Growths> growths_of(Exporter& e, const Transposed& t, const UOp& u) {
  std::vector<std::vector<Growth>> axes;
  for (size_t i = 2; i < u->shape.size(); i++) {
    axes.push_back(growths(t.x->shape[i].value(), t.weight->shape[i].value(), u->shape[i].value()));
    if (axes.back().empty()) return std::nullopt;
  }
  const auto fits = [&](const Growths& g) { return e.is(grown(t, g), u); };
  for (const Growth& g : axes[0]) {
    Growths equal;
    for (size_t i = 0; i < axes.size(); i++) equal.push_back(g);
    if (fits(equal)) return equal;
  }
  const size_t most = kMostGrowths[axes.size() - 1];
  int64_t tries = 1;
  for (auto& a : axes) {
    a.resize(std::min(a.size(), most));
    tries *= int64_t(a.size());
  }
  for (int64_t number = 0; number < tries; number++) {
    Growths chosen;
    int64_t rest = number;
    for (const auto& a : axes) {
      chosen.push_back(a[size_t(rest) % a.size()]);
      rest /= int64_t(a.size());
    }
    if (fits(chosen)) return chosen;
  }
  return std::nullopt;
}

std::optional<Exporter::Plan> transposed_convolution(Exporter& e, const UOp& u) {
  if (u->dtype != DType::F32) return std::nullopt;
  const auto t = transposed_of(u);
  const auto g = t ? growths_of(e, *t, u) : std::nullopt;
  if (!g) return std::nullopt;
  std::vector<int64_t> pads = g->padding;
  pads.insert(pads.end(), g->padding.begin(), g->padding.end());
  const AttributeList attributes{
      attribute("dilations", g->dilation), attribute("group", t->groups),
      attribute("kernel_shape", numbers(t->weight->shape, 2, g->stride.size())),
      attribute("output_padding", g->more), attribute("pads", pads),
      attribute("strides", g->stride)};
  return Exporter::Plan{{t->x, t->weight}, [&e, t = *t, attributes, u](Given from) {
                          const std::string y = e.node("ConvTranspose",
                                                       {e.exact(from[0], t.x->shape),
                                                        e.exact(from[1], t.weight->shape)},
                                                       attributes);
                          return Exported{y, u->shape, u->shape};
                        }};
}

}  // namespace

std::optional<Exporter::Plan> window_plan(Exporter& e, const UOp& u) {
  if (const auto c = convolution_of(e, u)) return convolution(e, *c, u);
  for (const auto pattern : {max_pool, average_pool, transposed_convolution})
    if (auto found = pattern(e, u)) return found;
  return std::nullopt;
}

}  // namespace tuff::onnx
