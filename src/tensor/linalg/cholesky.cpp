// Cholesky's factorization in blocks, right-looking: the matrix is rolled, so that what is next
// always stands in the first rows and columns, and every step is the same kernels.
#include "base/check.h"
#include "tensor/linalg/triangular.h"

namespace tuff::linalg {

using detail::text;
using ir::UOp;

namespace {

struct Factor {
  Tensor lower, inverse;
};

// One column of (batch, n, n + k), whose last k columns are what rows are applied to. Columns that
// are done stand last and hold L; their rows hold zeros in the others.
Tensor step(const Tensor& s, const Tensor& done) {
  const int64_t n = rows_of(s), all = columns_of(s), rest = n - 1;
  const Tensor pivot = part(s, 0, 1, 0, 1);
  const auto scaled = [&](const Tensor& x, int64_t m, int64_t k) {
    return wide(x, m, k) / wide(pivot, m, k).sqrt();
  };
  // rows below: their own elements without the share of the first row
  const auto below = [&](int64_t from, int64_t count, const Tensor& first) {
    const Tensor share = wide(part(s, 1, rest, 0, 1), rest, count) / wide(pivot, rest, count);
    return part(s, 1, rest, from, count) - share * wide(first, rest, count);
  };
  const Tensor across = rows(columns(s, 0, 1), 1, rest).transpose(1, 2);
  std::vector<Tensor> lower{below(1, rest, across), scaled(part(s, 1, rest, 0, 1), rest, 1)};
  std::vector<Tensor> first{
      Tensor::where(columns(done, 1, rest) != 0, part(s, 0, 1, 1, rest), 0), pivot.sqrt()};
  if (all > n) {
    const Tensor right = part(s, 0, 1, n, all - n);
    lower.push_back(below(n, all - n, right));
    first.push_back(scaled(right, 1, all - n));
  }
  return Tensor::cat({Tensor::cat(lower, 2), Tensor::cat(first, 2)}, 1).contiguous();
}

// A block, by columns, and with it the inverse of what comes out.
Factor of_block(const Tensor& a, bool with_inverse) {
  const int64_t n = rows_of(a);
  if (n == 1) {
    const Tensor root = a.sqrt();
    return {root, 1 / root};
  }
  Tensor s = a;
  if (with_inverse) s = Tensor::cat({a, ones_on_diagonal(a, n, n)}, 2);
  s = s.contiguous();
  for (const Tensor& done : marks(a, {n, 1})) s = step(s, done);
  return {columns(s, 0, n), with_inverse ? columns(s, n, n).contiguous() : Tensor()};
}

Tensor factored(const Tensor& given) {
  const int64_t n = rows_of(given);
  const Blocks b = blocks_of(n);
  if (b.blocks == 1) return of_block(given, false).lower.contiguous();
  const int64_t all = b.covered(), h = b.length, rest = all - h;
  Tensor a = with_ones_from(padded(given, all, all), n).contiguous();
  for (const Tensor& done : marks(a, b)) {
    const Factor first = of_block(part(a, 0, h, 0, h), true);
    const Tensor lower = first.lower.contiguous(), back = first.inverse.transpose(1, 2);
    const Tensor below = part(a, h, rest, 0, h).contiguous();
    const Tensor once = matmul(below, back).contiguous();
    const Tensor left = (below - matmul(once, lower.transpose(1, 2))).contiguous();
    const Tensor panel = (once + matmul(left, back)).contiguous();
    const Tensor others =
        (part(a, h, rest, h, rest) - matmul(panel, panel.transpose(1, 2))).contiguous();
    const Tensor moved = Tensor::where(columns(done, h, rest) != 0, part(a, 0, h, h, rest), 0);
    a = Tensor::cat({Tensor::cat({others, panel}, 2), Tensor::cat({moved, lower}, 2)}, 1)
            .contiguous();
  }
  return part(a, 0, n, 0, n).contiguous();
}

// Murray, 2016 (arXiv 1602.07527).
std::vector<UOp> row_of_cholesky(const UOp& u, const UOp& gradient) {
  const Tensor l = tensor_of(u, u), g = tensor_of(gradient, u).tril();
  const Tensor inner = matmul(l.transpose(1, 2), g).tril();
  const int64_t n = rows_of(l);
  const Tensor halved = Tensor::where(ones_on_diagonal(l, n, n) != 0, inner * 0.5, inner);
  const Tensor upper = l.transpose(1, 2);
  // L⁻ᵀ S L⁻¹ of the symmetric part
  const Tensor symmetric = (halved + halved.transpose(1, 2)) * 0.5;
  const Tensor left = triangular_solution(upper, symmetric, {.upper = true});
  const Tensor right = triangular_solution(upper, left.transpose(1, 2), {.upper = true});
  return gradients_of_sources({right.transpose(1, 2)});
}
constexpr ir::GradientRule kCholesky{"cholesky", row_of_cholesky};

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
  const Batch batch = Batch::square("cholesky", a);
  if (batch.n() == 0 || batch.count() == 0) return a;
  Tensor x = batch.matrices();
  if (upper) x = x.transpose(1, 2);
  const Tensor l = ruled(factored(x), {x}, kCholesky);
  return batch.placed(upper ? l.transpose(1, 2) : l);
}

}  // namespace tuff::linalg
