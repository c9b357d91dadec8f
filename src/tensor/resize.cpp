// interpolate(): axes of images resized one after the other, each element a weighted sum of a few
// of its line. Where they stand and what they weigh is computed of a counter, inside of the kernel.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/resize.h"
#include "tensor/view_link.h"
#include "tensor/windows.h"

namespace tuff {

using detail::counter;
using detail::per_axis;
using detail::self;
using detail::text;

namespace {

enum class Kind { Nearest, NearestExact, Linear, Cubic, Area };
struct Mode {
  std::string_view name;
  Kind kind;
  size_t axes;  // 0: any
};
constexpr Mode kModes[] = {
    {"nearest", Kind::Nearest, 0},   {"nearest-exact", Kind::NearestExact, 0},
    {"area", Kind::Area, 0},         {"linear", Kind::Linear, 1},
    {"bilinear", Kind::Linear, 2},   {"trilinear", Kind::Linear, 3},
    {"bicubic", Kind::Cubic, 2},
};

const Mode& mode_of(std::string_view name, const Tensor& x) {
  std::string known;
  for (const Mode& m : kModes) {
    if (m.name != name) {
      known += (known.empty() ? "" : ", ") + std::string(m.name);
      continue;
    }
    if (m.axes != 0 && int64_t(m.axes) + 2 != x.dim())
      fail<InvalidArgument>("interpolate: '{}' is for (N, C) and {} axes, not for {}", name, m.axes,
                            text(x.sizes()));
    return m;
  }
  fail<InvalidArgument>("interpolate: mode '{}' is none of {}", name, known);
}

// One axis: from n elements to `out`, which are `scale` of the old ones apart.
struct Resized {
  int64_t n, out;
  double scale;
  bool whole;  // scale is n / out, and positions are quotients of integers
};

std::vector<Resized> resized_axes(const Tensor& x, const PerAxis& size,
                                  const std::vector<double>& factors) {
  const size_t axes = size_t(x.dim()) - 2;
  std::vector<Resized> out;
  for (size_t i = 0; i < axes; i++) {
    const int64_t n = x.size(int64_t(i) + 2);
    Resized r{n, 0, 1, true};
    if (size.given()) {
      r.out = per_axis("interpolate", "a size", size, axes)[i];
    } else {
      if (factors.size() != 1 && factors.size() != axes)
        fail<InvalidArgument>("interpolate: {} scale factors for {} axes", factors.size(), axes);
      const double f = factors[factors.size() == 1 ? 0 : i];
      if (!(f > 0) || !(double(n) * f < 0x1p31))
        fail<InvalidArgument>("interpolate: a scale factor of {}", f);
      r.out = int64_t(std::floor(double(n) * f));
      r.scale = 1 / f;
      r.whole = std::abs(double(n) * f - double(r.out)) <= 1e-9 * double(r.out);
    }
    if (r.out < 1)
      fail<ShapeError>("interpolate: axis {} of {} to {}", i + 2, text(x.sizes()), r.out);
    if (n < 1)
      fail<ShapeError>("interpolate: axis {} of {} has no element", i + 2, text(x.sizes()));
    if (r.whole) r.scale = double(n) / double(r.out);
    out.push_back(r);
  }
  return out;
}

// floor((a*o + b) / c) for o = 0..out-1, and how far behind it the quotient is.
struct Place {
  Tensor at, rest;
};
Place place_of(int64_t out, int64_t a, int64_t b, int64_t c, bool from_0, const Tensor& like) {
  const Size most = a * out + std::abs(b) + c;
  Tensor top = counter(out, 0, 1, like.device()).cast(detail::position_dtype(most)) * a + b;
  if (from_0) top = top.clamp(0);
  const Tensor at = top.floor_divide(c);
  return {at, (top - at * c).cast(like.dtype()) / double(c)};
}
Place place_of(const Resized& r, double first, bool from_0, const Tensor& like) {
  const DType t = like.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Tensor at = counter(r.out, 0, 1, like.device()).cast(t) * r.scale + first;
  if (from_0) at = at.clamp(0);
  const Tensor whole = at.floor();
  return {whole.cast(DType::I32), (at - whole).cast(like.dtype())};
}

// Where the elements of a resized axis stand in the old one. F32 holds no position beyond 2^24, so
// that positions are quotients of integers wherever the scale is one.
Place places(const Resized& r, Kind kind, bool align_corners, const Tensor& like) {
  const bool from_0 = kind == Kind::Linear;
  if (align_corners) {
    const bool several = r.out > 1;
    return place_of(r.out, several ? r.n - 1 : 0, 0, several ? r.out - 1 : 1, false, like);
  }
  switch (kind) {
    case Kind::Nearest:
      return r.whole ? place_of(r.out, r.n, 0, r.out, false, like)
                     : place_of(r, 0, false, like);
    case Kind::NearestExact:
      return r.whole ? place_of(r.out, 2 * r.n, r.n, 2 * r.out, false, like)
                     : place_of(r, r.scale / 2, false, like);
    default:
      return r.whole ? place_of(r.out, 2 * r.n, r.n - r.out, 2 * r.out, from_0, like)
                     : place_of(r, r.scale / 2 - 0.5, from_0, like);
  }
}

Tensor along(const Tensor& values, int64_t d, int64_t rank) {
  Sizes sizes(size_t(rank), 1);
  sizes[size_t(d)] = values.size(0);
  return values.reshape(sizes);
}

// Whole steps up and down are views.
std::optional<Tensor> whole_steps(const Tensor& x, int64_t d, const Resized& r, Kind kind) {
  if (!r.whole) return {};
  if (r.n == r.out) return x;
  if (kind != Kind::Nearest && kind != Kind::NearestExact) return {};
  if (r.out % r.n == 0) return x.repeat_interleave(r.out / r.n, d);
  if (r.n % r.out != 0) return {};
  const int64_t step = r.n / r.out;
  return x.slice(d, Size(kind == Kind::NearestExact ? step / 2 : 0), {}, step);
}

// An axis whose extents are in the proportion of small numbers, p to q: each q elements and some
// around them, a window, give p new ones. Its gradient adds up windows, and looks for nothing.
struct Proportion {
  int64_t n, blocks, p, q, first, taps;  // taps of a window from element `first` of its q

