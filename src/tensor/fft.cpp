// Transforms of any axes: lengths, norms and dtypes around those of the last axis (dft.h).
#include <tuff/fft.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "tensor/dft.h"
#include "tensor/impl.h"

namespace tuff::fft {

using detail::Direction;
using detail::text;

namespace {

void require_pairs(const char* what, const Tensor& x) {
  if (x.dim() < 1 || !detail::same(x.size(-1), 2))
    fail<ShapeError>("{}: {} holds no complex numbers, pairs along the last axis: give "
                     "stack({{re, im}}, -1), or real numbers to rfft",
                     what, text(x.sizes()));
  if (x.dim() < 2) fail<ShapeError>("{}: one complex number has no axis", what);
}

// The axis of extent n, moved to where `last` counts axes from the end of the tensor.
struct Along {
  int64_t axis, n;
  int64_t last;  // -2 of pairs, -1 of real numbers
};

Tensor to_length(const char* what, const Tensor& x, const Along& a) {
  detail::require_numbers(what, x.sizes());
  const int64_t has = x.size(a.axis);
  if (a.n < 1)
    fail<ShapeError>("{}: a length of {} for axis {} of {}", what, a.n, a.axis, text(x.sizes()));
  const Tensor fitting = has < a.n   ? detail::pad_axis(x, a.axis, 0, a.n - has)
                         : has > a.n ? x.narrow(a.axis, 0, a.n)
                                     : x;
  return fitting.movedim(a.axis, a.last);
}

double factor_of(Norm norm, Direction direction, int64_t n) {
  if (norm == Norm::Ortho) return 1 / std::sqrt(double(n));
  return (norm == Norm::Forward) == (direction == Direction::Forward) ? 1 / double(n) : 1;
}

Tensor scaled(const Tensor& x, Norm norm, Direction direction, int64_t n) {
  const double factor = factor_of(norm, direction, n);
  return factor == 1 ? x : x * factor;
}

int64_t pair_axis(const char* what, const Tensor& x, int64_t dim) {
  require_pairs(what, x);
  return detail::wrap_dim(what, dim, x.dim() - 1);
}

int64_t length_of(const Tensor& x, std::optional<int64_t> n, int64_t axis) {
  if (n) return *n;
  detail::require_numbers("fft", {x.size(axis)});
  return x.size(axis);
}

Tensor complex_along(const char* what, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                     Norm norm, Direction direction) {
  const int64_t axis = pair_axis(what, x, dim);
  const Along a{axis, length_of(x, n, axis), -2};
  return scaled(detail::complex_dft(to_length(what, x, a), direction), norm, direction, a.n)
      .movedim(-2, axis);
}

Tensor from_real(const char* what, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                 Norm norm) {
  const int64_t axis = detail::wrap_dim(what, dim, x.dim());
  const Along a{axis, length_of(x, n, axis), -1};
  return scaled(detail::dft_of_real(to_length(what, x, a)), norm, Direction::Forward, a.n)
      .movedim(-2, axis);
}

Tensor to_real(const char* what, const Tensor& x, std::optional<int64_t> n, int64_t dim,
               Norm norm) {
  const int64_t axis = pair_axis(what, x, dim);
  const int64_t length = n ? *n : 2 * (length_of(x, n, axis) - 1);
  if (length < 1)
    fail<ShapeError>("{}: a length of {} for axis {} of {}", what, length, axis, text(x.sizes()));
  const Tensor half = to_length(what, x, {axis, length / 2 + 1, -2});
  return scaled(detail::dft_to_real(half, length), norm, Direction::Inverse, length)
      .movedim(-1, axis);
}

// Axes in the order given, each with its length, -1 for its own.
struct Axis {
  int64_t dim;
  std::optional<int64_t> n;
};
std::vector<Axis> axes_of(const char* what, int64_t rank, const Axes& s, const Axes& dims) {
  if (!s.empty() && !dims.empty() && s.size() != dims.size())
    fail<InvalidArgument>("{}: {} lengths for {} axes", what, s.size(), dims.size());
  if (int64_t(s.size()) > rank)
    fail<InvalidArgument>("{}: {} lengths for {} axes", what, s.size(), rank);
  const int64_t count = !dims.empty() ? int64_t(dims.size()) : s.empty() ? rank : int64_t(s.size());
  std::vector<Axis> out;
  for (int64_t i = 0; i < count; i++) {
    const int64_t d =
        dims.empty() ? rank - count + i : detail::wrap_dim(what, dims[size_t(i)], rank);
    if (std::ranges::count(out, d, &Axis::dim))
      fail<InvalidArgument>("{}: axis {} occurs twice in {}", what, d, text(dims));
    const bool own = s.empty() || s[size_t(i)] == -1;
    out.push_back({d, own ? std::optional<int64_t>() : s[size_t(i)]});
  }
  return out;
}

Tensor complex_along_all(const char* what, const Tensor& x, const std::vector<Axis>& axes,
                         Norm norm, Direction direction) {
  Tensor out = x;
  for (size_t i = axes.size(); i-- > 0;)
    out = complex_along(what, out, axes[i].n, axes[i].dim, norm, direction);
  return out;
}

Tensor all_complex(const char* what, const Tensor& given, const Axes& s, const Axes& dims,
                   Norm norm, Direction direction) {
  require_pairs(what, given);
  const std::vector<Axis> axes = axes_of(what, given.dim() - 1, s, dims);
  return detail::computed_wide(given, [&](const Tensor& x) {
    return complex_along_all(what, x, axes, norm, direction);
  });
}

Tensor all_from_real(const char* what, const Tensor& given, const Axes& s, const Axes& dims,
                     Norm norm) {
  std::vector<Axis> axes = axes_of(what, given.dim(), s, dims);
  if (axes.empty()) fail<ShapeError>("{}: a number has no axis", what);
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Axis last = axes.back();
    axes.pop_back();
    const Tensor half = from_real(what, x, last.n, last.dim, norm);
    return complex_along_all(what, half, axes, norm, Direction::Forward);
  });
}

