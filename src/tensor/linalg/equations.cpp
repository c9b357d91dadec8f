// Linear equations and least squares for users: shapes, batches that broadcast, both sides.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "tensor/linalg/jacobi.h"
#include "tensor/linalg/lu.h"
#include "tensor/linalg/qr.h"
#include "tensor/linalg/triangular.h"

namespace tuff::linalg {

using detail::text;
using ir::UOp;

namespace {

Sizes leading_of(const Tensor& x) {
  Sizes all = x.sizes();
  all.resize(all.size() - 2);
  return all;
}
Tensor with_leading(const Tensor& x, Sizes leading) {
  leading.push_back(x.size(-2));
  leading.push_back(x.size(-1));
  return x.expand(leading);
}

// Both (..., rows, columns), with one batch.
struct Sides {
  Tensor a, b;
};
Sides sides_of(const char* what, const Tensor& a, const Tensor& b) {
  require_factorable(what, a);
  require_factorable(what, b);
  detail::require_same_device(what, a, b);
  if (a.dtype() != b.dtype())
    fail<InvalidArgument>("{}: {} and {}: cast one of them", what, name(a.dtype()),
                          name(b.dtype()));
  if (a.dim() < 2 || b.dim() < 2)
    fail<ShapeError>("{}: {} and {} are no matrices", what, text(a.sizes()), text(b.sizes()));
  const Sizes batch = detail::broadcast_sizes(what, leading_of(a), leading_of(b));
  return {with_leading(a, batch), with_leading(b, batch)};
}

void require_fit(const char* what, const Tensor& a, const Tensor& b, bool fits) {
  if (!fits)
    fail<ShapeError>("{}: {} does not fit a of {}", what, text(b.sizes()), text(a.sizes()));
}

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }

bool is_empty(const Tensor& a, const Tensor& b) {
  return detail::same(a.numel(), 0) || detail::same(b.numel(), 0);
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  Batch::square("solve", a);
  Sizes without_last = a.sizes();
  without_last.pop_back();
  const bool is_vector = b.dim() == 1 || detail::same(b.sizes(), without_last);
  if (is_vector) {
    const Sides s = sides_of("solve", a, b.unsqueeze(-1));
    require_fit("solve", a, b, detail::same(s.a.size(-1), s.b.size(-2)));
    return solve(s.a, s.b, true).squeeze(-1);
  }
  if (!left) return transposed(solve(transposed(a), transposed(b)));
  const Sides s = sides_of("solve", a, b);
  require_fit("solve", a, b, detail::same(s.a.size(-1), s.b.size(-2)));
  if (is_empty(s.a, s.b)) return s.b;
  const Batch of_a("solve", s.a), of_b("solve", s.b);
  return of_b.placed(solution(of_a.matrices(), of_b.matrices()));
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left,
                        bool unitriangular) {
  Batch::square("solve_triangular", a);
  if (!left)
    return transposed(
        solve_triangular(transposed(a), transposed(b), !upper, true, unitriangular));
  const Sides s = sides_of("solve_triangular", a, b);
  require_fit("solve_triangular", a, b, detail::same(s.a.size(-1), s.b.size(-2)));
  if (is_empty(s.a, s.b)) return s.b;
  const Batch of_a("solve_triangular", s.a), of_b("solve_triangular", s.b);
  const Triangle form{.upper = upper, .unit = unitriangular};
  return of_b.placed(triangular_solution(of_a.matrices(), of_b.matrices(), form));
}

namespace {

// Whether it is to be done by singular values.
bool is_of_any_rank(std::optional<double> rcond, std::string_view driver) {
  const bool by_values = driver == "gelsd" || driver == "gelsy" || driver == "gelss";
  if (!driver.empty() && driver != "gels" && !by_values)
    fail<InvalidArgument>("lstsq: driver is \"{}\", none of gels, gelsd, gelsy, gelss", driver);
  if (rcond && !(*rcond >= 0)) fail<InvalidArgument>("lstsq: rcond is {}", *rcond);
  if (rcond && driver == "gels")
    fail<InvalidArgument>("lstsq: driver \"gels\" has no rcond: take \"gelsd\"");
  return by_values || rcond;
}

LeastSquares of_any_rank(const Sides& s, std::optional<double> rcond) {
  LeastSquares out{matmul(pinv(s.a, {}, rcond), s.b), {}};
  const int64_t m = s.a.size(-2), n = s.a.size(-1);
  if (m > n) {
    const Tensor left = matmul(s.a, out.solution) - s.b;
    out.residuals = (left * left).sum({-2});
  }
  return out;
}

}  // namespace

LeastSquares lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                   std::string_view driver) {
  const bool any_rank = is_of_any_rank(rcond, driver);
  const Sides s = sides_of("lstsq", a, b);
  require_fit("lstsq", a, b, detail::same(s.a.size(-2), s.b.size(-2)));
  const Batch of_a("lstsq", s.a), of_b("lstsq", s.b);
  const int64_t m = of_a.m(), n = of_a.n();
  if (m == 0 || n == 0 || of_a.count() == 0)
    fail<ShapeError>("lstsq: a of {} has no elements", text(a.sizes()));
  LeastSquares out;
  if (any_rank) {
    out = of_any_rank(s, rcond);
  } else if (m >= n) {
    const auto [q, r] = qr_of(of_a.matrices(), false);
    const Tensor x = triangular_solution(r, matmul(q.transpose(1, 2), of_b.matrices()),
                                         {.upper = true});
    out.solution = of_b.placed(x);
    if (m > n) {
      const Tensor left = matmul(of_a.matrices(), x) - of_b.matrices();
      out.residuals = of_b.placed((left * left).sum({1}));
    }
  } else {
    const auto [q, r] = qr_of(of_a.matrices().transpose(1, 2).contiguous(), false);
    const Tensor y = triangular_solution(r.transpose(1, 2), of_b.matrices(), {});
    out.solution = of_b.placed(matmul(q, y));
  }
  if (m <= n) out.residuals = Tensor::empty({0}, {.dtype = a.dtype(), .device = a.device()});
  return out;
}

