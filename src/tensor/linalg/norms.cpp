// Norms, condition numbers, chains of products, and the members of TensorLinalg.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tensor/linalg/batch.h"

namespace tuff {

namespace linalg {

using detail::text;

namespace {

// (...) or with keepdim (..., 1, 1)
Tensor without_axes(const Tensor& x, bool keepdim) {
  return keepdim ? x.unsqueeze(-1).unsqueeze(-1) : x;
}

// The two last axes of a tensor for a norm of matrices.
void require_matrices(const char* what, const Tensor& a) {
  if (a.dim() < 2) fail<ShapeError>("{}: {} is no matrix", what, text(a.sizes()));
}

}  // namespace

Tensor vector_norm(const Tensor& x, double order, const Axes& dim, bool keepdim) {
  return x.norm(order, dim, keepdim);
}

Tensor matrix_norm(const Tensor& a, std::string_view order, bool keepdim) {
  require_matrices("matrix_norm", a);
  if (order == "fro") return a.norm(2, {-2, -1}, keepdim);
  if (order == "nuc") return without_axes(svdvals(a).sum({-1}), keepdim);
  fail<InvalidArgument>("matrix_norm: order is \"{}\", neither \"fro\" nor \"nuc\"", order);
}

Tensor matrix_norm(const Tensor& a, double order, bool keepdim) {
  require_matrices("matrix_norm", a);
  const double magnitude = std::abs(order);
  const bool largest = order > 0;
  if (magnitude == 2) {
    const Tensor s = svdvals(a);
    return without_axes(largest ? s.max({-1}) : s.min({-1}), keepdim);
  }
  if (magnitude != 1 && magnitude != std::numeric_limits<double>::infinity())
    fail<InvalidArgument>("matrix_norm: order is {}: of matrices it is 1, 2 or inf, or minus that",
                          order);
  const int64_t summed = magnitude == 1 ? -2 : -1;
  const Tensor sums = a.abs().sum({summed});
  return without_axes(largest ? sums.max({-1}) : sums.min({-1}), keepdim);
}

Tensor norm(const Tensor& x, std::optional<double> order, const Axes& dim, bool keepdim) {
  if (!order) return x.norm(2, dim, keepdim);
  if (dim.size() != 2 && !(dim.empty() && x.dim() == 2))
    return x.norm(*order, dim, keepdim);
  const Axes axes = dim.empty() ? Axes{0, 1} : dim;
  const int64_t rank = x.dim(), rows = detail::wrap_dim("norm", axes[0], rank),
                columns = detail::wrap_dim("norm", axes[1], rank);
  if (rows == columns) fail<InvalidArgument>("norm: axis {} is given twice", axes[0]);
  Axes placed;
  for (int64_t d = 0; d < rank; d++) {
    if (d != rows && d != columns) placed.push_back(d);
  }
  placed.push_back(rows);
  placed.push_back(columns);
  const Tensor out = matrix_norm(x.permute(placed), *order);
  if (!keepdim) return out;
  Sizes kept = x.sizes();
  kept[size_t(rows)] = kept[size_t(columns)] = 1;
  return out.reshape(kept);
}

Tensor cond(const Tensor& a, std::optional<double> order) {
  if (order && std::abs(*order) != 2) {
    Batch::square("cond", a);
    return matrix_norm(a, *order) * matrix_norm(inv(a), *order);
  }
  const Tensor s = svdvals(a), largest = s.max({-1}), least = s.min({-1});
  return order && *order < 0 ? least / largest : largest / least;
}
Tensor cond(const Tensor& a, std::string_view order) {
  Batch::square("cond", a);
  return matrix_norm(a, order) * matrix_norm(inv(a), order);
}

namespace {

// Where the product of factors i..j is split so that least numbers are multiplied.
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& factors) : factors_(factors) {
    const size_t n = factors.size();
    for (const Tensor& t : factors) extents_.push_back(double(int64_t(t.size(0))));
    extents_.push_back(double(int64_t(factors.back().size(1))));
    cost_.assign(n, std::vector<double>(n, 0));
    split_.assign(n, std::vector<size_t>(n, 0));
    for (size_t length = 2; length <= n; length++) {
      for (size_t i = 0; i + length <= n; i++) choose(i, i + length - 1);
    }
  }
  Tensor product(size_t i, size_t j) const {
    if (i == j) return factors_[i];
    return product(i, split_[i][j]).mm(product(split_[i][j] + 1, j));
  }

