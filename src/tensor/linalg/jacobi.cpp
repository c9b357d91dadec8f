// Jacobi's method in parallel (Brent and Luk, 1985): in one step all rows are rotated in pairs,
// i with n - 1 - i, and then moved on, all but the first, so that n - 1 steps, a sweep, pair each
// with each. Steps are those of a loop. All sweeps are done: nothing waits for convergence.
#include "tensor/linalg/jacobi.h"

#include <algorithm>
#include <bit>
#include <functional>

#include <tuff/scan.h>

#include "base/check.h"
#include "tensor/linalg/qr.h"
#include "tensor/order.h"

namespace tuff::linalg {

using ir::UOp;

namespace {

// Enough for clusters and for graded matrices, which take the most (docs/design/linalg.md).
int64_t sweeps_of(int64_t n, DType t) {
  const auto doublings = int64_t(std::bit_width(uint64_t(n - 1)));
  if (n <= 2) return n - 1;
  return t == DType::F64 ? 2 + 3 * doublings : 4 + doublings;
}

int64_t even(int64_t n) { return n + (n & 1); }

// (batch, 2, n): cosine and sine of each row's rotation, of the diagonal d (batch, 2, n) of
// products: each row's with itself, and with its partner. The sine of a row is minus its partner's.
Tensor rotations(const Tensor& d) {
  const int64_t n = columns_of(d);
  const Tensor own = rows(d, 0, 1), given = rows(d, 1, 1);
  const Tensor across = (given + given.flip({2})) * 0.5;
  const Tensor ratio = (own.flip({2}) - own) / (across * 2);
  const Tensor first = detail::counter(n, 2, 3, d.device()) < n / 2;
  const Tensor positive = (ratio > 0) | ((ratio == 0) & first);
  const Tensor tangent = 1 / (ratio.abs() + (ratio * ratio + 1).sqrt());
  const Tensor t =
      Tensor::where(across == 0, 0, Tensor::where(positive, tangent, tangent.neg()));
  const Tensor cosine = 1 / (t * t + 1).sqrt();
  return Tensor::cat({cosine, cosine * t}, 1).contiguous();
}

// Row i becomes cosine * row i - sine * its partner's.
Tensor rotated_rows(const Tensor& x, const Tensor& by) {
  const int64_t m = rows_of(x), n = columns_of(x);
  const auto each = [&](int64_t which) { return wide(rows(by, which, 1).transpose(1, 2), m, n); };
  return each(0) * x - each(1) * x.flip({1});
}

Tensor moved_on(const Tensor& x, int64_t axis) {
  const int64_t n = x.size(axis);
  if (n == 2) return x;
  return Tensor::cat({x.narrow(axis, 0, 1), x.narrow(axis, n - 1, 1), x.narrow(axis, 1, n - 2)},
                     axis);
}

// One more step of an iteration that makes what is nearly orthonormal so to the last digits.
Tensor orthonormal(const Tensor& rows) {
  const Tensor square = matmul(rows, rows.transpose(1, 2)).contiguous();
  return (rows * 1.5 - matmul(square, rows) * 0.5).contiguous();
}

// The sweeps of matrices of n rows, n even.
Tensors swept(const Tensors& states, int64_t n, const std::function<Tensors(const Tensors&)>& step) {
  if (states[0].numel().max() == 0) return states;
  const auto one = [&](const Tensors& s, const Tensors&) { return Scanned{step(s), {}}; };
  return scan(one, states, {}, {.steps = sweeps_of(n, states[0].dtype()) * (n - 1)}).states;
}

// ---- symmetric matrices

// The rows of the result are the eigenvectors.
Tensor vectors_of_symmetric(const Tensor& a) {
  const int64_t given = rows_of(a), n = even(given);
  const auto step = [](const Tensors& s) {
    const Tensor &x = s[0], &v = s[1];
    const Tensor diagonals =
        Tensor::stack({diagonal_of(x), diagonal_of(x.flip({2}))}, 1);
    const Tensor by = rotations(diagonals);
    const Tensor half = rotated_rows(x, by);
    const Tensor both = rotated_rows(half.transpose(1, 2), by);
    return Tensors{moved_on(moved_on(both, 1), 2), moved_on(rotated_rows(v, by), 1)};
  };
  const Tensor v = swept({padded(a, n, n), ones_on_diagonal(a, n, n)}, n, step)[1];
  return orthonormal(part(v, 0, given, 0, given).contiguous());
}

struct Eigen {
  Tensor values, vectors;  // (batch, n), (batch, n, n)
};

Eigen eigen_of(const Tensor& given) {
  const Tensor scale = magnitude_of(given).contiguous();
  const Tensor a = (given / scale).contiguous();
  const Tensor v = vectors_of_symmetric(a);
  // Rayleigh's quotients are right to twice as many digits as the vectors.
  const Tensor values = (matmul(v, a).contiguous() * v).sum({2}).contiguous();
  const Tensor order = detail::stable_order(detail::order_keys(values)).contiguous();
  const Tensor sorted = detail::taken(values * scale.squeeze(2), order);
  return {sorted.contiguous(), rows_at(v, order).transpose(1, 2).contiguous()};
}

Tensor values_of(const Tensor& values, const Tensor& vectors, const Tensor& a);
Tensor vectors_of(const Tensor& values, const Tensor& vectors, const Tensor& a);

Tensor symmetric(const Tensor& x) { return (x + x.transpose(1, 2)) * 0.5; }

Tensor between(const Tensor& x, const Tensor& b, const Tensor& y) {
  return matmul(matmul(x, b), y);
}

// x / (s_j - s_i), 0 on the diagonal
Tensor over_differences(const Tensor& x, const Tensor& s) {
  const Tensor difference = s.unsqueeze(1) - s.unsqueeze(2);
  const Tensor same = ones_on_diagonal(x, rows_of(x), columns_of(x)) != 0;
  return Tensor::where(same, 0, x / Tensor::where(same, 1, difference));
}

// The sources are (value, a, the other one).
std::vector<UOp> row_of_eigenvalues(const UOp& u, const UOp& gradient) {
  const Tensor a = tensor_of(u->src(1), u), g = tensor_of(gradient, u);
  const Tensor v = vectors_of(tensor_of(u->src(0), u), tensor_of(u->src(2), u), a);
  return gradients_of_sources({matmul(v * g.unsqueeze(1), v.transpose(1, 2))});
}
std::vector<UOp> row_of_eigenvectors(const UOp& u, const UOp& gradient) {
  const Tensor a = tensor_of(u->src(1), u), g = tensor_of(gradient, u), v = tensor_of(u, u);
  const Tensor values = values_of(tensor_of(u->src(2), u), tensor_of(u->src(0), u), a);
  const Tensor vt = v.transpose(1, 2);
  return gradients_of_sources({symmetric(between(v, over_differences(matmul(vt, g), values), vt))});
}
constexpr ir::GradientRule kValues{"eigh_values", row_of_eigenvalues},
    kVectors{"eigh_vectors", row_of_eigenvectors};

Tensor values_of(const Tensor& values, const Tensor& vectors, const Tensor& a) {
  return ruled(values, {a, vectors}, kValues);
}
Tensor vectors_of(const Tensor& values, const Tensor& vectors, const Tensor& a) {
  return ruled(vectors, {a, values}, kVectors);
}

// ---- singular values

// The rows of r (batch, n, n) rotated until they are orthogonal: U of r = Uᵀ (U r).
Tensor rotation_of_rows(const Tensor& r) {
  const int64_t given = rows_of(r), n = even(given), width = columns_of(r);
  const auto step = [&](const Tensors& s) {
    const Tensor x = columns(s[0], 0, width);
    const Tensor products = Tensor::stack({x, x.flip({1})}, 1) * x.unsqueeze(1);
    const Tensor by = rotations(products.sum({3}).contiguous());
    return Tensors{moved_on(rotated_rows(s[0], by), 1)};
  };
  const Tensor first = Tensor::cat({padded(r, n, width), ones_on_diagonal(r, n, n)}, 2);
  const Tensor s = swept({first}, n, step)[0];
  return orthonormal(part(s, 0, given, width, given).contiguous());
}

// Of m >= n: by Q R, then of R.
Singular values_of_tall(const Tensor& given, bool full) {
  const int64_t n = columns_of(given);
  const Tensor scale = magnitude_of(given).contiguous();
  const auto [q, r] = values_of_qr((given / scale).contiguous(), full);
  const Tensor square = rows(r, 0, n).contiguous();
  const Tensor u = n == 1 ? square.ones_like() : rotation_of_rows(square);
  const Tensor rotated = matmul(u, square).contiguous();
  const Tensor s = (rotated * rotated).sum({2}).sqrt().contiguous();
  const Tensor order = detail::stable_order(detail::order_keys(s.neg())).contiguous();
  // The directions of the rows, and where they are 0 what is orthogonal to the others.
  const Tensor directions = rows_at(rotated, order).transpose(1, 2).contiguous();
  const auto [v, lengths] = values_of_qr(directions, false);
  const Tensor sign = Tensor::where(diagonal_of(lengths) < 0, -1, diagonal_of(lengths).ones_like());
  Singular out;
  out.s = (detail::taken(s, order) * scale.squeeze(2)).contiguous();
  out.vh = (v * sign.unsqueeze(1)).transpose(1, 2).contiguous();
  out.u = matmul(columns(q, 0, n), rows_at(u, order).transpose(1, 2).contiguous()).contiguous();
  if (full) out.u = Tensor::cat({out.u, columns(q, n, columns_of(q) - n)}, 2).contiguous();
  return out;
}

Singular with_rules(const Singular& values, const Tensor& a);

// The sources are (value, a, U, s, Vh).
struct SingularNode {
  SingularNode(const UOp& u, const UOp& gradient)
      : a(tensor_of(u->src(1), u)), to(tensor_of(gradient, u)) {
    Singular values{tensor_of(u->src(2), u), tensor_of(u->src(3), u), tensor_of(u->src(4), u)};
    ruled = with_rules(values, a);
  }
  Tensor a, to;
  Singular ruled;
  // x - xᵀ over the differences of the squares of singular values
  Tensor skew(const Tensor& x) const {
    return over_differences(x - x.transpose(1, 2), ruled.s * ruled.s);
  }
  // What is outside of the columns of an orthonormal matrix.
  static Tensor outside(const Tensor& columns, const Tensor& x) {
    return x - matmul(columns, matmul(columns.transpose(1, 2), x));
  }
};

std::vector<UOp> row_of_u(const UOp& u, const UOp& gradient) {
  const SingularNode n(u, gradient);
  const Singular& d = n.ruled;
  Tensor inner = n.skew(matmul(d.u.transpose(1, 2), n.to)) * d.s.unsqueeze(1);
  Tensor to_a = between(d.u, inner, d.vh);
  if (rows_of(d.u) > columns_of(d.u))
    to_a = to_a + matmul(SingularNode::outside(d.u, n.to) / d.s.unsqueeze(1), d.vh);
  return gradients_of_sources({to_a});
}
std::vector<UOp> row_of_vh(const UOp& u, const UOp& gradient) {
  const SingularNode n(u, gradient);
  const Singular& d = n.ruled;
  const Tensor v = d.vh.transpose(1, 2), to_v = n.to.transpose(1, 2);
  const Tensor inner = n.skew(matmul(d.vh, to_v)) * d.s.unsqueeze(2);
  Tensor to_a = between(d.u, inner, d.vh);
  if (rows_of(v) > columns_of(v))
    to_a = to_a + matmul(d.u / d.s.unsqueeze(1), SingularNode::outside(v, to_v).transpose(1, 2));
  return gradients_of_sources({to_a});
}
std::vector<UOp> row_of_s(const UOp& u, const UOp& gradient) {
  const SingularNode n(u, gradient);
  return gradients_of_sources({matmul(n.ruled.u * n.to.unsqueeze(1), n.ruled.vh)});
}
std::vector<UOp> row_of_full(const UOp&, const UOp&) {
  fail<Unsupported>(
      "svd: what full_matrices adds to U or Vh has no gradient, as it is arbitrary: take "
      "full_matrices false");
}
constexpr ir::GradientRule kU{"svd_u", row_of_u}, kS{"svd_s", row_of_s}, kVh{"svd_vh", row_of_vh},
    kFull{"svd_full", row_of_full};

Singular with_rules(const Singular& d, const Tensor& a) {
  return {ruled(d.u, {a, d.u, d.s, d.vh}, kU), ruled(d.s, {a, d.u, d.s, d.vh}, kS),
          ruled(d.vh, {a, d.u, d.s, d.vh}, kVh)};
}

}  // namespace

Singular singular_of(const Tensor& a, bool full) {
  const int64_t m = rows_of(a), n = columns_of(a), k = std::min(m, n);
  const bool tall = m >= n;
  Singular all = values_of_tall(tall ? a : a.transpose(1, 2).contiguous(), full && m != n);
  if (!tall) {
    const Tensor u = all.vh.transpose(1, 2).contiguous();
    all.vh = all.u.transpose(1, 2).contiguous();
    all.u = u;
  }
  const Singular first{columns(all.u, 0, k).contiguous(), all.s, rows(all.vh, 0, k).contiguous()};
  Singular out = with_rules(first, a);
  if (!full || m == n) return out;
  if (tall) {
    out.u = Tensor::cat({out.u, ruled(columns(all.u, k, m - k).contiguous(), {a}, kFull)}, 2);
  } else {
    out.vh = Tensor::cat({out.vh, ruled(rows(all.vh, k, n - k).contiguous(), {a}, kFull)}, 1);
  }
  return out;
}

std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view uplo) {
  if (uplo != "L" && uplo != "U")
    fail<InvalidArgument>("eigh: uplo is \"{}\", neither \"L\" nor \"U\"", uplo);
  const Batch batch = Batch::square("eigh", a);
  if (batch.n() == 0 || batch.count() == 0)
    return {batch.placed(batch.matrices().reshape({batch.count(), 0})), a};
  const Tensor given = uplo == "L" ? batch.matrices() : batch.matrices().transpose(1, 2);
  const Tensor lower = given.tril();
  const Tensor x = (lower + given.tril(-1).transpose(1, 2)).contiguous();
  const Eigen e =
      batch.n() == 1 ? Eigen{x.reshape({batch.count(), 1}), x.ones_like()} : eigen_of(x);
  return {batch.placed(values_of(e.values, e.vectors, x)),
          batch.placed(vectors_of(e.values, e.vectors, x))};
}
Tensor eigvalsh(const Tensor& a, std::string_view uplo) { return eigh(a, uplo).first; }

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices) {
  const Batch batch("svd", a);
  if (batch.m() == 0 || batch.n() == 0 || batch.count() == 0) {
    const int64_t k = std::min(batch.m(), batch.n()), c = batch.count();
    const Tensor x = batch.matrices();
    return {batch.placed(ones_on_diagonal(x, batch.m(), full_matrices ? batch.m() : k)),
            batch.placed(Tensor::zeros({c, k}, {.dtype = a.dtype(), .device = a.device()})),
            batch.placed(ones_on_diagonal(x, full_matrices ? batch.n() : k, batch.n()))};
  }
  const Singular d = singular_of(batch.matrices(), full_matrices);
  return {batch.placed(d.u), batch.placed(d.s), batch.placed(d.vh)};
}
Tensor svdvals(const Tensor& a) { return std::get<1>(svd(a, false)); }

}  // namespace tuff::linalg