  static std::optional<Proportion> of(const Resized& r, Kind kind) {
    if (!r.whole) return {};
    const int64_t g = std::gcd(r.n, r.out), p = r.out / g, q = r.n / g;
    const int64_t reach = kind == Kind::Linear ? 0 : 1;
    const int64_t low = floor_div(q - p, 2 * p) - reach;
    const int64_t high = floor_div((2 * p - 1) * q - p, 2 * p) + 1 + reach;
    if (high - low >= kMostTaps || 2 * q > kMostParts / r.out) return {};
    return Proportion{r.n, g, p, q, low, high - low + 1};
  }
  // (taps, blocks, p). Elements beyond the ends weigh nothing, those at the ends as much more.
  Tensor weights(Kind kind, const Tensor& like) const {
    const auto count = [&](int64_t extent, int64_t d) {
      return counter(extent, d, 3, like.device());
    };
    const Tensor element = count(blocks, 1) * q + count(taps, 0) + first;
    // In parts of an element, 2p to one.
    Tensor place = (count(blocks, 1) * (2 * p) + count(p, 2) * 2 + 1) * q - p;
    if (kind == Kind::Linear) place = place.clamp(0, (n - 1) * 2 * p);
    const auto off = [&](const Tensor& from) {
      return (place - from * (2 * p)).abs().cast(like.dtype()) / double(2 * p);
    };
    if (kind == Kind::Linear) return (1 - off(element)).clamp(0);
    const auto weight = [&](const Tensor& from) { return detail::cubic(off(from), -0.75); };
    const Tensor before = weight(element - 1) + weight(element - 2);
    const Tensor behind = weight(element + 1) + weight(element + 2);
    const Tensor own = weight(element) + Tensor::where(element == 0, before, 0) +
                       Tensor::where(element == n - 1, behind, 0);
    return own.contiguous();
  }

