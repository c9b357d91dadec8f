// Extremes with their places, moments, norms, distances, covariances.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::at;
using detail::totalled;
using detail::self;
using detail::text;
using detail::wrap_dim;

namespace {

std::pair<Tensor, Tensor> chosen(const char* what, const Tensor& x, int64_t dim, bool keepdim,
                                 Tensor (Tensor::*places)(std::optional<int64_t>, bool) const) {
  if (x.dim() == 0) return {x, (x.*places)(dim, keepdim)};
  const int64_t d = wrap_dim(what, dim, x.dim());
  const Tensor place = (x.*places)(d, true), value = x.gather(d, place);
  if (keepdim) return {value, place};
  return {value.squeeze(d), place.squeeze(d)};
}

// A root without gradient where it is 0.
Tensor root_of(const Tensor& x) {
  const Tensor some = x != 0;
  return Tensor::where(some, at(some, x).sqrt(), 0.0);
}

Tensor power_norm(const Tensor& x, double p, const Axes& dims, bool keepdim) {
  // Below 0 a zero makes the sum infinite.
  const Tensor some = p > 0 ? x != 0 : x == x;
  const Tensor powers = Tensor::where(some, at(some, x.abs()).pow(p), 0.0);
  const Tensor sum = powers.sum(dims, keepdim), any = sum != 0;
  return Tensor::where(any, at(any, sum).pow(1 / p), p > 0 ? 0.0 : INFINITY);
}

Tensor norm_of(const Tensor& x, double p, const Axes& dims, bool keepdim) {
  if (p == INFINITY) return x.abs().max(dims, keepdim);
  if (p == -INFINITY) return x.abs().min(dims, keepdim);
  if (p == 0) return (x != 0).cast(x.dtype()).sum(dims, keepdim);
  if (p == 1) return x.abs().sum(dims, keepdim);
  if (p == 2) return root_of(x.square().sum(dims, keepdim));
  return power_norm(x, p, dims, keepdim);
}

}  // namespace

Tensor TensorStatistics::amax(const Axes& dims, bool keepdim) const {
  return self(this).max(dims, keepdim);
}
Tensor TensorStatistics::amin(const Axes& dims, bool keepdim) const {
  return self(this).min(dims, keepdim);
}
std::pair<Tensor, Tensor> TensorStatistics::aminmax(std::optional<int64_t> dim,
                                                    bool keepdim) const {
  const Axes dims = dim ? Axes{*dim} : Axes{};
  return {self(this).min(dims, keepdim), self(this).max(dims, keepdim)};
}
std::pair<Tensor, Tensor> TensorStatistics::max_with_indices(int64_t dim, bool keepdim) const {
  return chosen("max_with_indices", self(this), dim, keepdim, &Tensor::argmax);
}
std::pair<Tensor, Tensor> TensorStatistics::min_with_indices(int64_t dim, bool keepdim) const {
  return chosen("min_with_indices", self(this), dim, keepdim, &Tensor::argmin);
}
Tensor TensorStatistics::nansum(const Axes& dims, bool keepdim) const {
  const Tensor& x = self(this);
  return (is_float(x.dtype()) ? Tensor::where(x == x, x, 0) : x).sum(dims, keepdim);
}
Tensor TensorStatistics::nanmean(const Axes& dims, bool keepdim) const {
  const DType t = self(this).dtype();
  if (!is_float(t))
    fail<InvalidArgument>("nanmean: not defined on {}: mean() is what is meant", name(t));
  return totalled(self(this), [&](const Tensor& x) {
    const Tensor count = (x == x).cast(x.dtype()).sum(dims, keepdim);
    return x.nansum(dims, keepdim) / count;
  });
}
Tensor TensorStatistics::sum_to_size(const Sizes& sizes) const {
  const Tensor& x = self(this);
  if (int64_t(sizes.size()) > x.dim() ||
      !detail::same(detail::broadcast_sizes("sum_to_size", x.sizes(), sizes), x.sizes()))
    fail<ShapeError>("sum_to_size: {} does not broadcast to {}", text(sizes), text(x.sizes()));
  const int64_t in_front = x.dim() - int64_t(sizes.size());
  Axes dims;
  for (int64_t d = 0; d < x.dim(); d++) {
    const bool kept = d >= in_front && detail::same(sizes[size_t(d - in_front)], x.size(d));
    if (!kept) dims.push_back(d);
  }
  return dims.empty() ? detail::no_view(x) : x.sum(dims, true).reshape(sizes);
}
std::pair<Tensor, Tensor> TensorStatistics::var_mean(const Axes& dims, bool keepdim,
                                                     int64_t correction) const {
  return {self(this).var(dims, keepdim, correction), self(this).mean(dims, keepdim)};
}
std::pair<Tensor, Tensor> TensorStatistics::std_mean(const Axes& dims, bool keepdim,
                                                     int64_t correction) const {
  return {self(this).std(dims, keepdim, correction), self(this).mean(dims, keepdim)};
}

