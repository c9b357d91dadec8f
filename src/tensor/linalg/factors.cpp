// Factors for users: LU's three, and packed; what Cholesky's and Householder's are used for.
#include "base/check.h"
#include "tensor/linalg/lu.h"

namespace tuff::linalg {

using detail::text;
using ir::UOp;

namespace {

Tensor below_diagonal(const Tensor& x) { return x.tril(-1); }

// P of a = P L U: row source[i] of a is row i of L U.
Tensor permutation_of(const LU& lu, int64_t m) {
  const Tensor column = detail::counter(m, 2, 3, lu.place.device());
  return (lu.place.narrow(1, 0, m).unsqueeze(2) == column).cast(lu.factors.dtype());
}

Tensor lower_of(const LU& lu, int64_t m, int64_t k) {
  const Tensor l = part(lu.factors, 0, m, 0, k);
  return below_diagonal(l) + ones_on_diagonal(l, m, k);
}
Tensor upper_of(const LU& lu, int64_t k, int64_t n) { return part(lu.factors, 0, k, 0, n).triu(); }

// With F = L⁻¹ Pᵀ da U⁻¹: dL = L tril(F, -1), dU = triu(F) U (de Hoog, Anderssen and Lukas, 2011).
std::vector<UOp> gradient_of_factor(const UOp& u, const UOp& gradient, bool is_lower) {
  const Tensor a = tensor_of(u->src(1), u), g = tensor_of(gradient, u);
  const int64_t n = rows_of(a);
  if (n != columns_of(a))
    fail<Unsupported>("lu: a gradient of matrices of {}: only of square ones", text(a.sizes()));
  const auto [p, l, upper] = lu(a);
  const Tensor inner = is_lower ? below_diagonal(matmul(l.transpose(1, 2), g))
                                : matmul(g, upper.transpose(1, 2)).triu();
  const Tensor right = solve_triangular(upper.transpose(1, 2), inner, false, false);
  const Tensor both = solve_triangular(l.transpose(1, 2), right, true, true, true);
  return gradients_of_sources({matmul(p, both)});
}
std::vector<UOp> row_of_lower(const UOp& u, const UOp& gradient) {
  return gradient_of_factor(u, gradient, true);
}
std::vector<UOp> row_of_upper(const UOp& u, const UOp& gradient) {
  return gradient_of_factor(u, gradient, false);
}
constexpr ir::GradientRule kLower{"lu_lower", row_of_lower};
constexpr ir::GradientRule kUpper{"lu_upper", row_of_upper};

// (batch, m): 0, 1, ...
Tensor in_order(const Tensor& like, int64_t m) {
  return detail::counter(m, 1, 2, like.device()).cast(DType::I32).expand({like.size(0), m});
}
// x with what stands at column i and at column j, (batch, 1), exchanged.
Tensor exchanged(const Tensor& x, int64_t i, const Tensor& j) {
  const Tensor column = detail::counter(x.size(1), 1, 2, x.device());
  const Tensor at_i = x.narrow(1, i, 1), at_j = x.gather(1, j);
  return Tensor::where(column == i, at_j, Tensor::where(column == j, at_i, x)).contiguous();
}

// LAPACK's way to say it: which row each one was exchanged with, from the first on, counted from 1.
Tensor pivots_of_order(const Tensor& source, int64_t m, int64_t k) {
  Tensor rows = in_order(source, m);
  std::vector<Tensor> pivots;
  for (int64_t i = 0; i < k; i++) {
    const Tensor at = (rows == source.narrow(1, i, 1)).cast(DType::I32).argmax(1, true);
    pivots.push_back(at.cast(DType::I32) + 1);
    rows = exchanged(rows, i, at.cast(DType::I32));
  }
  return Tensor::cat(pivots, 1);
}
Tensor order_of_pivots(const Tensor& pivots, int64_t m) {
  Tensor rows = in_order(pivots, m);
  for (int64_t i = 0; i < int64_t(pivots.size(1)); i++)
    rows = exchanged(rows, i, pivots.narrow(1, i, 1) - 1);
  return rows;
}

// A square with zeros around, whose rows are the last to become pivots. Rows that are none stand
// where LAPACK's exchanges leave them.
LU lu_of_any(const Batch& batch) {
  const int64_t m = batch.m(), n = std::max(m, batch.n());
  LU found = lu_of(padded(batch.matrices().detach(), n, n));
  if (m <= batch.n()) return found;
  const Tensor order = order_of_pivots(pivots_of_order(found.source, m, batch.n()), m);
  found.factors = rows_at(found.factors, found.place.gather(1, order)).contiguous();
  const Tensor hit = order.unsqueeze(2) == detail::counter(m, 2, 3, order.device());
  const Tensor row = detail::counter(m, 1, 3, order.device());
  const Tensor place = detail::own_sum("lu", Tensor::where(hit, row, 0), {1});
  found.place = place.cast(DType::I32).contiguous();
  found.source = order;
  return found;
}

void require_elements(const char* what, const Tensor& a) {
  if (detail::same(a.numel(), 0))
    fail<ShapeError>("{}: a of {} has no elements", what, text(a.sizes()));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a) {
  const Batch batch("lu", a);
  require_elements("lu", a);
  const int64_t m = batch.m(), n = batch.n(), k = std::min(m, n);
  const LU found = lu_of_any(batch);
  const Tensor lower = lower_of(found, m, k).contiguous(),
               upper = upper_of(found, k, n).contiguous();
  return {batch.placed(permutation_of(found, m)),
          batch.placed(ruled(lower, {batch.matrices()}, kLower)),
          batch.placed(ruled(upper, {batch.matrices()}, kUpper))};
}

std::pair<Tensor, Tensor> lu_factor(const Tensor& a) {
  const Batch batch("lu_factor", a);
  require_elements("lu_factor", a);
  const int64_t m = batch.m(), n = batch.n();
  const LU found = lu_of_any(batch);
  return {batch.placed(part(found.factors, 0, m, 0, n)),
          batch.placed(pivots_of_order(found.source, m, std::min(m, n)))};
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left) {
  const Batch factors = Batch::square("lu_solve", lu);
  const int64_t n = factors.n();
  Sizes of_pivots = lu.sizes();
  of_pivots.pop_back();
  if (!detail::same(pivots.sizes(), of_pivots))
    fail<ShapeError>("lu_solve: pivots of {} for factors of {}", text(pivots.sizes()),
                     text(lu.sizes()));
  const Tensor packed = factors.matrices().detach();
  const Tensor order = order_of_pivots(pivots.reshape({factors.count(), n}), n);
  const Tensor column = detail::counter(n, 2, 3, lu.device());
  const Tensor rows = factors.placed((order.unsqueeze(2) == column).cast(lu.dtype()));  // Pᵀ
  const Tensor both = factors.placed(packed);
  if (left) {
    const Tensor first = solve_triangular(both, rows.matmul(b), false, true, true);
    return solve_triangular(both, first, true);
  }
  const Tensor first = solve_triangular(both, b, true, false);
  return solve_triangular(both, first, false, false, true).matmul(rows);
}

Tensor cholesky_solve(const Tensor& b, const Tensor& triangle, bool upper) {
  const Tensor other = triangle.transpose(-2, -1);
  const Tensor& lower = upper ? other : triangle;
  const Tensor first = solve_triangular(lower, b, false);
  return solve_triangular(upper ? triangle : other, first, true);
}
Tensor cholesky_inverse(const Tensor& triangle, bool upper) {
  const Batch batch = Batch::square("cholesky_inverse", triangle);
  if (detail::same(triangle.numel(), 0)) return triangle;
  const Tensor one = batch.placed(stored(ones_on_diagonal(batch.matrices(), batch.n(), batch.n())));
  return cholesky_solve(one, triangle, upper);
}

// From the last reflection to the first, each of which leaves the rows above it alone.
Tensor householder_product(const Tensor& a, const Tensor& tau) {
  const Batch batch("householder_product", a);
  const int64_t m = batch.m(), n = batch.n();
  Sizes leading = a.sizes(), of_tau = tau.sizes();
  leading.resize(leading.size() - 2);
  if (m < n || tau.dim() < 1)
    fail<ShapeError>("householder_product: reflections of {} by {}", text(a.sizes()),
                     text(tau.sizes()));
  const int64_t k = of_tau.back();
  of_tau.pop_back();
  if (k > n || !detail::same(of_tau, leading))
    fail<ShapeError>("householder_product: {} factors for {}", text(tau.sizes()),
                     text(a.sizes()));
  Tensor q = ones_on_diagonal(batch.matrices(), m, n);
  if (detail::same(a.numel(), 0) || k == 0) return batch.placed(q);
  const Tensor factors = tau.reshape({batch.count(), k, 1});
  const Tensor vectors =
      below_diagonal(batch.matrices()) + ones_on_diagonal(batch.matrices(), m, n);
  for (int64_t i = k - 1; i >= 0; i--) {
    const Tensor v = columns(vectors, i, 1);
    q = q - v * rows(factors, i, 1) * matmul(v.transpose(1, 2), q);
  }
  return batch.placed(q);
}

}  // namespace tuff::linalg