  static constexpr int64_t kMostTaps = 12, kMostParts = 1 << 30;  // I32 holds these
  static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
};

Tensor in_proportion(const Tensor& x, int64_t d, const Proportion& a, Kind kind) {
  const int64_t end = (a.blocks - 1) * a.q + a.first + a.taps;
  std::vector<int64_t> around(size_t(2 * (x.dim() - d)), 0);
  around[around.size() - 2] = -a.first, around[around.size() - 1] = end - a.n;
  const Tensor windows = detail::windows_of_axis(x.pad(around), d, a.taps, a.q, 1).unsqueeze(d + 2);
  Sizes sizes(size_t(x.dim()) + 2, 1);
  sizes[size_t(d)] = a.taps, sizes[size_t(d) + 1] = a.blocks, sizes[size_t(d) + 2] = a.p;
  const Tensor weights = a.weights(kind, x).reshape(sizes);
  // An infinite element must not reach those that it does not weigh on.
  return Tensor::where(weights == 0, 0, windows * weights).sum({d}).flatten(d, d + 1);
}

Tensor resized_axis(const Tensor& x, int64_t d, const Resized& r, Kind kind, bool align_corners) {
  if (const auto view = whole_steps(x, d, r, kind)) return *view;
  if (kind != Kind::Nearest && kind != Kind::NearestExact && !align_corners) {
    if (const auto a = Proportion::of(r, kind)) return in_proportion(x, d, *a, kind);
  }
  const Place p = places(r, kind, align_corners, x);
  const auto tap = [&](int64_t step) {
    return detail::elements_at(x, d, (p.at + step).clamp(0, r.n - 1));
  };
  if (kind == Kind::Nearest || kind == Kind::NearestExact) return tap(0);
  const Tensor f = along(p.rest, d, x.dim());
  if (kind == Kind::Linear) return tap(0) * (1 - f) + tap(1) * f;
  const std::array<Tensor, 4> w = detail::cubic_weights(f, -0.75);
  return tap(-1) * w[0] + tap(0) * w[1] + tap(1) * w[2] + tap(2) * w[3];
}

// The weights of one element more, widened where the axis shrinks so that none is left out, and
// normalized: a triangle, or the cubic of Keys (1981) with a = -0.5.
Tensor smoothed_axis(const Tensor& x, int64_t d, const Resized& r, Kind kind, bool align_corners) {
  if (r.n == r.out && r.whole) return x;
  const double scale =
      !align_corners ? r.scale : r.out > 1 ? double(r.n - 1) / double(r.out - 1) : 0;
  const double wide = std::max(scale, 1.0), reach = wide * (kind == Kind::Linear ? 1 : 2);
  const int64_t taps = std::min<int64_t>(r.n, int64_t(std::ceil(reach)) * 2 + 1);
  const DType t = x.dtype();
  const Tensor centre = (counter(r.out, 0, 2, x.device()).cast(t) + 0.5) * scale;
  const Tensor begin = (centre - reach + 0.5).trunc().clamp(0);
  const Tensor end = (centre + reach + 0.5).trunc();
  const Tensor tap = counter(taps, 1, 2, x.device()), at = begin + tap.cast(t);
  const Tensor inside = (at < end) & (at < double(r.n));
  const Tensor off = ((at - centre + 0.5) * (1 / wide)).abs();
  const Tensor shape = kind == Kind::Linear ? (1 - off).clamp(0) : detail::cubic(off, -0.5);
  const Tensor weights = Tensor::where(inside, shape, 0);
  const Tensor normal = weights / weights.sum({1}, true);
  const Tensor places = at.cast(DType::I32).clamp(0, r.n - 1).reshape({r.out * taps});
  const Tensor found = detail::unflatten(detail::elements_at(x, d, places), d, r.out, taps);
  Sizes sizes(size_t(x.dim()) + 1, 1);
  sizes[size_t(d)] = r.out, sizes[size_t(d) + 1] = taps;
  return (found * normal.contiguous().reshape(sizes)).sum({d + 1});
}

}  // namespace

Tensor detail::elements_at(const Tensor& x, int64_t d, const Tensor& at) {
  const int64_t rank = x.dim() + 1;
  const Tensor hit =
      along(at, d, rank) == counter(x.size(d), d + 1, rank, x.device()).cast(at.dtype());
  return detail::pick(hit, x.unsqueeze(d), {d + 1});
}

namespace {

// At distances up to 1, and from there up to 2.
Tensor near(const Tensor& off, double a) { return ((a + 2) * off - (a + 3)) * off.square() + 1; }
Tensor far(const Tensor& off, double a) { return ((off - 5) * off + 8) * off * a - 4 * a; }

}  // namespace

Tensor detail::cubic(const Tensor& off, double a) {
  return Tensor::where(off < 1, near(off, a), Tensor::where(off < 2, far(off, a), 0));
}

std::array<Tensor, 4> detail::cubic_weights(const Tensor& f, double a) {
  return {far(f + 1, a), near(f, a), near(1 - f, a), far(2 - f, a)};
}

Tensor TensorWindows::interpolate(const PerAxis& size, const std::vector<double>& scale_factor,
                                  std::string_view mode_name, bool align_corners,
                                  bool antialias) const {
  const Tensor& given = self(this);
  if (given.dim() < 3 || given.dim() > 5)
    fail<ShapeError>("interpolate: {} is not (N, C) and one to three axes", text(given.sizes()));
  const Mode& mode = mode_of(mode_name, given);
  const Sizes own = given.sizes();
  detail::require_numbers("interpolate", Sizes(own.begin() + 2, own.end()));
  if (size.given() != scale_factor.empty())
    fail<InvalidArgument>("interpolate: give a size or a scale_factor{}",
                          size.given() ? ", not both" : "");
  const bool weighted = mode.kind == Kind::Linear || mode.kind == Kind::Cubic;
  if (align_corners && !weighted)
    fail<InvalidArgument>("interpolate: '{}' has no align_corners", mode.name);
  if (antialias && mode.name != "bilinear" && mode.name != "bicubic")
    fail<InvalidArgument>("interpolate: antialias is for 'bilinear' and 'bicubic', not for '{}'",
                          mode.name);
  const std::vector<Resized> axes = resized_axes(given, size, scale_factor);
  if (mode.kind == Kind::Area) {
    std::vector<int64_t> out;
    for (const Resized& r : axes) out.push_back(r.out);
    return axes.size() == 1   ? adaptive_avg_pool1d(out)
           : axes.size() == 2 ? adaptive_avg_pool2d(out)
                              : adaptive_avg_pool3d(out);
  }
  const auto resized = [&](Tensor x) {
    for (size_t i = axes.size(); i-- > 0;) {
      const int64_t d = int64_t(i) + 2;
      x = antialias ? smoothed_axis(x, d, axes[i], mode.kind, align_corners)
                    : resized_axis(x, d, axes[i], mode.kind, align_corners);
    }
    return x;
  };
  // Of every second element, say, which is movement alone.
  return detail::no_view(weighted ? detail::computed_wide(given, resized) : resized(given));
}

}  // namespace tuff