 private:
  void choose(size_t i, size_t j) {
    cost_[i][j] = std::numeric_limits<double>::infinity();
    for (size_t k = i; k < j; k++) {
      const double cost = cost_[i][k] + cost_[k + 1][j] +
                          extents_[i] * extents_[k + 1] * extents_[j + 1];
      if (cost < cost_[i][j]) cost_[i][j] = cost, split_[i][j] = k;
    }
  }
  const std::vector<Tensor>& factors_;
  std::vector<double> extents_;
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<size_t>> split_;
};

}  // namespace

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  if (tensors.size() < 2)
    fail<InvalidArgument>("multi_dot: {} tensors: at least 2 are multiplied", tensors.size());
  std::vector<Tensor> factors = tensors;
  const bool row = factors.front().dim() == 1, column = factors.back().dim() == 1;
  if (row) factors.front() = factors.front().unsqueeze(0);
  if (column) factors.back() = factors.back().unsqueeze(1);
  for (size_t i = 0; i < factors.size(); i++) {
    if (factors[i].dim() != 2)
      fail<ShapeError>("multi_dot: tensor {} of {} is no matrix", i, text(tensors[i].sizes()));
    detail::require_numbers("multi_dot", factors[i].sizes());
    if (i > 0 && !detail::same(factors[i - 1].size(1), factors[i].size(0)))
      fail<ShapeError>("multi_dot: {} and {} do not fit", text(tensors[i - 1].sizes()),
                       text(tensors[i].sizes()));
  }
  Tensor out = Chain(factors).product(0, factors.size() - 1);
  if (column) out = out.squeeze(1);
  return row ? out.squeeze(0) : out;
}

}  // namespace linalg

using detail::self;

Tensor TensorLinalg::cholesky(bool upper) const { return linalg::cholesky(self(this), upper); }
std::pair<Tensor, Tensor> TensorLinalg::qr(std::string_view mode) const {
  return linalg::qr(self(this), mode);
}
std::tuple<Tensor, Tensor, Tensor> TensorLinalg::svd(bool full_matrices) const {
  return linalg::svd(self(this), full_matrices);
}
Tensor TensorLinalg::det() const { return linalg::det(self(this)); }
Tensor TensorLinalg::logdet() const {
  const auto [sign, logarithm] = linalg::slogdet(self(this));
  return Tensor::where(sign < 0, std::numeric_limits<double>::quiet_NaN(), logarithm);
}
std::pair<Tensor, Tensor> TensorLinalg::slogdet() const { return linalg::slogdet(self(this)); }
Tensor TensorLinalg::inverse() const { return linalg::inv(self(this)); }
Tensor TensorLinalg::pinverse(double rcond) const {
  return linalg::pinv(self(this), std::nullopt, rcond);
}
Tensor TensorLinalg::matrix_power(int64_t n) const {
  return linalg::matrix_power(self(this), n);
}

Tensor TensorLinalg::newton_schulz(int64_t steps, const std::vector<double>& coefficients,
                                   double eps) const {
  const Tensor& given = self(this);
  if (given.dim() < 2)
    fail<ShapeError>("newton_schulz: {} is no matrix", detail::text(given.sizes()));
  if (steps < 0 || coefficients.empty())
    fail<InvalidArgument>("newton_schulz: {} steps with {} coefficients", steps,
                          coefficients.size());
  detail::require_numbers("newton_schulz", given.sizes());
  return detail::computed_wide(given, [&](const Tensor& m) {
    const bool tall = int64_t(m.size(-2)) > int64_t(m.size(-1));
    Tensor x = tall ? m.transpose(-2, -1) : m;
    x = x / x.norm(2, {-2, -1}, true).clamp(eps);
    for (int64_t i = 0; i < steps; i++) {
      const Tensor gram = x.matmul(x.transpose(-2, -1));
      Tensor power = gram, sum = x * coefficients[0], factor;
      for (size_t k = 1; k < coefficients.size(); k++, power = gram.matmul(power)) {
        const Tensor term = power * coefficients[k];
        factor = factor.defined() ? factor + term : term;
      }
      x = factor.defined() ? sum + factor.matmul(x) : sum;
    }
    return tall ? x.transpose(-2, -1) : x;
  });
}

}  // namespace tuff
