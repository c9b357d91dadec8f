// Powers of matrices and numbers, and equations between tensors.
#include <algorithm>

#include "base/check.h"
#include "tensor/linalg/batch.h"

namespace tuff::linalg {

using detail::text;

namespace {

constexpr int64_t kMostHalvings = 16;

// 1 + x/1! + x²/2! + ... + x¹⁸/18!, by products of x, x², x³ (Paterson and Stockmeyer, 1973).
Tensor taylor(const Tensor& x, const Tensor& one) {
  const Tensor square = matmul(x, x), cube = matmul(square, x);
  double factorial = 1;
  std::vector<double> c{1};
  for (int k = 1; k <= 18; k++) c.push_back(1 / (factorial *= k));
  Tensor sum = one * c[18];
  for (size_t k = 15;; k -= 3) {
    sum = matmul(sum, cube) + square * c[k + 2] + x * c[k + 1] + one * c[k];
    if (k == 0) return sum;
  }
}

// (batch, 1, 1): how often matrices are halved until their 1-norm is at most 1.
Tensor halvings_of(const Tensor& x) {
  const Tensor norm = x.detach().abs().sum({1}, true).max({2}, true);
  Tensor count = (norm > 1).cast(DType::I32);
  for (int64_t k = 1; k < kMostHalvings; k++)
    count = count + (norm > double(int64_t(1) << k)).cast(DType::I32);
  return count.contiguous();
}

int64_t product_of(const Sizes& sizes, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; i++) n *= int64_t(sizes[i]);
  return n;
}

}  // namespace

Tensor matrix_exp(const Tensor& a) {
  const Batch batch = Batch::square("matrix_exp", a);
  if (detail::same(a.numel(), 0)) return a;
  const Tensor x = batch.matrices(), count = halvings_of(x);
  const Tensor one = stored(ones_on_diagonal(x, batch.n(), batch.n()));
  Tensor part = x;
  for (int64_t k = 0; k < kMostHalvings; k++) part = Tensor::where(count > k, part * 0.5, part);
  Tensor power = taylor(part, one);
  for (int64_t k = 0; k < kMostHalvings; k++)
    power = Tensor::where(count > k, matmul(power, power), power).contiguous();
  return batch.placed(power);
}

Tensor tensorinv(const Tensor& a, int64_t ind) {
  if (ind <= 0) fail<InvalidArgument>("tensorinv: ind is {}", ind);
  if (ind > a.dim()) fail<ShapeError>("tensorinv: {} has no {} axes", text(a.sizes()), ind);
  const Sizes sizes = a.sizes();
  detail::require_numbers("tensorinv", sizes);
  const int64_t rows = product_of(sizes, 0, size_t(ind)),
                columns = product_of(sizes, size_t(ind), sizes.size());
  if (rows != columns)
    fail<ShapeError>("tensorinv: {} is {} x {} and not square", text(sizes), rows, columns);
  Sizes out(sizes.begin() + ind, sizes.end());
  out.insert(out.end(), sizes.begin(), sizes.begin() + ind);
  return inv(a.reshape({rows, columns})).reshape(out);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, const Axes& dims) {
  detail::require_numbers("tensorsolve", a.sizes());
  Tensor moved = a;
  if (!dims.empty()) {
    Axes order, last;
    for (int64_t dim : dims) last.push_back(detail::wrap_dim("tensorsolve", dim, a.dim()));
    for (int64_t d = 0; d < a.dim(); d++) {
      if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
    }
    order.insert(order.end(), last.begin(), last.end());
    moved = a.permute(order);
  }
  const Sizes sizes = moved.sizes();
  const auto rank = std::min(size_t(b.dim()), sizes.size());
  const Sizes out(sizes.begin() + int64_t(rank), sizes.end());
  const int64_t rows = product_of(sizes, 0, rank), columns = product_of(out, 0, out.size());
  if (rows != columns || !detail::same(b.numel(), rows))
    fail<ShapeError>("tensorsolve: {} is {} x {} for b of {}", text(sizes), rows, columns,
                     text(b.sizes()));
  return solve(moved.reshape({rows, columns}), b.reshape({rows})).reshape(out);
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  const auto [a, b] = detail::unify("vecdot", x, y);
  const int64_t d = detail::wrap_dim("vecdot", dim, a.dim());
  const DType t = is_float(a.dtype()) ? detail::compute_dtype(a.dtype()) : a.dtype();
  return (a.cast(t) * b.cast(t)).sum({d}).cast(a.dtype());
}

// By repeated products, whose gradient is right where an element is 0.
Tensor vander(const Tensor& x, std::optional<int64_t> count) {
  if (x.dim() == 0) fail<ShapeError>("vander: a scalar has no last axis");
  if (count && *count < 0) fail<InvalidArgument>("vander: {} columns", *count);
  const int64_t columns = count ? *count : int64_t(x.size(-1));
  const Tensor wide = is_float(x.dtype()) ? x : x.cast(DType::I64);
  Sizes none = x.sizes();
  none.push_back(0);
  if (columns == 0) return Tensor::zeros(none, {wide.dtype(), x.device()});
  std::vector<Tensor> powers{wide.ones_like()};
  for (int64_t k = 1; k < columns; k++) powers.push_back(k == 1 ? wide : powers.back() * wide);
  return Tensor::stack(powers, -1);
}

}  // namespace tuff::linalg
