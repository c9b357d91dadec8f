// Differences of neighbours, and integrals by the trapezoidal rule.
#include <algorithm>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::self;
using detail::text;
using detail::wrap_dim;

namespace {

// The axis without its first element, and without its last.
struct Neighbours {
  Tensor after, before;
};
Neighbours neighbours(const Tensor& x, int64_t d) {
  const int64_t n = std::max<int64_t>(0, int64_t(x.size(d)) - 1);
  return {x.narrow(d, x.size(d) - n, n), x.narrow(d, 0, n)};
}

int64_t axis_of_points(const char* what, const Tensor& y, int64_t dim) {
  if (y.dim() == 0) fail<ShapeError>("{}: a scalar has no axis: reshape() it to (1)", what);
  const int64_t d = wrap_dim(what, dim, y.dim());
  detail::require_numbers(what, {y.size(d)});
  return d;
}

// The distances of points along axis d, as they broadcast to y.
Tensor distances(const char* what, const Tensor& x, const Tensor& y, int64_t d) {
  Tensor at = x;
  if (x.dim() == 1) {
    Sizes along(size_t(y.dim()), 1);
    along[size_t(d)] = x.size(0);
    at = x.reshape(along);
  }
  if (at.dim() != y.dim() || !detail::same(at.size(d), y.size(d)))
    fail<ShapeError>("{}: points at {} for {}", what, text(x.sizes()), text(y.sizes()));
  const Neighbours n = neighbours(detail::as_float(at), d);
  return n.after - n.before;
}

Tensor pairs_of(const Tensor& y, int64_t d) {
  const Neighbours n = neighbours(y, d);
  return n.after + n.before;
}

}  // namespace

Tensor TensorViews::diff(int64_t n, int64_t dim) const { return diff(n, dim, {}, {}); }
Tensor TensorViews::diff(int64_t n, int64_t dim, const Tensor& prepend,
                         const Tensor& append) const {
  Tensor x = self(this);
  if (n < 0) fail<InvalidArgument>("diff: {} times", n);
  const int64_t d = axis_of_points("diff", x, dim);
  std::vector<Tensor> parts{x};
  if (prepend.defined()) parts.insert(parts.begin(), prepend);
  if (append.defined()) parts.push_back(append);
  if (parts.size() > 1) x = Tensor::cat(parts, d);
  for (int64_t left = std::min(n, int64_t(x.size(d))); left > 0; left--) {
    const Neighbours pair = neighbours(x, d);
    x = x.dtype() == DType::Bool ? pair.after ^ pair.before : pair.after - pair.before;
  }
  return detail::no_view(x);
}

Tensor TensorStatistics::trapezoid(double dx, int64_t dim) const {
  const int64_t d = axis_of_points("trapezoid", self(this), dim);
  return detail::totalled(self(this),
                          [&](const Tensor& y) { return pairs_of(y, d).sum({d}) * (dx / 2); });
}
Tensor TensorStatistics::trapezoid(const Tensor& x, int64_t dim) const {
  const int64_t d = axis_of_points("trapezoid", self(this), dim);
  const Tensor by = distances("trapezoid", x, self(this), d);
  return (detail::as_float(pairs_of(self(this), d)) * by).sum({d}) * 0.5;
}
Tensor TensorStatistics::cumulative_trapezoid(double dx, int64_t dim) const {
  const int64_t d = axis_of_points("cumulative_trapezoid", self(this), dim);
  return detail::totalled(self(this),
                          [&](const Tensor& y) { return pairs_of(y, d).cumsum(d) * (dx / 2); });
}
Tensor TensorStatistics::cumulative_trapezoid(const Tensor& x, int64_t dim) const {
  const int64_t d = axis_of_points("cumulative_trapezoid", self(this), dim);
  const Tensor by = distances("cumulative_trapezoid", x, self(this), d);
  return (detail::as_float(pairs_of(self(this), d)) * by).cumsum(d) * 0.5;
}

}  // namespace tuff