Tensor TensorStatistics::norm(double p, const Axes& dims, bool keepdim) const {
  if (std::isnan(p)) fail<InvalidArgument>("norm: p is not a number");
  return totalled(self(this),
                       [&](const Tensor& x) { return norm_of(x, p, dims, keepdim); });
}
Tensor TensorStatistics::count_nonzero(const Axes& dims) const {
  return (self(this) != 0).sum(dims);
}

Tensor TensorStatistics::cosine_similarity(const Tensor& other, int64_t dim, double eps) const {
  const auto [a, b] = detail::unify("cosine_similarity", self(this), other);
  const int64_t d = wrap_dim("cosine_similarity", dim, a.dim());
  const Tensor y = b.cast(detail::compute_dtype(b.dtype()));
  return totalled(a, [&](const Tensor& x) {
    const Tensor lengths = x.norm(2, {d}).clamp(eps) * y.norm(2, {d}).clamp(eps);
    return (x * y).sum({d}) / lengths;
  });
}
Tensor TensorStatistics::cdist(const Tensor& other, double p) const {
  const Tensor& x = self(this);
  if (x.dim() < 2 || other.dim() < 2 || !detail::same(x.size(-1), other.size(-1)))
    fail<ShapeError>("cdist: {} and {} are no rows of the same length", text(x.sizes()),
                     text(other.sizes()));
  if (!(p >= 0)) fail<InvalidArgument>("cdist: p is {}", p);
  return (detail::as_float(x).unsqueeze(-2) - detail::as_float(other).unsqueeze(-3)).norm(p, {-1});
}

Tensor TensorStatistics::dist(const Tensor& other, double p) const {
  return (detail::as_float(self(this)) - detail::as_float(other)).norm(p);
}
Tensor TensorStatistics::pdist(double p) const {
  const Tensor& x = self(this);
  if (x.dim() != 2) fail<ShapeError>("pdist: {} is no matrix", text(x.sizes()));
  if (!(p >= 0)) fail<InvalidArgument>("pdist: p is {}", p);
  detail::require_numbers("pdist", x.sizes());
  const int64_t n = x.size(0);
  const Tensor rows = detail::as_float(x);
  if (n < 2) return Tensor::zeros({0}, {rows.dtype(), x.device()});
  const Tensor pairs = Tensor::triu_indices(n, n, 1, x.device());
  return (rows.index_select(0, pairs[0]) - rows.index_select(0, pairs[1])).norm(p, {-1});
}
Tensor TensorStatistics::pairwise_distance(const Tensor& other, double p, double eps,
                                           bool keepdim) const {
  const auto [x, y] = detail::unify("pairwise_distance", self(this), other);
  const Tensor to = y.cast(detail::compute_dtype(y.dtype()));
  return totalled(
      x, [&](const Tensor& from) { return (from - to + eps).norm(p, {-1}, keepdim); });
}
// A little less than the bound, so that what is scaled again stays as it is.
Tensor TensorStatistics::renorm(double p, int64_t dim, double maxnorm) const {
  const Tensor& given = self(this);
  if (!is_float(given.dtype()))
    fail<InvalidArgument>("renorm: not defined on {}: cast() it", name(given.dtype()));
  if (!(p > 0)) fail<InvalidArgument>("renorm: p is {}", p);
  if (!(maxnorm >= 0)) fail<InvalidArgument>("renorm: maxnorm is {}", maxnorm);
  if (given.dim() < 2)
    fail<ShapeError>("renorm: {} has fewer than two axes", text(given.sizes()));
  const int64_t kept = wrap_dim("renorm", dim, given.dim());
  Axes others;
  for (int64_t d = 0; d < given.dim(); d++) {
    if (d != kept) others.push_back(d);
  }
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Tensor norms = x.norm(p, others, true), above = norms > maxnorm;
    return x * Tensor::where(above, maxnorm / (at(above, norms) + 1e-7), 1.0);
  });
}

Tensor TensorStatistics::cov(int64_t correction) const {
  const Tensor& given = self(this);
  if (given.dim() > 2) fail<ShapeError>("cov: {} has more than two axes", text(given.sizes()));
  return totalled(given, [&](const Tensor& x) {
    const Tensor rows = x.atleast_2d(), apart = rows - rows.mean({1}, true);
    const Size n = rows.size(1);
    detail::require_numbers("cov", {n});
    const Tensor sums = apart.matmul(apart.T());
    const double count = double(std::max<int64_t>(0, int64_t(n) - correction));
    return given.dim() < 2 ? (sums / count).reshape({}) : sums / count;
  });
}
Tensor TensorStatistics::corrcoef() const {
  return totalled(self(this), [](const Tensor& x) {
    const Tensor c = x.cov();
    if (c.dim() == 0) return c / c;
    const Tensor deviations = c.diagonal().sqrt();
    return (c / deviations.unsqueeze(1) / deviations).clamp(-1, 1);
  });
}

bool TensorStatistics::allclose(const Tensor& other, double rtol, double atol,
                                bool equal_nan) const {
  return self(this).isclose(other, rtol, atol, equal_nan).all().item() != 0;
}
bool TensorStatistics::equal(const Tensor& other) const {
  if (!detail::same(self(this).sizes(), other.sizes())) return false;
  return (self(this) == other).all().item() != 0;
}

}  // namespace tuff