namespace {

double epsilon_of(DType t) {
  return t == DType::F64 ? std::numeric_limits<double>::epsilon()
                         : double(std::numeric_limits<float>::epsilon());
}

// Which singular values (batch, k) count.
Tensor counted(const char* what, const Tensor& s, int64_t longest, std::optional<double> atol,
               std::optional<double> rtol) {
  if (atol && !(*atol >= 0)) fail<InvalidArgument>("{}: atol is {}", what, *atol);
  if (rtol && !(*rtol >= 0)) fail<InvalidArgument>("{}: rtol is {}", what, *rtol);
  const double relative =
      rtol ? *rtol : atol && *atol > 0 ? 0.0 : double(longest) * epsilon_of(s.dtype());
  return s > (s.max({-1}, true) * relative).clamp(atol.value_or(0));
}

// Golub and Pereyra, 1973.
std::vector<UOp> row_of_pseudoinverse(const UOp& u, const UOp& gradient) {
  const Tensor p = tensor_of(u, u), a = tensor_of(u->src(1), u), g = tensor_of(gradient, u);
  const Tensor pt = p.transpose(1, 2), gt = g.transpose(1, 2);
  const Tensor left = gt - matmul(a, matmul(p, gt)), right = gt - matmul(matmul(gt, p), a);
  const Tensor to_a = matmul(matmul(left, p), pt) + matmul(matmul(pt, p), right) -
                      matmul(matmul(pt, g), pt);
  return gradients_of_sources({to_a});
}
constexpr ir::GradientRule kPseudoinverse{"pinv", row_of_pseudoinverse};

}  // namespace

Tensor pinv(const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  const Batch batch("pinv", a);
  if (detail::same(a.numel(), 0)) return transposed(a);
  const Singular d = singular_of(batch.matrices().detach(), false);
  const Tensor use = counted("pinv", d.s, std::max(batch.m(), batch.n()), atol, rtol);
  const Tensor inverses = Tensor::where(use, 1 / d.s, 0);
  const Tensor value =
      matmul(d.vh.transpose(1, 2) * inverses.unsqueeze(1), d.u.transpose(1, 2)).contiguous();
  return batch.placed(ruled(value, {batch.matrices()}, kPseudoinverse));
}

Tensor matrix_rank(const Tensor& a, std::optional<double> atol, std::optional<double> rtol) {
  const Batch batch("matrix_rank", a);
  if (batch.m() == 0 || batch.n() == 0)
    return batch.placed(
        Tensor::zeros({batch.count()}, {.dtype = DType::I64, .device = a.device()}));
  const Tensor s = singular_of(batch.matrices().detach(), false).s;
  const Tensor use = counted("matrix_rank", s, std::max(batch.m(), batch.n()), atol, rtol);
  return batch.placed(use.cast(DType::I64).sum({-1}));
}

Tensor matrix_power(const Tensor& a, int64_t n) {
  if (a.dim() < 2 || !detail::same(a.size(-1), a.size(-2)))
    fail<ShapeError>("matrix_power: matrices of {} are not square", text(a.sizes()));
  if (n == 0) {
    const TensorOptions o{.dtype = a.dtype(), .device = a.device()};
    return Tensor::eye(a.size(-1), o).expand(a.sizes());
  }
  Tensor power = n < 0 ? inv(a) : a, product;
  for (uint64_t left = n < 0 ? 0 - uint64_t(n) : uint64_t(n);; power = matmul(power, power)) {
    if (left & 1) product = product.defined() ? matmul(product, power) : power;
    left >>= 1;
    if (left == 0) return product;
  }
}

}  // namespace tuff::linalg
