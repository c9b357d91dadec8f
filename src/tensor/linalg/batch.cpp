#include "tensor/linalg/batch.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::linalg {

using detail::text;

void require_factorable(const char* what, const Tensor& x) {
  if (x.dtype() != DType::F32 && x.dtype() != DType::F64)
    fail<InvalidArgument>("{}: the tensor is {}: cast it to float32 or float64", what,
                          name(x.dtype()));
  detail::require_numbers(what, x.sizes());
}

Batch::Batch(const char* what, const Tensor& given) {
  require_factorable(what, given);
  const Sizes sizes = given.sizes();
  if (sizes.size() < 2)
    fail<ShapeError>("{}: {} is no matrix and no batch of them", what, text(sizes));
  leading_.assign(sizes.begin(), sizes.end() - 2);
  for (const Size& s : leading_) count_ *= int64_t(s);
  m_ = sizes[sizes.size() - 2];
  n_ = sizes[sizes.size() - 1];
  matrices_ = given.reshape({count_, m_, n_});
  if (!detail::uop(matrices_)->device) matrices_ = stored(matrices_);
}

Batch Batch::square(const char* what, const Tensor& given) {
  Batch b(what, given);
  if (b.m_ != b.n_)
    fail<ShapeError>("{}: matrices of {} are not square", what, text(given.sizes()));
  return b;
}

Tensor Batch::placed(const Tensor& x) const {
  Sizes out = leading_;
  for (int64_t d = 1; d < x.dim(); d++) out.push_back(x.size(d));
  return x.reshape(out);
}

Tensor rolled_rows(const Tensor& x, int64_t k) {
  const int64_t m = rows_of(x);
  return k % m == 0 ? x : Tensor::cat({rows(x, k, m - k), rows(x, 0, k)}, 1);
}
Tensor rolled_columns(const Tensor& x, int64_t k) {
  const int64_t n = columns_of(x);
  return k % n == 0 ? x : Tensor::cat({columns(x, k, n - k), columns(x, 0, k)}, 2);
}

Tensor padded(const Tensor& x, int64_t m, int64_t n) {
  if (rows_of(x) == m && columns_of(x) == n) return x;
  return x.pad({0, n - columns_of(x), 0, m - rows_of(x)});
}

Tensor with_ones_from(const Tensor& x, int64_t begin) {
  if (begin >= std::min(rows_of(x), columns_of(x))) return x;
  const Tensor i = detail::counter(rows_of(x), 1, 3, x.device()),
               j = detail::counter(columns_of(x), 2, 3, x.device());
  return Tensor::where((i == j) & (i >= begin), 1, x);
}

Tensor stored(const Tensor& x) {
  const detail::BuildGuard section;
  return detail::derive(x, detail::placed(detail::uop(x), x.device()));
}

Tensor wide(const Tensor& x, int64_t m, int64_t n) { return x.expand({x.size(0), m, n}); }

Tensor ones_on_diagonal(const Tensor& like, int64_t m, int64_t n) {
  const TensorOptions o{.dtype = like.dtype(), .device = like.device()};
  return Tensor::eye(m, n, o).unsqueeze(0).expand({like.size(0), m, n});
}

Tensor diagonal_of(const Tensor& x) { return x.diagonal(0, 1, 2); }

Tensor rows_at(const Tensor& x, const Tensor& index) {
  const int64_t batch = x.size(0), n = x.size(1), k = index.size(1);
  const Tensor hit = index.reshape({batch, k, 1, 1}) == detail::counter(n, 3, 4, x.device());
  return detail::pick(hit, x.transpose(1, 2).reshape({batch, 1, x.size(2), n}), {3});
}

Blocks blocks_of(int64_t n) {
  const int64_t blocks = ceil_div(n, kBlock);
  return {blocks, ceil_div(n, blocks)};
}
Blocks halved_blocks(int64_t n) {
  const auto blocks = int64_t(std::bit_ceil(uint64_t(ceil_div(n, kBlock))));
  return {blocks, ceil_div(n, blocks)};
}

std::vector<Tensor> marks(const Tensor& like, const Blocks& b) {
  const TensorOptions o{.dtype = like.dtype(), .device = like.device()};
  const Tensor moved = Tensor::ones({1, 1, b.length}, o);
  std::vector<Tensor> out{stored(Tensor::zeros({1, 1, b.covered()}, o))};
  while (int64_t(out.size()) < b.blocks) {
    const Tensor rest = columns(out.back(), b.length, b.covered() - b.length);
    out.push_back(Tensor::cat({rest, moved}, 2).contiguous());
  }
  return out;
}

}  // namespace tuff::linalg
