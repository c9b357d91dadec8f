// Gaussian elimination with partial pivoting, in panels of columns. Rows stay where they are: each
// knows whether it has been a pivot, and at which step. Columns are rolled, so that the next one
// always stands first and every step is the same kernels.
#include "tensor/linalg/lu.h"

#include "base/check.h"
#include "tensor/linalg/triangular.h"

namespace tuff::linalg {

using ir::UOp;

namespace {

// The columns of a panel's state (batch, n, 2 length + 2), one behind the other: the panel; for
// each row how much of the panel's pivot rows, as they were, has been taken from it; 1 while it was
// no pivot; at how many steps it was none.
struct Elimination {
  int64_t length;
  int64_t open() const { return 2 * length; }
  int64_t steps() const { return 2 * length + 1; }
};

// (batch, 1): the row whose element of the first column is the largest of those that are left.
Tensor next_pivot(const Tensor& s, const Elimination& p) {
  const Tensor size = columns(s, 0, 1).abs();
  const Tensor left = Tensor::where(columns(s, p.open(), 1) != 0, size, -1);
  return left.argmax(1, true).squeeze(2).contiguous();
}

// `done`: which of the panel's columns are, and hold what they were divided by.
Tensor eliminated(const Tensor& s, const Elimination& p, const Tensor& done) {
  const int64_t n = rows_of(s), h = p.length;
  const Tensor index = next_pivot(s, p), pivot_row = rows_at(s, index);
  const auto is_left = [&](int64_t k) {
    const Tensor own = detail::counter(n, 1, 3, s.device()) != index.unsqueeze(2);
    return (wide(columns(s, p.open(), 1), n, k) != 0) & own.expand({s.size(0), n, k});
  };
  const auto factor = [&](int64_t k) {
    const Tensor pivot = wide(columns(pivot_row, 0, 1), n, k);
    return Tensor::where(is_left(k) & (pivot != 0), wide(columns(s, 0, 1), n, k) / pivot, 0);
  };
  const auto without = [&](int64_t from, const Tensor& share) {
    return columns(s, from, h - 1) - factor(h - 1) * wide(share, n, h - 1);
  };
  const Tensor first = Tensor::where(is_left(1), factor(1), columns(s, 0, 1));
  const Tensor open = is_left(1).cast(s.dtype());
  std::vector<Tensor> all;
  if (h > 1) {
    const Tensor others = columns(pivot_row, 1, h - 1);
    all.push_back(without(1, Tensor::where(columns(done, 1, h - 1) != 0, 0, others)));
  }
  all.push_back(first);
  // What has been taken grows by the factor times (the pivot row less what was taken from it).
  if (h > 1) all.push_back(without(h + 1, columns(pivot_row, h + 1, h - 1)));
  all.push_back(factor(1));
  all.push_back(open);
  all.push_back(columns(s, p.steps(), 1) + open);
  return Tensor::cat(all, 2).contiguous();
}

// (batch, length): which rows were pivots at each of a panel's steps; where there was none, n.
Tensor pivots_of(const Tensor& s, const Tensor& open_before, const Elimination& p) {
  const int64_t n = rows_of(s), batch = s.size(0);
  const Tensor step = columns(s, p.steps(), 1).cast(DType::I32).expand({batch, n, p.length});
  const Tensor here = step == detail::counter(p.length, 2, 3, s.device());
  const Tensor row = detail::counter(n, 1, 3, s.device()) - n;
  const Tensor hit = here & (open_before != 0).expand({batch, n, p.length});
  return detail::own_sum("lu", Tensor::where(hit, row, 0), {1}) + n;
}

}  // namespace

LU lu_of(const Tensor& given) {
  const int64_t batch = given.size(0), n = rows_of(given);
  const Blocks b = blocks_of(n);
  const int64_t h = b.length, rest = b.covered() - h;
  const Elimination p{h};
  Tensor a = padded(given, n, b.covered()).contiguous(), place;
  Tensor open = Tensor::ones({batch, n, 1}, {.dtype = a.dtype(), .device = a.device()});
  const Tensor nothing = columns(open, 0, 1).zeros_like();
  const std::vector<Tensor> done_columns = marks(a, {h, 1});
  for (const Tensor& done : marks(a, b)) {
    Tensor s = Tensor::cat({columns(a, 0, h), wide(nothing, n, h), open, nothing}, 2).contiguous();
    for (const Tensor& column : done_columns) s = eliminated(s, p, column);
    const Tensor index = pivots_of(s, open, p).contiguous();
    const Tensor steps = columns(s, p.steps(), 1).contiguous();
    place = place.defined() ? (place + steps).contiguous() : steps;
    open = columns(s, p.open(), 1).contiguous();
    const Tensor panel = columns(s, 0, h);
    if (rest == 0) {
      a = panel.contiguous();
      break;
    }
    const Tensor others = columns(a, h, rest);
    const Tensor pivot_rows =
        Tensor::where(columns(done, h, rest) != 0, 0, rows_at(others, index)).contiguous();
    const Tensor left = (others - matmul(columns(s, h, h), pivot_rows)).contiguous();
    a = Tensor::cat({left, panel}, 2).contiguous();
  }
  LU out;
  out.place = place.squeeze(2).cast(DType::I32).contiguous();
  const Tensor hit = out.place.unsqueeze(2) == detail::counter(n, 2, 3, a.device());
  const Tensor row = detail::counter(n, 1, 3, a.device());
  out.source = detail::own_sum("lu", Tensor::where(hit, row, 0), {1}).contiguous();
  out.factors = rows_at(columns(a, 0, n), out.source).contiguous();
  return out;
}

namespace {

Tensor solved(const LU& lu, const Tensor& b) {
  const Tensor first =
      divided_by_triangle(lu.factors, rows_at(b, lu.source).contiguous(), {.unit = true});
  return divided_by_triangle(lu.factors, first, {.upper = true});
}

std::vector<UOp> row_of_solution(const UOp& u, const UOp& gradient) {
  const Tensor x = tensor_of(u, u), a = tensor_of(u->src(1), u), g = tensor_of(gradient, u);
  const Tensor to_b = solution(a.transpose(1, 2), g);
  return gradients_of_sources({matmul(to_b, x.transpose(1, 2)).neg(), to_b});
}
constexpr ir::GradientRule kSolution{"solve", row_of_solution};

std::vector<UOp> row_of_inverse(const UOp& u, const UOp& gradient) {
  const Tensor x = tensor_of(u, u).transpose(1, 2), g = tensor_of(gradient, u);
  return gradients_of_sources({matmul(matmul(x, g), x).neg()});
}
constexpr ir::GradientRule kInverse{"inv", row_of_inverse};

std::vector<UOp> row_of_logarithm(const UOp& u, const UOp& gradient) {
  const Tensor a = tensor_of(u->src(1), u);
  return gradients_of_sources(
      {inverse_of(a).transpose(1, 2) * tensor_of(gradient, u).reshape({-1, 1, 1})});
}
constexpr ir::GradientRule kLogarithm{"slogdet", row_of_logarithm};

// (batch): -1 where rows were exchanged an odd number of times, else 1.
Tensor sign_of_order(const LU& lu, DType t) {
  const int64_t n = lu.place.size(1);
  const Tensor first = lu.place.unsqueeze(2), second = lu.place.unsqueeze(1);
  const Tensor i = detail::counter(n, 1, 3, lu.place.device()),
               j = detail::counter(n, 2, 3, lu.place.device());
  const Tensor inversions = ((i < j) & (first > second)).cast(DType::I32);
  const Tensor odd = detail::own_sum("det", inversions, {1, 2}) & 1;
  return (1 - 2 * odd).cast(t);
}

Tensor determinant_of(const LU& lu) {
  return (diagonal_of(lu.factors).prod({1}) * sign_of_order(lu, lu.factors.dtype())).contiguous();
}

// Pivots of 0 as ones that are not quite. The determinant and the cofactors are polynomials of the
// pivots, so they hardly move, and the determinant times the inverse has a value: that of the
// cofactors. How small they are leaves the product of their reciprocals in range.
LU with_pivots(const LU& lu) {
  const bool is_wide = lu.factors.dtype() == DType::F64;
  const Tensor zero = diagonal_of(lu.factors) == 0;
  const Tensor count = zero.cast(lu.factors.dtype()).sum({1}).clamp(1).reshape({-1, 1, 1});
  const Tensor largest = lu.factors.abs().max({1, 2}, true);
  const Tensor small = (-(is_wide ? 800.0 : 100.0) / count).clamp(is_wide ? -200 : -40).exp2() *
                       Tensor::where(largest == 0, 1.0, largest);
  const int64_t n = rows_of(lu.factors);
  const Tensor on_diagonal = detail::counter(n, 1, 3, lu.factors.device()) ==
                             detail::counter(n, 2, 3, lu.factors.device());
  LU out = lu;
  out.factors =
      Tensor::where(on_diagonal & (lu.factors == 0), small, lu.factors).detach().contiguous();
  return out;
}

// d det = det tr(a⁻¹ da)
std::vector<UOp> row_of_determinant(const UOp& u, const UOp& gradient) {
  const Tensor a = tensor_of(u->src(1), u), det = tensor_of(u, u);
  const LU lu = with_pivots(lu_of(a));
  const int64_t n = rows_of(a);
  const Tensor inverse =
      ruled(solved(lu, stored(ones_on_diagonal(a, n, n))), {a}, kInverse).transpose(1, 2);
  const Tensor regular = Tensor::where(det == 0, determinant_of(lu).detach(), det);
  return gradients_of_sources({inverse * (regular * tensor_of(gradient, u)).reshape({-1, 1, 1})});
}
constexpr ir::GradientRule kDeterminant{"det", row_of_determinant};

}  // namespace

Tensor solution(const Tensor& a, const Tensor& b) {
  return ruled(solved(lu_of(a), b), {a, b}, kSolution);
}

Tensor inverse_of(const Tensor& a) {
  const int64_t n = rows_of(a);
  return ruled(solved(lu_of(a), stored(ones_on_diagonal(a, n, n))), {a}, kInverse);
}

Tensor inv(const Tensor& a) {
  const Batch batch = Batch::square("inv", a);
  if (batch.n() == 0 || batch.count() == 0) return a;
  return batch.placed(inverse_of(batch.matrices()));
}

Tensor det(const Tensor& a) {
  const Batch batch = Batch::square("det", a);
  const TensorOptions o{.dtype = a.dtype(), .device = a.device()};
  if (batch.n() == 0 || batch.count() == 0) return batch.placed(Tensor::ones({batch.count()}, o));
  return batch.placed(
      ruled(determinant_of(lu_of(batch.matrices())), {batch.matrices()}, kDeterminant));
}

std::pair<Tensor, Tensor> slogdet(const Tensor& a) {
  const Batch batch = Batch::square("slogdet", a);
  const Tensor one = Tensor::ones({batch.count()}, {.dtype = a.dtype(), .device = a.device()});
  if (batch.n() == 0 || batch.count() == 0)
    return {batch.placed(one), batch.placed(one.zeros_like())};
  const LU lu = lu_of(batch.matrices());
  const Tensor pivots = diagonal_of(lu.factors).contiguous();
  const Tensor sign = pivots.sign().prod({1}) * sign_of_order(lu, a.dtype());
  const Tensor logarithm = pivots.abs().log().sum({1}).contiguous();
  return {batch.placed(sign.detach()),
          batch.placed(ruled(logarithm, {batch.matrices()}, kLogarithm))};
}

}  // namespace tuff::linalg