Tensor all_to_real(const char* what, const Tensor& given, const Axes& s, const Axes& dims,
                   Norm norm) {
  require_pairs(what, given);
  std::vector<Axis> axes = axes_of(what, given.dim() - 1, s, dims);
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Axis last = axes.back();
    axes.pop_back();
    const Tensor half = complex_along_all(what, x, axes, norm, Direction::Inverse);
    return to_real(what, half, last.n, last.dim, norm);
  });
}

Tensor shifted(const char* what, const Tensor& x, const Axes& dims, bool back) {
  detail::require_numbers(what, x.sizes());
  const Axes axes = detail::wrap_dims(what, dims, x.dim());
  if (axes.empty()) return x;
  Axes shifts;
  for (const int64_t d : axes) {
    const int64_t n = x.size(d);
    shifts.push_back(back ? (n + 1) / 2 : n / 2);
  }
  return x.roll(shifts, axes);
}

}  // namespace

Tensor fft(const Tensor& given, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return detail::computed_wide(given, [&](const Tensor& x) {
    return complex_along("fft", x, n, dim, norm, Direction::Forward);
  });
}
Tensor ifft(const Tensor& given, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return detail::computed_wide(given, [&](const Tensor& x) {
    return complex_along("ifft", x, n, dim, norm, Direction::Inverse);
  });
}
Tensor rfft(const Tensor& given, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return detail::computed_wide(
      given, [&](const Tensor& x) { return from_real("rfft", x, n, dim, norm); });
}
Tensor irfft(const Tensor& given, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return detail::computed_wide(
      given, [&](const Tensor& x) { return to_real("irfft", x, n, dim, norm); });
}

Tensor fftn(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_complex("fftn", x, s, dims, norm, Direction::Forward);
}
Tensor ifftn(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_complex("ifftn", x, s, dims, norm, Direction::Inverse);
}
Tensor rfftn(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_from_real("rfftn", x, s, dims, norm);
}
Tensor irfftn(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_to_real("irfftn", x, s, dims, norm);
}
Tensor fft2(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_complex("fft2", x, s, dims, norm, Direction::Forward);
}
Tensor ifft2(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_complex("ifft2", x, s, dims, norm, Direction::Inverse);
}
Tensor rfft2(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_from_real("rfft2", x, s, dims, norm);
}
Tensor irfft2(const Tensor& x, const Axes& s, const Axes& dims, Norm norm) {
  return all_to_real("irfft2", x, s, dims, norm);
}

namespace {

Tensor frequencies(const char* what, int64_t n, double d, int64_t count, const TensorOptions& o) {
  if (n < 1) fail<InvalidArgument>("{}: {} points", what, n);
  if (!is_float(o.dtype))
    fail<InvalidArgument>("{}: {} is no floating-point type", what, name(o.dtype));
  const Tensor k = Tensor::arange(0, count, 1, {DType::I32, o.device});
  const Tensor signed_k = count == n ? Tensor::where(k < (n + 1) / 2, k, k - n) : k;
  const Tensor out = signed_k.cast(detail::compute_dtype(o.dtype)) / (double(n) * d);
  return detail::finish(o.requires_grad ? out.cast(o.dtype).realize() : out.cast(o.dtype), o);
}

}  // namespace

Tensor fftfreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("fftfreq", n, d, n, options);
}
Tensor rfftfreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("rfftfreq", n, d, n / 2 + 1, options);
}
Tensor fftshift(const Tensor& x, const Axes& dims) { return shifted("fftshift", x, dims, false); }
Tensor ifftshift(const Tensor& x, const Axes& dims) { return shifted("ifftshift", x, dims, true); }

Tensor multiply(const Tensor& a, const Tensor& b) {
  for (const Tensor* x : {&a, &b}) {
    if (x->dim() < 1 || !detail::same(x->size(-1), 2))
      fail<ShapeError>("multiply: {} holds no complex numbers, pairs along the last axis",
                       text(x->sizes()));
  }
  const auto [first, second] = detail::unify("multiply", a, b);
  const Tensor other = second.cast(detail::compute_dtype(second.dtype()));
  return detail::computed_wide(
      first, [&](const Tensor& x) { return detail::complex_product(x, other); });
}
Tensor conj(const Tensor& x) {
  if (x.dim() < 1 || !detail::same(x.size(-1), 2))
    fail<ShapeError>("conj: {} holds no complex numbers, pairs along the last axis",
                     text(x.sizes()));
  return detail::conjugate(detail::as_float(x));
}

}  // namespace tuff::fft
