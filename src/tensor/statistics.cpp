// Extremes with their places, moments, norms, distances, covariances.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
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
